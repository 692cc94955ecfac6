//! What VMs have: what was asked for, and what the server says that they got.

use std::time::Instant;

use virtbench_record::FailureKind;
use virtbench_vsphere::{Disk, Hardware, Operation, Reference, Shape, Until, Vsphere};

use super::done::failure;
use crate::failure::Failure;

/// vSphere gives memory in multiples of this, in MiB.
const STEP_MIB: u64 = 4;

/// Memory and a disk of so many bytes.
pub(super) fn shape_of(memory_bytes: u64, disk_bytes: u64) -> Shape {
    let memory_mib = memory_bytes.div_ceil(1 << 20).next_multiple_of(STEP_MIB);
    Shape { memory_mib: Some(memory_mib), disk_kib: Some(disk_bytes.div_ceil(1 << 10)) }
}

/// What VMs will have, in words; those of a template keep its disk where that is larger.
pub(super) fn in_words(wanted: Shape, template: Option<&Hardware>) -> String {
    let kib = wanted.disk_kib.unwrap_or_default();
    let larger = template.and_then(|template| template.disks.first()).filter(|(disk, _)| disk.kib > kib);
    let disk = match larger {
        Some((disk, _)) => {
            format!("the template's disk of {}, which is larger than asked for", mib(disk.kib))
        }
        None => format!("a disk of {}", mib(kib)),
    };
    let others = template.map_or(0, |template| template.disks.len().saturating_sub(1));
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("each VM has {} MiB of memory, {disk}{others}", wanted.memory_mib.unwrap_or_default())
}

fn mib(kib: u64) -> String {
    if kib.is_multiple_of(1024) { format!("{} MiB", kib / 1024) } else { format!("{kib} KiB") }
}

/// Gives a new VM the disk that it is to have, and sees whether it has what was asked for.
pub(super) fn give_shape(
    server: &Vsphere,
    machine: &Reference,
    wanted: Shape,
    deadline: Instant,
) -> Result<(), Failure> {
    let has = server.hardware(machine, deadline).map_err(failure)?;
    let kib = wanted.disk_kib.unwrap_or_default();
    let done = |operation| server.perform(&operation, Until::Done, deadline).1.map_err(failure);
    match has.disks.first() {
        None => {
            let (slot, _) = server.disks(machine, deadline).map_err(failure)?;
            done(Operation::AttachDisk { machine, slot, kib })?;
        }
        Some((disk, file)) if disk.kib < kib => {
            done(Operation::GrowDisk { machine, disk: *disk, file, kib })?;
        }
        Some(_) => return check(&has, wanted),
    }
    check(&server.hardware(machine, deadline).map_err(failure)?, wanted)
}

fn check(has: &Hardware, wanted: Shape) -> Result<(), Failure> {
    let kib = has.disks.first().map_or(0, |(disk, _): &(Disk, String)| disk.kib);
    if Some(has.memory_mib) == wanted.memory_mib && wanted.disk_kib.is_none_or(|least| kib >= least) {
        return Ok(());
    }
    let why = format!(
        "the server says that a new VM has {} MiB of memory and a disk of {}, and {} MiB and {} were asked for",
        has.memory_mib,
        mib(kib),
        wanted.memory_mib.unwrap_or_default(),
        mib(wanted.disk_kib.unwrap_or_default())
    );
    Err(Failure::new(FailureKind::Refused, why))
}

#[cfg(test)]
mod tests {
    use virtbench_vsphere::Slot;

    use super::*;

    fn template(kib: u64) -> Hardware {
        let disk = Disk { key: 1, slot: Slot { controller: 2, unit: 0 }, kib };
        Hardware { memory_mib: 64, disks: vec![(disk, String::new())] }
    }

    #[test]
    fn what_vms_have_is_said_and_checked() {
        let wanted = shape_of((512 << 20) - 1, 2 << 30);
        assert_eq!(wanted, Shape { memory_mib: Some(512), disk_kib: Some(2 << 20) });
        assert_eq!(in_words(wanted, None), "each VM has 512 MiB of memory, a disk of 2048 MiB");
        assert!(in_words(wanted, Some(&template(4 << 20))).contains("template's disk of 4096 MiB"));
        let little = check(&template(2 << 20), wanted).unwrap_err();
        assert!(little.message.contains("64 MiB of memory"), "{little}");
        assert_eq!(check(&Hardware { memory_mib: 512, ..template(2 << 20) }, wanted), Ok(()));
        assert!(check(&Hardware { memory_mib: 512, ..template(1) }, wanted).is_err());
    }
}
