//! `virtbench fence resize` and `virtbench fence reslot`

use virtbench_fence_daemon::admin::{
    Change, DiskEdit, EditError, ResizeError, RotationEdit, Step, edit, resize,
};

use super::serve::{failure, load};
use crate::args::fence::{ResizeArgs, ReslotArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;

/// Changes the devices, then the configuration.
pub fn execute(args: &ResizeArgs) -> Outcome {
    let config = load(&args.config)?;
    let change = Change {
        disk: args.disk.clone(),
        size_bytes: args.size,
        cache_bytes: args.cache,
        give_up_end: args.force,
    };
    resize(&config, &change, |step| {
        say(step);
        !interrupt::requested()
    })
    .map_err(broken)?;
    let values = DiskEdit {
        disk: args.disk.clone(),
        size_bytes: args.size,
        cache_bytes: args.cache,
        ..DiskEdit::default()
    };
    edit(&args.config, &[values], RotationEdit::default()).map_err(unchanged)?;
    Ok(())
}

/// Changes the configuration.
pub fn reslot(args: &ReslotArgs) -> Outcome {
    let slots = args.slots.iter().map(|(disk, slots)| DiskEdit {
        disk: disk.clone(),
        slots: Some(*slots),
        ..DiskEdit::default()
    });
    let shares = args.share.iter().map(|(disk, share)| DiskEdit {
        disk: disk.clone(),
        share: Some(*share),
        ..DiskEdit::default()
    });
    let disks: Vec<DiskEdit> = slots.chain(shares).collect();
    let rotation = RotationEdit { slot_ms: args.slot_ms, spare_slots: args.spare };
    if disks.is_empty() && rotation.slot_ms.is_none() && rotation.spare_slots.is_none() {
        let why = "nothing to change: give --slots, --share, --spare or --slot-ms";
        return Err(Failure::message(Kind::Usage, why));
    }
    edit(&args.config, &disks, rotation).map_err(unchanged)?;
    eprintln!("virtbench fence: changed; a daemon that serves it goes by it when it is started again");
    Ok(())
}

fn say(step: Step) {
    match step {
        Step::WrittenBack(0) | Step::Label => {}
        Step::WrittenBack(blocks) => {
            eprintln!("virtbench fence: {blocks} blocks written from the cache to the disks")
        }
        Step::Moved => eprintln!("virtbench fence: the disk was copied to where there is room"),
        Step::Zeroed => eprintln!("virtbench fence: new room zeroed"),
        Step::Cache => eprintln!("virtbench fence: the cache goes by the new sizes"),
    }
}

fn broken(error: ResizeError) -> Failure {
    let kind = match error {
        ResizeError::Serve(error) => return failure(error),
        ResizeError::NoDisk(_) | ResizeError::Value(_) | ResizeError::Shrinks { .. } => Kind::Usage,
        ResizeError::NoRoom { .. } => Kind::Target,
        ResizeError::Damaged { .. } => Kind::Inconsistent,
        ResizeError::Interrupted => Kind::Interrupted,
    };
    Failure::new(kind, error)
}

fn unchanged(error: EditError) -> Failure {
    let kind = match error {
        EditError::Io { .. } => Kind::Target,
        _ => Kind::Usage,
    };
    Failure::new(kind, error)
}
