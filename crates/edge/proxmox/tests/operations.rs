//! Operations on a fake Proxmox VE.

use std::time::{Duration, Instant};

use serde_json::json;
use virtbench_proxmox::{
    Address, FaultKind, Limit, LocalProxmox, NewMachine, Operation, PASSWORD_VARIABLE, Place, Power, Proxmox,
    Secret,
};

pub fn soon() -> Limit {
    Limit::at(Instant::now() + Duration::from_secs(60))
}

pub fn connect(local: &LocalProxmox) -> Proxmox {
    let address = Address::parse(&local.argument()).unwrap();
    let secret = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE).unwrap();
    Proxmox::connect(&address, secret, soon()).unwrap()
}

fn at(vmid: u32) -> Place {
    Place { node: "pve1".into(), vmid }
}

#[test]
fn a_vms_life_goes_by_tasks_and_each_effect_is_seen() {
    let guests = json!([
        {"vmid": 100, "name": "other", "node": "pve1", "status": "running"},
        {"vmid": 101, "name": "another", "node": "pve2"},
    ]);
    let local = LocalProxmox::start(&guests, 0.1).unwrap();
    let server = connect(&local);
    let storages = server.storages("pve1", soon()).unwrap();
    let storage = storages.first().expect("a storage for disks").name.clone();
    let new = NewMachine {
        name: "vb-1",
        description: "first line\nsecond",
        tag: "virtbench",
        memory_mib: 64,
        disk: Some((&storage, 1)),
        bridge: Some("vmbr0"),
        pool: None,
    };
    let vm = at(server.next_number(soon()).unwrap());
    let done = |place: &Place, operation: &Operation<'_>| {
        let (times, result) = server.perform(place, operation, soon());
        assert_eq!(result, Ok(()), "{operation:?}");
        assert!(
            times.was_accepted && times.was_over && !times.accepted.is_zero(),
            "{operation:?}: {times:?}"
        );
        times
    };
    done(&vm, &Operation::Create(new));
    assert_eq!(server.description(&vm, soon()).unwrap().as_deref(), Some("first line\nsecond"));
    assert_eq!(server.power(&vm, soon()), Ok(Some(Power::Off)));
    done(&vm, &Operation::CreateSnapshot { name: "before" });
    done(&vm, &Operation::DeleteSnapshot { name: "before" });
    let slot = server.free_slot(&vm, soon()).unwrap().unwrap();
    done(&vm, &Operation::AttachDisk { slot, storage: &storage, mib: 128 });
    assert_ne!(server.free_slot(&vm, soon()).unwrap(), Some(slot));
    done(&vm, &Operation::DetachDisk { slot });
    for (operation, power) in [
        (Operation::Start, Power::On),
        (Operation::Suspend, Power::Suspended),
        (Operation::Resume, Power::On),
        (Operation::Stop, Power::Off),
    ] {
        done(&vm, &operation);
        assert_eq!(server.power(&vm, soon()), Ok(Some(power)), "{operation:?}");
    }
    done(&vm, &Operation::Describe { description: "new", tags: Some("a;b") });
    let copy = at(vm.vmid + 1);
    let clone = Operation::Clone {
        into: copy.vmid,
        name: "vb-2",
        description: "of a copy",
        full: true,
        pool: None,
        storage: None,
    };
    done(&vm, &clone);
    assert_eq!(server.description(&copy, soon()).unwrap().as_deref(), Some("of a copy"));
    done(&copy, &Operation::Migrate { target: "pve2", online: false, with_disks: true });
    let moved = Place { node: "pve2".into(), vmid: copy.vmid };
    assert_eq!((server.power(&copy, soon()), server.power(&moved, soon())), (Ok(None), Ok(Some(Power::Off))));
    done(&moved, &Operation::Delete);
    done(&vm, &Operation::Delete);
    let machines = server.machines(soon()).unwrap();
    assert_eq!(machines.iter().map(|machine| machine.place.vmid).collect::<Vec<_>>(), [100, 101]);
}

#[test]
fn a_task_takes_its_time_and_a_refusal_is_told_by_its_kind() {
    let guests = json!([{"vmid": 101, "name": "slow", "node": "pve2", "start_secs": 2}]);
    let local = LocalProxmox::start(&guests, 0.1).unwrap();
    let server = connect(&local);
    let slow = Place { node: "pve2".into(), vmid: 101 };
    let (times, started) = server.perform(&slow, &Operation::Start, soon());
    assert_eq!(started, Ok(()));
    assert!(times.running + times.done >= Duration::from_millis(190), "it pauses 0.2 s: {times:?}");
    let fault =
        |place: &Place, operation: &Operation<'_>| server.perform(place, operation, soon()).1.unwrap_err();
    assert_eq!(fault(&slow, &Operation::Start).fault(), Some(FaultKind::WrongState));
    assert_eq!(fault(&slow, &Operation::Delete).fault(), Some(FaultKind::WrongState));
    assert_eq!(fault(&at(9999), &Operation::Start).fault(), Some(FaultKind::NotFound));
    let missing = fault(&slow, &Operation::DeleteSnapshot { name: "none" });
    assert_eq!(missing.fault(), Some(FaultKind::NotFound));
    assert!(missing.to_string().contains("qmdelsnapshot"), "{missing}");
}

#[test]
fn a_start_is_seen_once_the_guests_agent_answers_and_a_locked_vm_says_so() {
    let guests = json!([
        {"vmid": 100, "name": "answers", "config": {"agent": "1"}, "agent": {}},
        {"vmid": 101, "name": "silent", "config": {"agent": "1"}},
        {"vmid": 102, "name": "locked", "lock": "backup"},
    ]);
    let local = LocalProxmox::start(&guests, 0.0).unwrap();
    let server = connect(&local);
    assert_eq!(server.perform(&at(100), &Operation::Start, soon()).1, Ok(()));
    let short = Limit::at(Instant::now() + Duration::from_secs(2));
    let silent = server.perform(&at(101), &Operation::Start, short).1.unwrap_err().to_string();
    assert!(silent.contains("agent answers"), "{silent}");
    let locked = server.perform(&at(102), &Operation::Start, soon()).1.unwrap_err();
    assert_eq!(locked.fault(), Some(FaultKind::Locked));
    assert!(
        locked.to_string().contains("VM is locked (backup)") && locked.to_string().contains("qm unlock"),
        "{locked}"
    );
}

#[test]
fn a_server_that_is_back_has_forgotten_the_ticket_and_is_asked_for_another() {
    let guests = json!([{"vmid": 100, "name": "one", "node": "pve1"}]);
    let mut local = LocalProxmox::start(&guests, 0.0).unwrap();
    let server = connect(&local);
    local.restart().unwrap();
    assert_eq!(server.machines(soon()).unwrap().len(), 1);
    assert_eq!(server.perform(&at(100), &Operation::Start, soon()).1, Ok(()));
    local.kill();
    let gone = server.perform(&at(100), &Operation::Stop, Limit::at(Instant::now() + Duration::from_secs(1)));
    assert!(gone.1.unwrap_err().to_string().contains("cannot reach"));
}
