//! Proxmox VE behind the seam of platforms, on a fake one.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::time::{Duration, Instant};

use serde_json::json;
use virtbench_operations::VmState;
use virtbench_platforms::{Action, LeftPlace, OnProxmox, Platform, ProxmoxOptions};
use virtbench_proxmox::{
    Address, Limit, LocalProxmox, NewMachine, Operation, PASSWORD_VARIABLE, Place, Proxmox, Secret,
};
use virtbench_record::{CloneKind, FailureKind, OperationKind};

use common::mark_of_the_dead;

const OPTIONS: ProxmoxOptions = ProxmoxOptions { memory_bytes: 64 << 20, disk_bytes: 1 << 20 };

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn connect(local: &LocalProxmox, options: &str) -> OnProxmox {
    OnProxmox::connect(&format!("{}{options}", local.argument()), OPTIONS, soon()).unwrap()
}

fn server(local: &LocalProxmox) -> Proxmox {
    let address = Address::parse(&local.argument()).unwrap();
    let secret = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE).unwrap();
    Proxmox::connect(&address, secret, Limit::at(soon())).unwrap()
}

fn names(local: &LocalProxmox) -> Vec<String> {
    let mut names: Vec<String> =
        server(local).machines(Limit::at(soon())).unwrap().into_iter().map(|machine| machine.name).collect();
    names.sort();
    names
}

/// Makes a VM as somebody else did.
fn leave(local: &LocalProxmox, vmid: u32, name: &str, tag: &str, description: &str) {
    let new = NewMachine { name, description, tag, memory_mib: 16, disk: None, bridge: None, pool: None };
    let place = Place { node: "pve1".into(), vmid };
    server(local).perform(&place, &Operation::Create(new), Limit::at(soon())).1.unwrap();
}

/// What a process that has ended wrote on a VM.
fn text_of_the_dead(vmid: u32, name: &str) -> String {
    let mark = mark_of_the_dead();
    format!("{mark} vmid={vmid} name={name} host=here made_s=1 seen_s=1")
}

#[test]
fn proxmox_does_what_a_platform_is_asked() {
    let guests = json!([
        {"vmid": 100, "name": "other", "node": "pve1", "status": "running"},
        {"vmid": 101, "name": "elsewhere", "node": "pve2"},
    ]);
    let local = LocalProxmox::start(&guests, 0.0).unwrap();
    let platform = connect(&local, "");
    let facts = platform.facts();
    assert_eq!((facts.hosts, facts.others), (2, 2));
    assert!(!format!("{facts:?}{platform:?}").contains("test-only-secret"), "{facts:?}");
    let name = |number: u32| format!("{}-{number}", platform.label());
    let (first, second) = common::lives_through_everything(&platform, CloneKind::Full, soon);

    let kind = |vm: &str, action: Action| platform.perform(vm, &action, soon()).result.unwrap_err().kind;
    assert_eq!(kind(&first, Action::Suspend), FailureKind::WrongState);
    assert_eq!(kind(&second, Action::PowerOn), FailureKind::Vanished);
    assert_eq!(kind("other", Action::PowerOff), FailureKind::Vanished);
    for way in [CloneKind::Reflink, CloneKind::Linked] {
        assert_eq!(kind(&first, Action::Clone { into: name(3), kind: way }), FailureKind::Unsupported);
    }
    assert!(
        platform.lacks(OperationKind::Console).is_some() && platform.lacks(OperationKind::Migrate).is_none()
    );
    assert_eq!(platform.create("somebodys", soon()).unwrap_err().kind, FailureKind::Refused);
    assert_eq!(platform.remove_all(soon()), Ok(1));
    drop(platform);
    assert_eq!(names(&local), ["elsewhere", "other"]);
}

