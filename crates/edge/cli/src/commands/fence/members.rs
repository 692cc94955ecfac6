//! `virtbench fence add` and `virtbench fence remove`: by the daemon that serves the fence, if there is one.

use std::os::fd::BorrowedFd;
use std::path::Path;

use virtbench_fence_daemon::admin::{self, Offer, ResizeStep};
use virtbench_fence_daemon::config::{Config, DiskTable, Pools, Size};
use virtbench_fence_daemon::control::{ControlError, Question, Refusal, ask, ask_handing};

use super::failed::broken;
use super::pools::{load, of_disk, one, prefix, within};
use super::resize::{asked_again, shown, unchanged};
use crate::args::fence_changes::{AddArgs, RemoveArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::tell;

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
    let is_served = served(config, &question, disk.socket.as_deref(), &mut tell)?;
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
    if !served(config, &question, None, &mut tell)? {
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
fn served(
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
