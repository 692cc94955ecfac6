//! vSphere behind the seam of platforms, on govmomi's simulator.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::{Duration, Instant};

use virtbench_lab::new_uuid;
use virtbench_mark::{Mark, RunId};
use virtbench_platforms::{Action, LeftPlace, OnVsphere, Platform, VsphereOptions};
use virtbench_record::{CloneKind, FailureKind, OperationKind};
use virtbench_vsphere::{Address, LocalVcenter, Operation, Own, PlaceNames, Shape, Until, Vsphere};

use common::mark_of_the_dead;

const OPTIONS: VsphereOptions = VsphereOptions { memory_bytes: 512 << 20, disk_bytes: 2 << 30 };

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn connect(vcenter: &LocalVcenter) -> OnVsphere {
    OnVsphere::connect(&vcenter.argument(), OPTIONS, soon()).unwrap()
}

fn server(vcenter: &LocalVcenter) -> Vsphere {
    Vsphere::connect(&Address::parse(&vcenter.argument()).unwrap(), vcenter.password(), soon()).unwrap()
}

/// What a process wrote on another machine that last gave a sign so many seconds ago.
fn mark_elsewhere(seconds_ago: u64) -> String {
    let mark = Mark::new(RunId::new_random(), "vm").to_string();
    let at = mark.find("machine=").unwrap() + 8;
    let seen = virtbench_lab::now_s() - seconds_ago;
    format!(
        "{}{}{} uuid=UUID host=elsewhere made_s={seen} seen_s={seen}",
        &mark[..at],
        "0".repeat(10),
        &mark[at + 10..]
    )
}

/// Makes a VM as somebody else did, and starts it.
fn leave(vcenter: &LocalVcenter, name: &str, text: &str, uuid: &str) {
    let server = server(vcenter);
    let (_, cluster) = server.cluster(&PlaceNames::default(), soon()).unwrap();
    let (own, shape, host) = (Own { text, uuid }, Shape::default(), &cluster.hosts[0]);
    let operation = Operation::Create { name, own, shape, cluster: &cluster, host };
    let made = server.perform(&operation, Until::Seen, soon()).1.unwrap().unwrap();
    server.perform(&Operation::PowerOn(&made), Until::Seen, soon()).1.unwrap();
}

fn names(vcenter: &LocalVcenter) -> Vec<String> {
    let inventory = server(vcenter).inventory(soon()).unwrap();
    let mut names: Vec<String> = inventory.iter().map(|(_, machine)| machine.name.to_string()).collect();
    names.retain(|name| !name.starts_with("DC0_"));
    names.sort();
    names
}

#[test]
fn vsphere_does_what_a_platform_is_asked() {
    let vcenter = LocalVcenter::start(&["--hosts", "2", "--vms", "3"]).unwrap();
    let platform = connect(&vcenter);
    let facts = platform.facts();
    assert_eq!((facts.hosts, facts.others), (2, 3));
    assert!(!format!("{facts:?}{platform:?}").contains("password"), "{facts:?}");
    let name = |number: u32| format!("{}-{number}", platform.label());
    let (first, second) = common::lives_through_everything(&platform, CloneKind::Linked, soon);

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
    let (mark, uuid) = (mark_of_the_dead(), new_uuid());
    let text = format!("{mark} uuid={uuid}");
    // A copy that somebody made has what was written, and the name too, and another identity.
    leave(&vcenter, "virtbench-0123456789abcdef-2", &text, &new_uuid());
    leave(&vcenter, "virtbench-0123456789abcdef-3", "", &new_uuid());
    let (ours, other) = (connect(&vcenter), connect(&vcenter));
    leave(&vcenter, "renamed-by-somebody", &text, &uuid);
    assert_eq!(ours.facts().others, 5);
    for platform in [&ours, &other] {
        platform.create(&format!("{}-1", platform.label()), soon()).unwrap();
    }
    assert_eq!(ours.sweep(soon()), Ok(1), "what a dead run has left");
    assert_eq!(ours.sweep(soon()), Ok(0));
    assert_eq!((other.list(soon()).unwrap().len(), ours.remove_all(soon())), (1, Ok(1)));
    assert_eq!((ours.list(soon()).unwrap().len(), other.list(soon()).unwrap().len()), (0, 1));
    let (left, expected) = (connect(&vcenter).facts().others, 5);
    assert_eq!((other.remove_all(soon()), left), (Ok(1), expected));
    drop((ours, other));
    assert_eq!(names(&vcenter), ["virtbench-0123456789abcdef-2", "virtbench-0123456789abcdef-3"]);
}

#[test]
fn what_runs_elsewhere_have_left_on_vsphere_is_shown_and_removed_with_consent() {
    let vcenter = LocalVcenter::start(&["--hosts", "1", "--vms", "1"]).unwrap();
    let place = LeftPlace::parse(&vcenter.argument()).unwrap();
    assert_eq!(place.runs(), Ok(Vec::new()));
    let live = connect(&vcenter);
    for (name, seconds_ago) in [("dead", 7200), ("quiet", 60)] {
        let uuid = new_uuid();
        leave(&vcenter, name, &mark_elsewhere(seconds_ago).replace("UUID", &uuid), &uuid);
    }
    let runs = place.runs().unwrap();
    let is_dead = |name: &str| {
        let its = runs.iter().find(|run| run.things.iter().any(|thing| thing.contains(name))).unwrap();
        its.standing.is_dead()
    };
    assert!(is_dead("dead") && !is_dead("quiet") && !is_dead(&live.label()), "{runs:?}");
    let all = runs.iter().map(|run| run.run.clone()).collect();
    assert_eq!(place.remove(&all), Ok(1), "only what is thought dead");
    assert_eq!(names(&vcenter), ["quiet".to_owned(), format!("{}.shared", live.label())]);
    drop(live);
    assert_eq!(names(&vcenter), ["quiet"]);
}

