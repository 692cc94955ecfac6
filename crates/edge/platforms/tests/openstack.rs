//! OpenStack behind the seam of platforms, on a fake one; and on the real services, where they are set up.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "a server of a cloud runs from its beginning, and lives another life")]
mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use virtbench_openstack::{Address, Limit, LocalOpenStack, NewServer, OpenStack, Operation};
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

/// Names of all servers and images of the project.
fn names(local: &LocalOpenStack) -> Vec<String> {
    let (cloud, mut names, mut images) = (cloud(local), Vec::new(), Vec::new());
    cloud.each_server(Limit::at(soon()), |server| names.push(server.name)).unwrap();
    cloud.each_image(Limit::at(soon()), |image| images.push(image.name)).unwrap();
    names.append(&mut images);
    names.sort();
    names
}

/// Makes a server as somebody else did.
fn leave(local: &LocalOpenStack, name: &str, text: Option<&str>, description: &str) {
    let metadata = text.map(|text| ("virtbench".to_owned(), text.to_owned())).into_iter().collect();
    let new = NewServer {
        name,
        description,
        metadata: &metadata,
        flavor: "f1",
        image: "i1",
        network: "none",
        zone: None,
    };
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
    assert_eq!(kind(Action::AttachDisk { name: text("d") }), FailureKind::Unsupported);
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
    let image = BTreeMap::from([("virtbench".to_owned(), text("virtbench-x-1.snap"))]);
    cloud(&local).make_empty_image("inherited", &image, Limit::at(soon())).unwrap();
    cloud(&local).make_empty_image("virtbench-x-1.snap", &image, Limit::at(soon())).unwrap();
    for platform in [&ours, &other] {
        platform.create(&format!("{}-1", platform.label()), soon()).unwrap();
    }
    let place = LeftPlace::parse(&local.argument()).unwrap();
    assert_eq!(place.runs().unwrap().len(), 3, "two that live, and a dead one");
    assert_eq!(ours.sweep(soon()), Ok(2), "a server and an image of the dead one");
    assert_eq!(ours.remove_all(soon()), Ok(1));
    assert_eq!(other.list(soon()).unwrap().len(), 1, "another run's stay");
    drop((ours, other));
    let strangers = [
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
