//! OpenStack behind the seam of platforms, on a fake one; and on the real services, where they are set up.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "a server of a cloud runs from its beginning, and lives another life")]
mod common;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use virtbench_openstack::{
    Address, Limit, LocalOpenStack, NewServer, OpenStack, Operation, Pace, Rally, Until,
};
use virtbench_operations::VmState;
use virtbench_platforms::{Action, LeftPlace, OnOpenStack, Platform};
use virtbench_record::{CloneKind, FailureKind, JobFigure, OperationKind, Phase};

use common::mark_of_the_dead;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(120)
}

fn address(local: &LocalOpenStack) -> String {
    format!("{}&flavor=tiny&other-flavor=small&image=cirros", local.argument())
}

fn connect(local: &LocalOpenStack) -> OnOpenStack {
    OnOpenStack::connect(&address(local), "none", soon()).unwrap()
}

fn cloud(local: &LocalOpenStack) -> OpenStack {
    OpenStack::connect(&Address::parse(&local.argument()).unwrap(), Limit::at(soon())).unwrap()
}

/// Names of all servers, images and volumes of the project.
fn names(local: &LocalOpenStack) -> Vec<String> {
    let (cloud, mut names, mut images) = (cloud(local), Vec::new(), Vec::new());
    cloud.each_server(Limit::at(soon()), |server| names.push(server.name)).unwrap();
    cloud.each_image(Limit::at(soon()), |image| images.push(image.name)).unwrap();
    cloud.each_volume(Limit::at(soon()), |volume| names.extend(volume.name)).unwrap();
    names.append(&mut images);
    names.sort();
    names
}

/// Makes a server as somebody else did.
fn leave(local: &LocalOpenStack, name: &str, text: Option<&str>, description: &str) {
    let metadata = text.map(|text| ("virtbench".to_owned(), text.to_owned())).into_iter().collect();
    let new = NewServer::new(name, description, &metadata, ["f1", "i1"]);
    cloud(local).perform("", &Operation::Create(new), Limit::at(soon())).1.unwrap();
}

/// All that is asked of a cloud's platform, each operation once.
fn lives(platform: &OnOpenStack) {
    let name = |number: u32| format!("{}-{number}", platform.label());
    let (first, second) = (name(1), name(2));
    platform.create(&first, soon()).unwrap();
    assert_eq!(platform.state(&first, soon()).unwrap(), Some(VmState::Off));
    let text = |text: &str| text.to_owned();
    let steps = [
        (Action::PowerOn, VmState::On),
        (Action::CreateSnapshot { name: text("snap") }, VmState::On),
        (Action::Clone { into: second.clone(), kind: CloneKind::Full }, VmState::On),
        (Action::Reset, VmState::On),
        (Action::Migrate, VmState::On),
        (Action::ColdMigrate, VmState::On),
        (Action::Resize, VmState::On),
        (Action::Resize, VmState::On),
        (Action::Suspend, VmState::Suspended),
        (Action::Resume, VmState::On),
        (Action::Reconfigure { note: text("n") }, VmState::On),
        (Action::Rebuild, VmState::On),
        (Action::Shelve, VmState::Shelved),
        (Action::Unshelve, VmState::On),
        (Action::PowerOff, VmState::Off),
        (Action::RevertSnapshot { name: text("snap") }, VmState::Off),
        (Action::DeleteSnapshot { name: text("snap") }, VmState::Off),
    ];
    for (action, state) in steps {
        let performed = common::done(platform, &first, &action, soon());
        let phases = performed.phases;
        assert!(
            phases.get(Phase::Done).is_some() || action.kind() == OperationKind::Reconfigure,
            "{action:?}"
        );
        println!(
            "{:<16} {:?} {:?}",
            action.kind().name(),
            phases.0.map(|ns| ns.map(|ns| ns / 1_000_000)),
            performed.job
        );
        if let Some(job) = performed.job {
            assert!(job.unwrap().contains_key(&JobFigure::ComputeNs), "{action:?}");
        }
        assert_eq!(platform.state(&first, soon()).unwrap(), Some(state), "{action:?}");
    }
    common::done(platform, "", &Action::List, soon());
    let mut listed = platform.list(soon()).unwrap();
    listed.sort();
    assert_eq!(listed, [(first.clone(), VmState::Off), (second.clone(), VmState::On)], "a clone runs");
    common::done(platform, &second, &Action::Remove, soon());
    assert_eq!(platform.state(&second, soon()).unwrap(), None);
    let kind = |action: Action| platform.perform(&first, &action, soon()).result.unwrap_err().kind;
    assert_eq!(kind(Action::Suspend), FailureKind::WrongState);
    assert_eq!(kind(Action::Clone { into: name(3), kind: CloneKind::Linked }), FailureKind::Unsupported);
    assert_eq!(kind(Action::MoveDisk), FailureKind::Unsupported);
}

