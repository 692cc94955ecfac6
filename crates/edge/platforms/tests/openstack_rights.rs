//! What members and readers of a project of OpenStack's may do, and what a run leaves that is killed in the middle of an operation.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "others have more done")]
mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use virtbench_openstack::{Address, Limit, LocalOpenStack, NewServer, OpenStack, Operation};
use virtbench_platforms::{Action, LeftPlace, OnOpenStack, Platform};
use virtbench_record::{CloneKind, FailureKind, JobFigure, OperationKind};

const MADE_OF: &str = "&flavor=tiny&other-flavor=small&image=cirros&network=private";

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

#[test]
fn a_member_measures_without_hosts_and_a_reader_is_told_which_right_is_missing() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let connect =
        |user| OnOpenStack::connect(&format!("{}{MADE_OF}", local.argument_of(user)), "none", soon());
    let member = connect("member").unwrap();
    let facts = member.facts();
    assert!(
        facts.hosts == 0 && facts.notes.iter().any(|note| note.contains("hosts: unavailable")),
        "{facts:?}"
    );
    assert!(member.lacks(OperationKind::Migrate).unwrap().contains("administrators"));
    let vm = format!("{}-1", member.label());
    member.create(&vm, soon()).unwrap();
    let started = common::done(&member, &vm, &Action::PowerOn, soon());
    assert!(started.job.unwrap().unwrap().contains_key(&JobFigure::ComputeNs), "without the host's name");
    local.control(&json!({"events": false})).unwrap();
    let stopped = common::done(&member, &vm, &Action::PowerOff, soon());
    assert!(stopped.job.unwrap().unwrap_err().contains("shows this role no events"));
    common::done(&member, &vm, &Action::PowerOn, soon());
    let refused = member.perform(&vm, &Action::Migrate, soon()).result.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Denied);
    assert!(refused.message.contains("os-migrate-server:migrate_live"), "{refused}");
    assert_eq!(member.remove_all(soon()), Ok(1));
    let reader = connect("reader").unwrap_err();
    assert_eq!(reader.kind, FailureKind::Denied);
    assert!(reader.message.contains("add_image") && reader.message.contains("a role"), "{reader}");
}

/// A kind of operation: what is done before, what is then done, and the calls that it makes of the cloud, by their method and a part.
type Life = (Vec<Action>, Option<Action>, Vec<(&'static str, &'static str)>);

fn lives() -> Vec<Life> {
    let name = |name: &str| name.to_owned();
    let (disk, port) = (Action::AttachDisk { name: name("d") }, Action::AttachPort { name: name("p") });
    let (snapshot, on) = (Action::CreateSnapshot { name: name("s") }, Action::PowerOn);
    let (volume, card) = ("/os-volume_attachments", "/os-interface");
    vec![
        (vec![], None, vec![("POST", "/servers "), ("POST", "os-stop")]),
        (vec![], Some(on.clone()), vec![("POST", "os-start"), ("POST", "os-getConsoleOutput")]),
        (vec![on.clone()], Some(Action::PowerOff), vec![("POST", "os-stop")]),
        (vec![on.clone()], Some(Action::Reset), vec![("POST", "reboot")]),
        (vec![on.clone()], Some(Action::Suspend), vec![("POST", "suspend")]),
        (vec![on.clone(), Action::Suspend], Some(Action::Resume), vec![("POST", "resume")]),
        (
            vec![],
            Some(Action::Clone { into: name("{label}-2"), kind: CloneKind::Full }),
            vec![("POST", "/servers "), ("POST", "os-getConsoleOutput")],
        ),
        (vec![on.clone()], Some(Action::Migrate), vec![("POST", "os-migrateLive")]),
        (vec![], Some(Action::ColdMigrate), vec![("POST", "migrate"), ("POST", "confirmResize")]),
        (vec![], Some(Action::Resize), vec![("POST", "resize"), ("POST", "confirmResize")]),
        (vec![], Some(Action::Rebuild), vec![("POST", "rebuild")]),
        (vec![on.clone()], Some(Action::Shelve), vec![("POST", "shelve")]),
        (vec![on.clone(), Action::Shelve], Some(Action::Unshelve), vec![("POST", "unshelve")]),
        (vec![], Some(snapshot.clone()), vec![("POST", "createImage"), ("GET", "/image/v2/images/")]),
        (
            vec![snapshot.clone()],
            Some(Action::DeleteSnapshot { name: name("s") }),
            vec![("DELETE", "/image/v2/images/")],
        ),
        (vec![snapshot], Some(Action::RevertSnapshot { name: name("s") }), vec![("POST", "rebuild")]),
        (vec![], Some(Action::Reconfigure { note: name("n") }), vec![("POST", "/metadata")]),
        (vec![on], Some(Action::Console), vec![("POST", "/remote-consoles")]),
        (vec![], Some(disk.clone()), vec![("POST", "/volumes "), ("POST", volume)]),
        (
            vec![disk.clone()],
            Some(Action::DetachDisk { name: name("d") }),
            vec![("DELETE", volume), ("DELETE", "/volumes/")],
        ),
        (vec![], Some(port.clone()), vec![("POST", card)]),
        (vec![port.clone()], Some(Action::DetachPort { name: name("p") }), vec![("DELETE", card)]),
        (vec![disk, port], Some(Action::Remove), vec![("DELETE", "/servers/"), ("DELETE", "/volumes/")]),
    ]
}

