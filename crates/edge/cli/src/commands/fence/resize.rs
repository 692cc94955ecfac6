//! `virtbench fence resize`, `reslot`, `add`, `remove` and `drain`: by the daemon that serves the fence, if there is one.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use virtbench_fence_daemon::admin::{
    self, Change, DiskEdit, Drained, EditError, Offer, ResizeStep, RotationEdit, drain, edit, resize,
};
use virtbench_fence_daemon::config::{Config, DiskTable, Pools, Size};
use virtbench_fence_daemon::control::{ControlError, Question, Refusal, ask, ask_handing};

use super::pools::{broken, chosen, each, load, of_disk, one, prefix, within};
use crate::args::fence::DrainArgs;
use crate::args::fence_changes::{AddArgs, RemoveArgs, ResizeArgs, ReslotArgs};
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

/// Changes the devices, then the configuration.
pub fn add(args: &AddArgs) -> Outcome {
    let pools = load(&args.config)?;
    let config = receiving(&pools, args)?;
    let disk = DiskTable {
        pool: config.pool.clone(),
        cache: args.cache.map(Size),
        bypass: args.bypass.map(Size),
        slots: args.slots,
        share: args.share,
        socket: args.socket.clone(),
        export: args.export.clone(),
        ..DiskTable::new(args.disk.clone(), args.size)
    };
    pools.check_with(&disk).map_err(|why| Failure::message(Kind::Usage, why))?;
    let (bar, mut tell) = shown("adding the disk");
    let question = Question::Add(Box::new(disk.clone()));
    let is_served = changed_by_daemon(config, &question, disk.socket.as_deref(), &mut tell)?;
    if !is_served {
        let added = admin::add(config, &disk, |step| {
            tell(step);
            !interrupt::requested()
        });
        added.map_err(|error| within(config, broken(error)))?;
    }
    bar.finish_and_clear();
    admin::add_to_file(&args.config, &disk).map_err(unchanged)?;
    let who = if is_served { "the daemon serves it" } else { "the next daemon serves it" };
    tell!("virtbench fence: {}disk {} is there; {who}", prefix(config), args.disk);
    Ok(())
}

/// The fence that a disk comes to: the one that has it already, if the command was given before.
fn receiving<'a>(pools: &'a Pools, args: &AddArgs) -> Result<&'a Config, Failure> {
    let known = pools.of_disk(&args.disk);
    match (known, &args.pool) {
        (Some(known), None) => Ok(known),
        (Some(known), Some(pool)) if known.pool.as_ref() != Some(pool) && pools.are_named() => {
            let is = known.pool.as_deref().unwrap_or_default();
            let why = format!("disk {}: there is one of that name in pool {is}", args.disk);
            Err(Failure::message(Kind::Usage, why))
        }
        _ => one(pools, args.pool.as_deref()),
    }
}

/// The same.
pub fn remove(args: &RemoveArgs) -> Outcome {
    let pools = load(&args.config)?;
    let config = of_disk(&pools, &args.disk)?;
    let (bar, mut tell) = shown("removing the disk");
    let question = Question::Remove { disk: args.disk.clone() };
    if !changed_by_daemon(config, &question, None, &mut tell)? {
        let removed = admin::remove(config, &args.disk, |step| {
            tell(step);
            !interrupt::requested()
        });
        removed.map_err(|error| within(config, broken(error)))?;
    }
    bar.finish_and_clear();
    admin::remove_from_file(&args.config, &args.disk).map_err(unchanged)?;
    tell!("virtbench fence: {}disk {} is gone", prefix(config), args.disk);
    Ok(())
}

/// Has a running daemon do it, which is handed what it may not open itself. False if there is none. A daemon that has done it
/// already, and was not heard, says so.
fn changed_by_daemon(
    config: &Config,
    question: &Question,
    socket: Option<&Path>,
    tell: &mut dyn FnMut(ResizeStep),
) -> Result<bool, Failure> {
    let Some(control) = config.control_socket().filter(|control| control.exists()) else { return Ok(false) };
    let offer = match Offer::make(config, socket) {
        Ok(offer) => offer,
        Err(error) => {
            let is_known = matches!(ask(&control, question, &mut *tell), Ok(true));
            return if is_known { Ok(true) } else { Err(within(config, broken(error))) };
        }
    };
    let handed: Vec<BorrowedFd<'_>> = offer.descriptors().collect();
    let is_served =
        asked_again(config, &mut |control| match ask_handing(control, question, &handed, &mut *tell) {
            Err(ControlError::Refused { kind: Refusal::NoDisk, .. }) => Ok(true),
            answer => answer,
        })?;
    if is_served {
        offer.taken();
    }
    Ok(is_served)
}

/// Each pool in turn.
pub fn drain_cache(args: &DrainArgs) -> Outcome {
    let pools = load(&args.config)?;
    each(&chosen(&pools, &args.only)?, |fence| drain_one(fence, args.force))
}

/// Says what was written, and names what was given up.
fn drain_one(fence: &Config, force: bool) -> Outcome {
    let pool = prefix(fence);
    let Drained { written, given_up, doubts, anew } =
        progress::during("writing what the cache alone has", || drain(fence, force)).map_err(broken)?;
    if let Some(why) = anew {
        tell!("virtbench fence: {pool}the cache was given up: {why}");
        return Ok(());
    }
    for lost in &given_up {
        tell!("virtbench fence: {pool}given up: {lost}");
    }
    for doubt in &doubts {
        tell!("virtbench fence: {pool}given up: {doubt}");
    }
    let all = if given_up.is_empty() && doubts.is_empty() { "; the disks have everything" } else { "" };
    tell!("virtbench fence: {pool}{written} blocks written from the cache to the disks{all}");
    Ok(())
}