#[test]
fn openstack_does_what_a_platform_is_asked() {
    let local = LocalOpenStack::start(0.1).unwrap();
    leave(&local, "other", None, "");
    let platform = connect(&local);
    let facts = platform.facts();
    assert_eq!((facts.hosts, facts.others), (2, 1));
    assert!(!format!("{facts:?}{platform:?}").contains("test-only-secret"), "{facts:?}");
    lives(&platform);
    assert_eq!(platform.create("somebodys", soon()).unwrap_err().kind, FailureKind::Refused);
    assert_eq!(platform.remove_all(soon()), Ok(1));
    drop(platform);
    assert_eq!(names(&local), ["other"]);
}

/// Needs root and `scripts/setup-openstack.sh`; `VIRTBENCH_OPENSTACK` is the address of a cloud that runs.
#[test]
#[ignore = "a real cloud: make soak starts one"]
fn a_real_openstack_does_what_a_platform_is_asked() {
    let address = std::env::var("VIRTBENCH_OPENSTACK")
        .expect("VIRTBENCH_OPENSTACK names no cloud: see scripts/openstack-stand.sh");
    let platform = OnOpenStack::connect(&address, "none", soon()).unwrap();
    println!("{:?}", platform.facts());
    lives(&platform);
    assert_eq!(platform.remove_all(soon()), Ok(1));
}

/// As above; its volumes are Cinder's, whose driver keeps no bytes.
#[test]
#[ignore = "a real cloud: make soak starts one"]
fn volumes_of_a_real_openstack_are_attached_and_detached() {
    let address = std::env::var("VIRTBENCH_OPENSTACK")
        .expect("VIRTBENCH_OPENSTACK names no cloud: see scripts/openstack-stand.sh");
    for more in ["", "&volume=1"] {
        let platform = OnOpenStack::connect(&format!("{address}{more}"), "none", soon()).unwrap();
        let vm = format!("{}-1", platform.label());
        let disk = |number: u32| format!("d{number}");
        platform.create(&vm, soon()).unwrap();
        for action in [
            Action::AttachDisk { name: disk(1) },
            Action::AttachDisk { name: disk(2) },
            Action::DetachDisk { name: disk(1) },
            Action::PowerOn,
            Action::AttachDisk { name: disk(3) },
            Action::DetachDisk { name: disk(3) },
        ] {
            let performed = common::done(&platform, &vm, &action, soon());
            println!("{:<12} {:?} {:?}", action.kind().name(), performed.phases, performed.job);
        }
        assert_eq!(platform.remove_all(soon()), Ok(2), "the server and a volume");
        let mut left = 0;
        let cloud = OpenStack::connect(&Address::parse(&address).unwrap(), Limit::at(soon())).unwrap();
        cloud.each_volume(Limit::at(soon()), |_| left += 1).unwrap();
        assert_eq!(left, 0, "also those that Nova has made");
    }
}

