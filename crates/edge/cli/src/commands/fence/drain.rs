//! `virtbench fence drain`

use virtbench_fence_daemon::admin::{Drained, drain};

use super::resize::broken;
use super::serve::load;
use crate::args::fence::DrainArgs;
use crate::exit::Outcome;
use crate::progress;
use crate::say::tell;

/// Says what was written, and names what was given up.
pub fn execute(args: &DrainArgs) -> Outcome {
    let config = load(&args.config)?;
    let Drained { written, given_up, doubts, anew } =
        progress::during("writing what the cache alone has", || drain(&config, args.force))
            .map_err(broken)?;
    if let Some(why) = anew {
        tell!("virtbench fence: the cache was given up: {why}");
        return Ok(());
    }
    for lost in &given_up {
        tell!("virtbench fence: given up: {lost}");
    }
    for doubt in &doubts {
        tell!("virtbench fence: given up: {doubt}");
    }
    let all = if given_up.is_empty() && doubts.is_empty() { "; the disks have everything" } else { "" };
    tell!("virtbench fence: {written} blocks written from the cache to the disks{all}");
    Ok(())
}