#[test]
fn vms_end_begin_anew_go_back_and_their_disks_move_and_grow() {
    let local = LocalProxmox::start(&json!([]), 0.0).unwrap();
    let platform = connect(&local, "");
    let vm = format!("{}-1", platform.label());
    platform.create(&vm, soon()).unwrap();
    let state = || platform.state(&vm, soon()).unwrap();
    let done = |action: Action| common::done(&platform, &vm, &action, soon());
    let place = || {
        let machines = server(&local).machines(Limit::at(soon())).unwrap();
        machines.into_iter().find(|machine| machine.name == vm).unwrap().place
    };
    let disk = || server(&local).first_disk(&place(), Limit::at(soon())).unwrap().unwrap();
    let before = disk();
    done(Action::MoveDisk);
    let there = disk();
    assert_ne!(there.storage, before.storage);
    done(Action::MoveDisk);
    assert_eq!(disk().storage, before.storage, "to and fro");
    done(Action::ResizeDisk);
    assert_eq!(disk().mib, before.mib + 16);
    let node = place().node;
    done(Action::ColdMigrate);
    assert_ne!(place().node, node, "it moved while it was off");
    assert_eq!(state(), Some(VmState::Off));
    done(Action::CreateSnapshot { name: "snapshot1".into() });
    done(Action::PowerOn);
    done(Action::Reset);
    assert_eq!(state(), Some(VmState::On));
    done(Action::Shutdown);
    assert_eq!(state(), Some(VmState::Off));
    let kind = |action: Action| platform.perform(&vm, &action, soon()).result.unwrap_err().kind;
    assert_eq!(kind(Action::Reset), FailureKind::WrongState);
    assert_eq!(kind(Action::RevertSnapshot { name: "none".into() }), FailureKind::Vanished);
    done(Action::RevertSnapshot { name: "snapshot1".into() });
    assert_eq!((state(), platform.remove_all(soon())), (Some(VmState::Off), Ok(1)));
}

#[test]
fn vms_are_linked_clones_of_a_template_that_carry_their_own_mark() {
    let disk = json!({"scsi0": "local-lvm:base-9000-disk-0,size=1G"});
    let guests = json!([{"vmid": 9000, "name": "golden", "node": "pve1", "template": true, "config": disk}]);
    let local = LocalProxmox::start(&guests, 0.0).unwrap();
    let platform = connect(&local, "&template=golden");
    let vm = format!("{}-1", platform.label());
    platform.create(&vm, soon()).unwrap();
    let copy = format!("{}-2", platform.label());
    common::done(&platform, &vm, &Action::Clone { into: copy, kind: CloneKind::Linked }, soon());
    assert_eq!((platform.list(soon()).unwrap().len(), platform.remove_all(soon())), (2, Ok(2)));
    drop(platform);
    assert_eq!(names(&local), ["golden"]);
    let refused = |options: &str| {
        let address = format!("{}{options}", local.argument());
        OnProxmox::connect(&address, OPTIONS, soon()).unwrap_err().message
    };
    assert!(refused("&template=silver").contains("no VM has the number or name"));
    assert!(refused("&node=pve9").contains("pve1") && refused("&storage=none").contains("local"));
}

#[test]
fn a_run_on_proxmox_changes_and_removes_only_its_own() {
    let local = LocalProxmox::start(&json!([{"vmid": 100, "name": "other"}]), 0.0).unwrap();
    let (ours, other) = (connect(&local, ""), connect(&local, ""));
    leave(&local, 500, "renamed-by-somebody", "virtbench", &text_of_the_dead(500, "virtbench-x-1"));
    // A copy that somebody made has what was written, and another number.
    leave(&local, 501, "virtbench-x-1", "virtbench", &text_of_the_dead(500, "virtbench-x-1"));
    leave(&local, 502, "virtbench-0123456789abcdef-3", "virtbench", "");
    leave(&local, 503, "without-the-tag", "mine", &text_of_the_dead(503, "virtbench-x-2"));
    for platform in [&ours, &other] {
        platform.create(&format!("{}-1", platform.label()), soon()).unwrap();
    }
    let place = LeftPlace::parse(&local.argument()).unwrap();
    assert_eq!(place.runs().unwrap().len(), 3, "two that live and a dead one");
    assert_eq!(ours.sweep(soon()), Ok(1), "what a dead run has left");
    assert_eq!(ours.sweep(soon()), Ok(0));
    assert_eq!((other.list(soon()).unwrap().len(), ours.remove_all(soon())), (1, Ok(1)));
    assert_eq!((ours.list(soon()).unwrap().len(), other.list(soon()).unwrap().len()), (0, 1));
    assert_eq!(other.remove_all(soon()), Ok(1));
    drop((ours, other));
    let foreign = ["other", "virtbench-0123456789abcdef-3", "virtbench-x-1", "without-the-tag"];
    assert_eq!(names(&local), foreign);
}