/// A figure of this process's memory, in MiB.
fn memory_mib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Others' servers, made by `tests/openstack/fill.py`, neither fill this process's memory nor are touched while all is done among them.
#[test]
#[ignore = "a real cloud with a thousand servers: make soak makes them"]
fn everything_is_done_among_a_thousand_servers_of_others() {
    let address = std::env::var("VIRTBENCH_OPENSTACK").expect("no cloud: see scripts/openstack-stand.sh");
    let others: usize = std::env::var("VIRTBENCH_SERVERS").unwrap().parse().unwrap();
    let cloud = OpenStack::connect(&Address::parse(&address).unwrap(), Limit::at(soon())).unwrap();
    let before = memory_mib("VmRSS:");
    let (begun, mut servers) = (Instant::now(), Vec::new());
    cloud.each_server(Limit::at(soon()), |server| servers.push(server)).unwrap();
    println!("{} servers were listed in {:.2} s", servers.len(), begun.elapsed().as_secs_f64());
    let (begun, mut changed) = (Instant::now(), 0);
    cloud.each_changed_server(SystemTime::now(), Limit::at(soon()), |_| changed += 1).unwrap();
    println!("those that changed just now, {changed}, in {:.3} s", begun.elapsed().as_secs_f64());
    let more = memory_mib("VmHWM:").saturating_sub(before);
    println!("the lists took {more} MiB of memory");
    assert!(servers.len() == others && more < 200, "{} servers, {more} MiB", servers.len());
    let platform = OnOpenStack::connect(&address, "none", soon()).unwrap();
    assert_eq!(platform.facts().others as usize, others);
    lives(&platform);
    assert_eq!(platform.remove_all(soon()), Ok(1));
    let mut left = Vec::new();
    cloud.each_server(Limit::at(soon()), |server| left.push(server.id)).unwrap();
    assert!(servers.iter().all(|server| left.contains(&server.id)), "others' servers are as they were");
}

