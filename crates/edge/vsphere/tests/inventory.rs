//! The inventory of a large simulated vCenter, read and followed; what memory it takes.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::time::{Duration, Instant};

use virtbench_vsphere::{Address, LocalVcenter, Operation, PlaceNames, Power, Until, Vsphere};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(300)
}

/// Memory of this process in MiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// VMs of the simulator: `VIRTBENCH_VSPHERE_VMS`, a tenth as many hosts.
fn size() -> usize {
    std::env::var("VIRTBENCH_VSPHERE_VMS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

#[test]
fn a_large_inventory_is_read_followed_and_small() {
    let vms = size();
    let (hosts, all) = ((vms / 10).to_string(), vms.to_string());
    let vcenter = LocalVcenter::start(&["--hosts", &hosts, "--vms", &all]).unwrap();
    let vsphere =
        Vsphere::connect(&Address::parse(&vcenter.argument()).unwrap(), vcenter.password(), soon()).unwrap();
    let inventory = vsphere.inventory(soon()).unwrap();
    // The simulator makes clusters of a hundred hosts.
    let first = PlaceNames { cluster: Some("DC0_C0".into()), ..PlaceNames::default() };
    assert_eq!((inventory.len(), vsphere.cluster(&first, soon()).unwrap().0), (vms, vms / 10));
    assert!(
        inventory.iter().all(|(_, machine)| machine.power == Power::On
            && machine.host.is_some()
            && machine.label.is_none())
    );

    // Updates come in pages, and later ones are of single VMs.
    let mut followed = vsphere.follow(soon()).unwrap();
    let mut pages = 1;
    while followed.next(Duration::from_secs(1), soon()).unwrap() {
        pages += 1;
    }
    assert_eq!(followed.inventory().len(), vms);
    assert!(pages >= vms / 100, "{pages} pages");
    let (machine, _) = inventory.iter().next().unwrap();
    vsphere.perform(&Operation::PowerOff(machine), Until::Done, soon()).1.unwrap();
    while followed.inventory().get(machine).is_some_and(|machine| machine.power == Power::On) {
        followed.next(Duration::from_secs(10), soon()).unwrap();
    }
    vsphere.perform(&Operation::Destroy(machine), Until::Seen, soon()).1.unwrap();
    while followed.inventory().get(machine).is_some() {
        followed.next(Duration::from_secs(10), soon()).unwrap();
    }
    assert_eq!(followed.inventory().len(), vms - 1);
    let memory = resident();
    println!("{vms} VMs: at most {memory} MiB of this process");
    assert!(memory < 200, "{memory} MiB for {vms} VMs, twice");
}
