//! `virtbench fence drain`

use virtbench_fence_daemon::admin::{Drained, drain};
use virtbench_fence_daemon::config::Config;

use super::failed::broken;
use super::pools::{chosen, each, load, prefix};
use crate::args::fence::DrainArgs;
use crate::exit::Outcome;
use crate::progress;
use crate::say::tell;

/// Each pool in turn.
pub fn execute(args: &DrainArgs) -> Outcome {
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