/// Seconds since 1970.
fn seconds(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// An operation as a client measured it, by Rally's names: when it began and ended, and how much earlier it may have ended.
type Measured = (String, f64, f64, f64);

/// That what a client measured of each operation holds what the cloud recorded of the same one: it begins before the cloud does, does not end before a
/// host has begun, and may not have ended before the cloud says that it did.
fn holds_what_was_recorded(cloud: &OpenStack, since: SystemTime, measured: &[Measured]) {
    let mut servers = Vec::new();
    cloud.each_changed_server(since, Limit::at(soon()), |server| servers.push(server.id)).unwrap();
    for (action, name) in [("create", "nova.boot_server"), ("delete", "nova.delete_server")] {
        let recorded = servers.iter().flat_map(|server| cloud.actions_of(server, Limit::at(soon())).unwrap());
        let mut recorded: Vec<_> =
            recorded.filter(|(one, _)| one == action).map(|(_, told)| told.unwrap()).collect();
        recorded.retain(|told| told.begun >= since);
        recorded.sort_by_key(|told| told.begun);
        let mut measured: Vec<_> = measured.iter().filter(|(one, ..)| one == name).collect();
        measured.sort_by(|one, other| one.1.total_cmp(&other.1));
        assert_eq!(recorded.len(), measured.len(), "{name}: one after the other, each is known by its place");
        for (told, (_, begun, ended, unsure)) in recorded.iter().zip(measured) {
            println!(
                "{name}: {:.3} s, of which the cloud worked {:.3} s; sure to {unsure:.3} s",
                ended - begun,
                told.elapsed.as_secs_f64()
            );
            assert!(*begun <= seconds(told.begun), "{name} begins at {begun}: {told:?}");
            assert!(
                *ended >= seconds(told.ended) - told.compute.as_secs_f64(),
                "{name} ends at {ended}: {told:?}"
            );
            assert!(ended - unsure <= seconds(told.ended), "{name} ends at {ended} less {unsure}: {told:?}");
        }
    }
}

/// What Rally calls a duration is the sum of the phases of the same operation: both hold what the cloud recorded of it, and no more than it took until
/// the next look.
#[test]
#[ignore = "a real cloud and Rally: make soak starts them"]
fn what_rally_calls_a_duration_is_the_sum_of_our_phases() {
    const EACH: f64 = 0.2;
    let address = std::env::var("VIRTBENCH_OPENSTACK").expect("no cloud: see scripts/openstack-stand.sh");
    let cloud = OpenStack::connect(&Address::parse(&address).unwrap(), Limit::at(soon())).unwrap();
    let kinds = ["boot_prepoll_delay", "boot_poll_interval", "delete_prepoll_delay", "delete_poll_interval"];
    let settings: String = kinds.map(|kind| format!("nova_server_{kind} = {EACH}\n")).concat();
    let rally = Rally::ready(&settings).unwrap();
    let what = json!({"flavor": {"name": "tiny"}, "image": {"name": "cirros"}, "auto_assign_nic": false});
    let runner = json!({"type": "constant", "times": 3, "concurrency": 1});
    let task = json!({"NovaServers.boot_and_delete_server": [{"args": what, "runner": runner}]});
    let since = SystemTime::now();
    let theirs = rally.run(&task).unwrap().into_iter().flatten();
    // A look that was asked for before the end, and answered after it, counts to the time.
    let theirs: Vec<Measured> =
        theirs.map(|one| (one.name, one.begun, one.ended, one.ended - one.begun)).collect();
    assert_eq!(theirs.len(), 6, "{theirs:?}");
    holds_what_was_recorded(&cloud, since, &theirs);

    let steady = Duration::from_secs_f64(EACH);
    let cloud = cloud.paced(Pace::Steady { first: steady, then: steady });
    let find =
        |name: &str| cloud.flavors(Limit::at(soon())).unwrap().into_iter().find(|one| one.name == name);
    let image = cloud.images(Limit::at(soon())).unwrap().into_iter().find(|one| one.name == "cirros");
    let (flavor, image, metadata) = (find("tiny").unwrap().id, image.unwrap().id, BTreeMap::new());
    let (since, mut ours) = (SystemTime::now(), Vec::new());
    let mut done = |server: &str, operation: &Operation<'_>, name: &str| {
        let (begun, from) = (seconds(SystemTime::now()), Instant::now());
        let (times, made) = cloud.perform_until(server, operation, Until::Done, Limit::at(soon()));
        let whole = from.elapsed();
        let sum = times.client + times.accepted + times.scheduling + times.running + times.done;
        assert!(sum <= whole && times.seen.is_none(), "{times:?}");
        ours.push((name.to_owned(), begun, begun + sum.as_secs_f64(), times.uncertainty.as_secs_f64()));
        made.unwrap()
    };
    for number in 0..3 {
        let name = format!("rally-beside-{number}");
        let new = NewServer::new(&name, "", &metadata, [&flavor, &image]);
        let server = done("", &Operation::Create(new), "nova.boot_server").unwrap();
        done(&server, &Operation::Delete, "nova.delete_server");
    }
    holds_what_was_recorded(&cloud, since, &ours);
}

