//! `virtbench fence resize` and `virtbench fence reslot`: by the daemon that serves it, if there is one.

use std::path::Path;
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use virtbench_fence_daemon::admin::{Change, DiskEdit, EditError, ResizeStep, RotationEdit, edit, resize};
use virtbench_fence_daemon::config::{Config, Pools};
use virtbench_fence_daemon::control::{ControlError, Question, Refusal, ask};

use super::failed::broken;
use super::pools::{load, of_disk, one, prefix, within};
use crate::args::fence_changes::{ResizeArgs, ReslotArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;
use crate::{interrupt, progress};

/// How often a daemon that ends in the middle is asked again, or found to be gone for good.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_millis(300);

/// Changes the devices, then the configuration.
pub fn execute(args: &ResizeArgs) -> Outcome {
    let pools = load(&args.config)?;
    let config = of_disk(&pools, &args.disk)?;
    let change = Change {
        disk: args.disk.clone(),
        size_bytes: args.size,
        cache_bytes: args.cache,
        give_up_end: args.force,
    };
    let (bar, mut tell) = shown("resizing");
    if served(config, &Question::Resize(change.clone()), &mut tell)? {
        bar.finish_and_clear();
        tell!(
            "virtbench fence: {}the daemon serves it; guests are told, NBD clients see it when they connect anew",
            prefix(config)
        );
    } else {
        resize(config, &change, |step| {
            tell(step);
            !interrupt::requested()
        })
        .map_err(|error| within(config, broken(error)))?;
    }
    bar.finish_and_clear();
    let values = DiskEdit {
        disk: args.disk.clone(),
        size_bytes: args.size,
        cache_bytes: args.cache,
        ..DiskEdit::default()
    };
    edit(&args.config, &[values], None, RotationEdit::default()).map_err(unchanged)?;
    Ok(())
}

/// Has a running daemon do it. False if there is none, or no more.
pub(super) fn served(
    config: &Config,
    question: &Question,
    tell: &mut dyn FnMut(ResizeStep),
) -> Result<bool, Failure> {
    asked_again(config, &mut |socket| ask(socket, question, &mut *tell))
}

/// Asks a running daemon, again if it ends in the middle. False if there is none, or no more.
pub(super) fn asked_again(
    config: &Config,
    ask: &mut dyn FnMut(&Path) -> Result<bool, ControlError>,
) -> Result<bool, Failure> {
    let Some(socket) = config.control_socket() else { return Ok(false) };
    let mut attempts = 1..ATTEMPTS;
    loop {
        match ask(&socket) {
            Err(ControlError::Gone { .. }) if attempts.next().is_some() => thread::sleep(PAUSE),
            answer => return answer.map_err(|error| within(config, refused(error))),
        }
    }
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
    let pools = load(&args.config)?;
    let config = rotating(&pools, &disks, args.pool.as_deref())?;
    let told = served(config, &Question::Reslot { disks: disks.clone(), rotation }, &mut say)?;
    edit(&args.config, &disks, config.pool.as_deref(), rotation).map_err(unchanged)?;
    let when =
        if told { "the daemon goes by it from its next rotation on" } else { "the next daemon goes by it" };
    tell!("virtbench fence: {}changed; {when}", prefix(config));
    Ok(())
}

/// The fence whose rotation changes: a rotation is one pool's.
fn rotating<'a>(pools: &'a Pools, disks: &[DiskEdit], pool: Option<&str>) -> Result<&'a Config, Failure> {
    let first = match (pool, disks) {
        (None, [first, ..]) => of_disk(pools, &first.disk)?,
        _ => one(pools, pool)?,
    };
    for edit in disks {
        let of = of_disk(pools, &edit.disk)?;
        if of.pool != first.pool {
            let [a, b] = [first, of].map(|fence| fence.pool.as_deref().unwrap_or_default());
            let why = format!("disk {} is in pool {b}, not in {a}: change one pool at a time", edit.disk);
            return Err(Failure::message(Kind::Usage, why));
        }
    }
    Ok(first)
}

/// What a change does on a terminal: that it goes on, and above it each step that is done.
pub(super) fn shown(what: &str) -> (ProgressBar, impl FnMut(ResizeStep) + use<>) {
    let bar = progress::spinner(what);
    let under = bar.clone();
    (bar, move |step| under.suspend(|| say(step)))
}

fn say(step: ResizeStep) {
    match step {
        ResizeStep::WrittenBack(0) | ResizeStep::Label => {}
        ResizeStep::WrittenBack(blocks) => {
            tell!("virtbench fence: {blocks} blocks written from the cache to the disks")
        }
        ResizeStep::Moved => tell!("virtbench fence: the disk was copied to where there is room"),
        ResizeStep::Zeroed => tell!("virtbench fence: new room zeroed"),
        ResizeStep::Cache => tell!("virtbench fence: the cache goes by the new sizes"),
    }
}

fn refused(error: ControlError) -> Failure {
    let kind = match error {
        ControlError::Refused { kind: Refusal::Value | Refusal::NoDisk, .. } => Kind::Usage,
        ControlError::Refused { kind: Refusal::Damaged, .. } => Kind::Inconsistent,
        ControlError::Refused { kind: Refusal::Target, .. }
        | ControlError::Gone { .. }
        | ControlError::Io { .. } => Kind::Target,
    };
    Failure::new(kind, error)
}

pub(super) fn unchanged(error: EditError) -> Failure {
    let kind = match error {
        EditError::Io { .. } => Kind::Target,
        _ => Kind::Usage,
    };
    Failure::new(kind, error)
}