/// What [`a_run_that_is_killed_in_any_phase_of_any_operation_leaves_nothing_that_is_not_found`] kills: it prepares, says so, and goes on once it is told to.
#[test]
#[ignore = "another test runs it"]
fn a_run_that_is_killed() {
    let Ok(which) = std::env::var("VIRTBENCH_LIFE") else { return };
    let platform =
        OnOpenStack::connect(&std::env::var("VIRTBENCH_OPENSTACK").unwrap(), "none", soon()).unwrap();
    let (before, then, _) = lives().swap_remove(which.parse().unwrap());
    let vm = format!("{}-1", platform.label());
    if then.is_some() {
        platform.create(&vm, soon()).unwrap();
    }
    for action in before {
        platform.perform(&vm, &action, soon()).result.unwrap();
    }
    println!("\nis ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let done = match then {
        None => platform.create(&vm, soon()),
        Some(Action::Clone { kind, .. }) => {
            let into = format!("{}-2", platform.label());
            platform.perform(&vm, &Action::Clone { into, kind }, soon()).result
        }
        Some(action) => platform.perform(&vm, &action, soon()).result,
    };
    panic!("it was not killed: {done:?}");
}

/// Names of all servers, images and volumes of the project.
fn names(local: &LocalOpenStack) -> Vec<String> {
    let limit = || Limit::at(soon());
    let cloud = OpenStack::connect(&Address::parse(&local.argument()).unwrap(), limit()).unwrap();
    let mut names = Vec::new();
    cloud.each_server(limit(), |server| names.push(server.name)).unwrap();
    cloud.each_image(limit(), |image| names.push(image.name)).unwrap();
    cloud.each_volume(limit(), |volume| names.extend(volume.name)).unwrap();
    names.sort();
    names
}

fn stranger(local: &LocalOpenStack) {
    let cloud = OpenStack::connect(&Address::parse(&local.argument()).unwrap(), Limit::at(soon())).unwrap();
    let metadata = [("virtbench".to_owned(), "0123456789abcdef".to_owned())].into();
    let new = NewServer::new("virtbench-0123456789abcdef-1", "virtbench", &metadata, ["f1", "i1"]);
    cloud.perform("", &Operation::Create(new), Limit::at(soon())).1.unwrap();
    cloud.make_empty_image("virtbench-0123456789abcdef-1.s", &metadata, Limit::at(soon())).unwrap();
    let volume = Operation::CreateVolume {
        name: "virtbench-0123456789abcdef-1.d",
        description: "",
        metadata: &metadata,
        gib: 1,
    };
    cloud.perform("", &volume, Limit::at(soon())).1.unwrap();
}

/// Kills one, at a call that has come and was not done (`asked`), was done and not answered (`done`), or was answered and its task does not end
/// (`answered`).
fn kill(local: &LocalOpenStack, life: usize, (method, what): (&str, &str), when: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "a_run_that_is_killed"])
        .env("VIRTBENCH_LIFE", life.to_string())
        .env("VIRTBENCH_OPENSTACK", format!("{}{MADE_OF}", local.argument()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line == "is ready"), "{life}: it does not get ready");
    let hold = json!({"method": method, "what": what, "when": when});
    local.control(&json!({ "hold": hold })).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let begun = Instant::now();
    loop {
        let ended = child.try_wait().unwrap();
        if local.holds().unwrap() {
            break;
        }
        assert_eq!(ended, None, "{life}: {method} {what} {when}: it ended");
        assert!(begun.elapsed() < Duration::from_secs(120), "{life}: {method} {what} does not come");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    local.control(&json!({"hold": null, "stuck": false})).unwrap();
}

/// Four clouds at once, each with every fourth operation. Each call is killed in one phase, another one from call to call; in each with
/// `VIRTBENCH_KILLS=all`, as in `make soak`.
#[test]
fn a_run_that_is_killed_in_any_phase_of_any_operation_leaves_nothing_that_is_not_found() {
    let (lives, all) = (lives(), std::env::var("VIRTBENCH_KILLS").is_ok_and(|kills| kills == "all"));
    thread::scope(|scope| {
        for first in 0..4 {
            let lives = &lives;
            scope.spawn(move || {
                let local = LocalOpenStack::start(0.0).unwrap();
                stranger(&local);
                let (strangers, place) = (names(&local), LeftPlace::parse(&local.argument()).unwrap());
                for (life, (_, _, calls)) in lives.iter().enumerate().skip(first).step_by(4) {
                    let whens = calls.iter().enumerate().flat_map(|(place, call)| {
                        let of_turn = move |(turn, _): &(usize, &str)| all || (life + place) % 3 == *turn;
                        let phases = ["asked", "done", "answered"].into_iter().enumerate();
                        phases.filter(of_turn).map(move |(_, when)| (call, when))
                    });
                    for (call, when) in whens {
                        kill(&local, life, *call, when);
                        let left = place.runs().unwrap();
                        assert_eq!(left.len(), 1, "{call:?} {when}: its image says that it lived");
                        let runs = left.into_iter().map(|run| run.run).collect();
                        place.remove(&runs).unwrap();
                        assert_eq!(names(&local), strangers, "{call:?} {when}");
                    }
                }
            });
        }
    });
}