#[test]
fn a_run_on_openstack_changes_and_removes_only_its_own() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let (ours, other) = (connect(&local), connect(&local));
    let dead = mark_of_the_dead();
    let text = |name: &str| format!("{dead} name={name} host=here made_s=1 seen_s=1");
    leave(&local, "renamed-by-somebody", Some(&text("virtbench-x-1")), &format!("{dead} name=virtbench-x-1"));
    leave(&local, "virtbench-0123-metadata-alone", Some(&text("virtbench-x-2")), "mine");
    leave(&local, "virtbench-0123-description-alone", None, &format!("{dead} name=virtbench-x-3"));
    leave(&local, "virtbench-0123456789abcdef-4", None, "");
    for (name, description) in
        [("renamed", format!("{dead} name=virtbench-x-1.disk1")), ("foreign", "mine".to_owned())]
    {
        let metadata = BTreeMap::from([("virtbench".to_owned(), text("virtbench-x-1.disk1"))]);
        let volume = Operation::CreateVolume { name, description: &description, metadata: &metadata, gib: 1 };
        cloud(&local).perform("", &volume, Limit::at(soon())).1.unwrap();
    }
    let image = BTreeMap::from([("virtbench".to_owned(), text("virtbench-x-1.snap"))]);
    cloud(&local).make_empty_image("inherited", &image, Limit::at(soon())).unwrap();
    cloud(&local).make_empty_image("virtbench-x-1.snap", &image, Limit::at(soon())).unwrap();
    for platform in [&ours, &other] {
        platform.create(&format!("{}-1", platform.label()), soon()).unwrap();
    }
    let place = LeftPlace::parse(&local.argument()).unwrap();
    assert_eq!(place.runs().unwrap().len(), 3, "two that live, and a dead one");
    assert_eq!(ours.sweep(soon()), Ok(3), "a server, an image and a volume of the dead one");
    assert_eq!(ours.remove_all(soon()), Ok(1));
    assert_eq!(other.list(soon()).unwrap().len(), 1, "another run's stay");
    drop((ours, other));
    let strangers = [
        "foreign",
        "inherited",
        "virtbench-0123-description-alone",
        "virtbench-0123-metadata-alone",
        "virtbench-0123456789abcdef-4",
    ];
    let left: Vec<String> =
        names(&local).into_iter().filter(|name| strangers.contains(&name.as_str())).collect();
    assert_eq!(left, strangers);
}

#[test]
fn a_server_that_somebody_takes_over_is_left_as_it_is() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let platform = connect(&local);
    let vm = format!("{}-1", platform.label());
    platform.create(&vm, soon()).unwrap();
    let (cloud, mut id) = (cloud(&local), String::new());
    cloud.each_server(Limit::at(soon()), |server| id = server.id).unwrap();
    let note = Operation::Note { name: "virtbench", text: "mine now" };
    cloud.perform(&id, &note, Limit::at(soon())).1.unwrap();
    let refused = platform.perform(&vm, &Action::PowerOn, soon()).result.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Denied, "{refused}");
    assert_eq!(platform.remove_all(soon()), Ok(0));
    assert_eq!(names(&local).len(), 2, "it, and the image that says that the run lives");
}

#[test]
fn failures_on_openstack_have_kinds_and_consoles_that_cannot_be_read_say_so() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let platform = connect(&local);
    let vm = |number: u32| format!("{}-{number}", platform.label());
    platform.create(&vm(1), soon()).unwrap();
    local.control(&json!({"console": false})).unwrap();
    let started = common::done(&platform, &vm(1), &Action::PowerOn, soon());
    assert_eq!(started.phases.get(Phase::Seen), None);
    let notes = platform.facts().notes;
    assert!(notes.iter().any(|note| note.starts_with("seen: unavailable: no console")), "{notes:?}");
    let kind = |action: Action| platform.perform(&vm(1), &action, soon()).result.unwrap_err().kind;
    local.control(&json!({"hosts": 1})).unwrap();
    assert_eq!(kind(Action::Migrate), FailureKind::NoRoom, "it stays where it is, and the action says why");
    local.control(&json!({"quota": 1})).unwrap();
    let clone = Action::Clone { into: vm(2), kind: CloneKind::Full };
    assert_eq!(kind(clone.clone()), FailureKind::NoRoom);
    local.control(&json!({"quota": null, "hosts": 0})).unwrap();
    assert_eq!(kind(clone), FailureKind::NoRoom);
    assert_eq!(platform.remove_all(soon()), Ok(2), "also a server that failed to be built");
}

