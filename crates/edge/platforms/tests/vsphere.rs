//! vSphere behind the seam of platforms, on govmomi's simulator.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;
use std::time::{Duration, Instant};

use virtbench_lab::{Label, Owner};
use virtbench_platforms::{Action, OnVsphere, Performed, Platform, VmState};
use virtbench_record::{CloneKind, FailureKind, OperationKind, Phase};
use virtbench_vsphere::{Address, LocalVcenter, Operation, Until, Vsphere};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn connect(vcenter: &LocalVcenter) -> OnVsphere {
    OnVsphere::connect(&vcenter.argument(), soon()).unwrap()
}

fn done(platform: &OnVsphere, vm: &str, action: &Action) -> Performed {
    let performed = platform.perform(vm, action, soon());
    assert_eq!(performed.result, Ok(()), "{action:?}");
    for phase in [Phase::Client, Phase::Accepted] {
        assert!(performed.phases.get(phase).is_some_and(|length| length > 0), "{action:?}: {performed:?}");
    }
    performed
}

/// The label of a process that has ended.
fn label_of_the_dead() -> String {
    let mut child = Command::new("true").spawn().unwrap();
    let mut words: Vec<String> = Label::new().to_string().split('-').map(str::to_owned).collect();
    words[3] = child.id().to_string();
    child.wait().unwrap();
    let label = words.join("-");
    assert_eq!(Label::parse(&label).unwrap().owner(), Owner::Gone);
    label
}

/// Makes a VM as somebody else did.
fn leave(vcenter: &LocalVcenter, name: &str, label: &str) {
    let server =
        Vsphere::connect(&Address::parse(&vcenter.argument()).unwrap(), vcenter.password(), soon()).unwrap();
    let (_, cluster) = server.cluster(soon()).unwrap();
    let operation = Operation::Create { name, label, cluster: &cluster, host: &cluster.hosts[0] };
    let made = server.perform(&operation, Until::Seen, soon()).1.unwrap().unwrap();
    server.perform(&Operation::PowerOn(&made), Until::Seen, soon()).1.unwrap();
}

#[test]
fn vsphere_does_what_a_platform_is_asked() {
    let vcenter = LocalVcenter::start(&["--hosts", "2", "--vms", "3"]).unwrap();
    let platform = connect(&vcenter);
    let facts = platform.facts();
    assert_eq!((facts.hosts, facts.others), (2, 3));
    assert!(!format!("{facts:?}{platform:?}").contains("password"), "{facts:?}");
    let name = |number: u32| format!("{}-{number}", platform.label());
    let (first, second) = (name(1), name(2));
    platform.create(&first, soon()).unwrap();
    let text = |text: &str| text.to_owned();
    let steps = [
        (Action::CreateSnapshot { name: text("s") }, VmState::Off),
        (Action::Clone { into: second.clone(), kind: CloneKind::Linked }, VmState::Off),
        (Action::DeleteSnapshot { name: text("s") }, VmState::Off),
        (Action::AttachDisk { name: text("d") }, VmState::Off),
        (Action::DetachDisk { name: text("d") }, VmState::Off),
        (Action::PowerOn, VmState::On),
        (Action::Migrate, VmState::On),
        (Action::Suspend, VmState::Suspended),
        (Action::Resume, VmState::On),
        (Action::Reconfigure { note: text("n") }, VmState::On),
        (Action::PowerOff, VmState::Off),
    ];
    for (action, state) in steps {
        let performed = done(&platform, &first, &action);
        assert!(performed.phases.get(Phase::Seen).is_some(), "{action:?}: {performed:?}");
        assert_eq!(platform.state(&first, soon()).unwrap(), Some(state), "{action:?}");
    }
    done(&platform, "", &Action::List);
    let mut listed = platform.list(soon()).unwrap();
    listed.sort();
    assert_eq!(listed, [(first.clone(), VmState::Off), (second.clone(), VmState::Off)]);
    done(&platform, &second, &Action::Remove);
    assert_eq!(platform.state(&second, soon()).unwrap(), None);

    let kind = |vm: &str, action: Action| platform.perform(vm, &action, soon()).result.unwrap_err().kind;
    assert_eq!(kind(&first, Action::PowerOff), FailureKind::WrongState);
    assert_eq!(kind(&second, Action::PowerOn), FailureKind::Vanished);
    assert_eq!(kind("DC0_C0_RP0_VM0", Action::PowerOff), FailureKind::Vanished);
    let reflink = Action::Clone { into: name(3), kind: CloneKind::Reflink };
    assert_eq!(kind(&first, reflink), FailureKind::Unsupported);
    assert!(
        platform.lacks(OperationKind::Console).is_some() && platform.lacks(OperationKind::Migrate).is_none()
    );
    assert_eq!(platform.create("somebodys", soon()).unwrap_err().kind, FailureKind::Refused);
}

#[test]
fn a_run_on_vsphere_changes_and_removes_only_its_own() {
    let vcenter = LocalVcenter::start(&["--hosts", "2", "--vms", "3"]).unwrap();
    let dead = label_of_the_dead();
    leave(&vcenter, "copy-of-a-vm", &dead);
    let (ours, other) = (connect(&vcenter), connect(&vcenter));
    leave(&vcenter, &format!("{dead}-1"), &dead);
    assert_eq!(ours.facts().others, 4);
    for platform in [&ours, &other] {
        platform.create(&format!("{}-1", platform.label()), soon()).unwrap();
    }
    assert_eq!(ours.sweep(soon()), Ok(1), "what a dead run has left");
    assert_eq!(ours.sweep(soon()), Ok(0));
    assert_eq!((other.list(soon()).unwrap().len(), ours.remove_all(soon())), (1, Ok(1)));
    assert_eq!((ours.list(soon()).unwrap().len(), other.list(soon()).unwrap().len()), (0, 1));
    let (left, expected) = (connect(&vcenter).facts().others, 4);
    assert_eq!((other.remove_all(soon()), left), (Ok(1), expected));
}

#[test]
fn what_is_no_vsphere_platform_is_said() {
    let refused = |address: &str| OnVsphere::connect(address, soon()).unwrap_err();
    assert_eq!(refused("vsphere+https://h").kind, FailureKind::Refused);
    let folder = std::env::temp_dir().join(format!("virtbench-vsphere-{}", std::process::id()));
    std::fs::write(&folder, "secret").unwrap();
    let nobody =
        refused(&format!("vsphere+https://u@127.0.0.1:1?verify=no&password-file={}", folder.display()));
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(nobody.kind, FailureKind::Unreachable, "{nobody}");
    let vcenter = LocalVcenter::start(&["--hosts", "1", "--vms", "1"]).unwrap();
    let missing = refused(&format!("{}&template=none", vcenter.argument()));
    assert!(missing.message.contains("template=NAME"), "{missing}");
    let only = connect(&vcenter);
    assert!(only.lacks(OperationKind::Migrate).is_some_and(|why| why.contains("only one host")));
    let made =
        OnVsphere::connect(&format!("{}&template=DC0_C0_RP0_VM0", vcenter.argument()), soon()).unwrap();
    made.create(&format!("{}-1", made.label()), soon()).unwrap();
    assert_eq!(made.remove_all(soon()), Ok(1));
}