#[test]
fn leftovers_of_vsphere_go_several_at_a_time() {
    let vcenter =
        LocalVcenter::start(&["--hosts", "1", "--vms", "1", "--task-delay", "Destroy_Task=2s"]).unwrap();
    let mark = mark_of_the_dead();
    for number in 0..16 {
        let uuid = new_uuid();
        leave(&vcenter, &format!("left-{number}"), &format!("{mark} uuid={uuid}"), &uuid);
    }
    // One after the other they take longer than there is.
    let platform =
        OnVsphere::connect(&vcenter.argument(), OPTIONS, Instant::now() + Duration::from_secs(30)).unwrap();
    assert!(
        platform.facts().notes.iter().any(|note| note.contains("removed 16 VMs")),
        "{:?}",
        platform.facts()
    );
    drop(platform);
    assert!(names(&vcenter).is_empty(), "{:?}", names(&vcenter));
}

#[test]
fn a_clone_that_nobody_waits_for_any_more_is_removed_in_the_end() {
    let vcenter =
        LocalVcenter::start(&["--hosts", "2", "--vms", "1", "--task-delay", "CloneVM_Task=3s"]).unwrap();
    let platform = connect(&vcenter);
    let (first, second) = (format!("{}-1", platform.label()), format!("{}-2", platform.label()));
    platform.create(&first, soon()).unwrap();
    let clone = Action::Clone { into: second, kind: CloneKind::Full };
    let late = platform.perform(&first, &clone, Instant::now() + Duration::from_secs(1)).result.unwrap_err();
    assert_eq!(late.kind, FailureKind::TimedOut, "{late}");
    assert_eq!(platform.remove_all(soon()), Ok(2), "the clone came later, and goes too");
    drop(platform);
    assert!(names(&vcenter).is_empty(), "{:?}", names(&vcenter));
}

#[test]
fn vms_have_the_memory_and_the_disk_that_were_asked_for() {
    let vcenter = LocalVcenter::start(&["--hosts", "1", "--vms", "1"]).unwrap();
    let found = server(&vcenter);
    for template in ["", "&template=DC0_C0_RP0_VM0", "&template=/DC0/vm/DC0_C0_RP0_VM0"] {
        let made = OnVsphere::connect(&format!("{}{template}", vcenter.argument()), OPTIONS, soon()).unwrap();
        let vm = format!("{}-1", made.label());
        made.create(&vm, soon()).unwrap();
        let clone = Action::Clone { into: format!("{}-2", made.label()), kind: CloneKind::Full };
        assert_eq!(made.perform(&vm, &clone, soon()).result, Ok(()));
        let inventory = found.inventory(soon()).unwrap();
        let its: Vec<_> = inventory
            .iter()
            .filter(|(_, machine)| machine.name.starts_with(&format!("{}-", made.label())))
            .collect();
        assert_eq!(its.len(), 2);
        for (machine, shown) in its {
            let has = found.hardware(machine, soon()).unwrap();
            let kib: Vec<u64> = has.disks.iter().map(|(disk, _)| disk.kib).collect();
            assert_eq!(
                (has.memory_mib, kib.first()),
                (512, Some(&(2 << 20))),
                "{template}: {shown:?} {has:?}"
            );
        }
        let notes = made.facts().notes.join("; ");
        assert!(notes.contains("512 MiB of memory, a disk of 2048 MiB"), "{notes}");
        made.remove_all(soon()).unwrap();
    }
}

#[test]
fn of_several_places_none_is_guessed() {
    // The simulator makes clusters of a hundred hosts.
    let vcenter = LocalVcenter::start(&["--hosts", "101", "--vms", "2"]).unwrap();
    let at = |options: &str| OnVsphere::connect(&format!("{}{options}", vcenter.argument()), OPTIONS, soon());
    let refused = |options: &str| at(options).map(|_| ()).unwrap_err();
    let several = refused("");
    assert_eq!(several.kind, FailureKind::Refused, "{several}");
    assert!(
        several.message.contains("cluster=NAME") && several.message.contains("DC0_C0, DC0_C1"),
        "{several}"
    );
    for (options, words) in [
        ("&cluster=no", "DC0_C0, DC0_C1"),
        ("&cluster=DC0_C1&datastore=no", "no datastore \"no\""),
        ("&cluster=DC0_C1&pool=no", "no pool \"no\""),
        ("&cluster=DC0_C1&folder=no", "/DC0/vm/no"),
        ("&datacenter=no", "no cluster"),
        ("&host=no", "no cluster"),
    ] {
        let error = refused(options);
        assert!(error.kind == FailureKind::Refused && error.message.contains(words), "{options}: {error}");
    }
    let made =
        at("&datacenter=DC0&cluster=DC0_C1&pool=Resources&datastore=LocalDS_0&folder=/DC0/vm").unwrap();
    made.create(&format!("{}-1", made.label()), soon()).unwrap();
    assert!(made.facts().notes[0].contains("in DC0_C1 on the datastore LocalDS_0"), "{:?}", made.facts());
    assert_eq!(made.remove_all(soon()), Ok(1));
}

#[test]
fn what_is_no_vsphere_platform_is_said() {
    let refused = |address: &str| OnVsphere::connect(address, OPTIONS, soon()).unwrap_err();
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
        OnVsphere::connect(&format!("{}&template=DC0_C0_RP0_VM0", vcenter.argument()), OPTIONS, soon())
            .unwrap();
    made.create(&format!("{}-1", made.label()), soon()).unwrap();
    assert_eq!(made.remove_all(soon()), Ok(1));
}