#[test]
fn volumes_and_ports_are_attached_detached_and_go_with_their_server() {
    let local = LocalOpenStack::start(0.1).unwrap();
    for (more, on_volume) in [("&network=private", false), ("&network=auto&volume=2", true)] {
        let platform = OnOpenStack::connect(&format!("{}{more}", address(&local)), "none", soon()).unwrap();
        let vm = format!("{}-1", platform.label());
        platform.create(&vm, soon()).unwrap();
        let name = |name: &str| name.to_owned();
        for action in [
            Action::AttachDisk { name: name("d1") },
            Action::AttachDisk { name: name("d2") },
            Action::AttachPort { name: name("p1") },
            Action::DetachDisk { name: name("d1") },
            Action::AttachPort { name: name("p2") },
            Action::DetachPort { name: name("p1") },
        ] {
            let performed = common::done(&platform, &vm, &action, soon());
            assert!(performed.job.unwrap().unwrap().contains_key(&JobFigure::ComputeNs), "{action:?}");
        }
        let kind = |action: Action| platform.perform(&vm, &action, soon()).result.unwrap_err().kind;
        assert_eq!(kind(Action::DetachDisk { name: name("d1") }), FailureKind::Vanished);
        assert_eq!(kind(Action::DetachPort { name: name("p1") }), FailureKind::Vanished);
        assert_eq!(
            names(&local).len(),
            3,
            "the server, a volume, and the image that says that the run lives"
        );
        assert_eq!(platform.lacks(OperationKind::CreateSnapshot).is_some(), on_volume);
        common::done(&platform, &vm, &Action::Remove, soon());
        assert_eq!(names(&local).len(), 1);
        platform.create(&vm, soon()).unwrap();
        common::done(&platform, &vm, &Action::AttachDisk { name: name("d3") }, soon());
        assert_eq!(platform.remove_all(soon()), Ok(2), "what is attached is removed with the rest");
        drop(platform);
        assert_eq!(names(&local).len(), 0);
    }
}

#[test]
fn a_cloud_without_volumes_or_networks_says_so_by_name() {
    let local = LocalOpenStack::start(0.0).unwrap();
    local.control(&json!({"services": ["compute", "image"]})).unwrap();
    let platform = connect(&local);
    assert!(platform.lacks(OperationKind::AttachDisk).unwrap().contains("(Cinder)"));
    assert!(platform.lacks(OperationKind::AttachPort).unwrap().contains("network="));
    let refused = |more: &str| {
        let address = format!("{}{more}", address(&local));
        OnOpenStack::connect(&address, "none", soon()).unwrap_err().message
    };
    assert!(refused("&volume=1").contains("volume= in the address needs Cinder"), "{}", refused("&volume=1"));
    assert!(refused("&network=private").contains("no network"), "{}", refused("&network=private"));
}

#[test]
fn a_network_is_found_by_its_name_or_id_unless_several_have_it() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let cloud = cloud(&local);
    let found = |name: &str| cloud.network(name, Limit::at(soon()));
    assert_eq!((found("private").unwrap().as_str(), found("n1").unwrap().as_str()), ("n1", "n1"));
    assert_eq!(found("auto").unwrap(), "auto");
    assert!(found("twice").unwrap_err().to_string().contains("several networks are named twice"));
    assert!(found("nowhere").unwrap_err().to_string().contains("there is no network nowhere"));
}

#[test]
fn a_cloud_whose_certificate_nobody_signed_is_believed_only_when_told_to() {
    let local = LocalOpenStack::start_with_tls(0.0).unwrap();
    let connected = |more: &str| {
        let address = Address::parse(&format!("{}{more}", local.argument())).unwrap();
        OpenStack::connect(&address, Limit::at(soon()))
            .map(|cloud| cloud.flavors(Limit::at(soon())).unwrap().len())
    };
    let refused = connected("").unwrap_err().to_string();
    assert!(refused.contains("certificate") && refused.contains("ca=FILE"), "{refused}");
    assert_eq!(connected(&format!("&ca={}", local.certificate().display())).unwrap(), 2);
    assert_eq!(connected("&verify=no").unwrap(), 2);
    let other = "0123456789abcdef".repeat(4);
    assert!(connected(&format!("&thumbprint={other}")).is_err(), "another certificate's digest");
}
