//! `virtbench fence drain`

use virtbench_fence_daemon::admin::{Drained, drain};

use super::resize::broken;
use super::serve::load;
use crate::args::fence::DrainArgs;
use crate::exit::Outcome;
use crate::say::tell;

/// Says what was written, and what was given up.
pub fn execute(args: &DrainArgs) -> Outcome {
    let Drained { written, damaged, given_up } = drain(&load(&args.config)?, args.force).map_err(broken)?;
    if let Some(why) = given_up {
        tell!("virtbench fence: the cache was given up: {why}");
    } else {
        tell!(
            "virtbench fence: {written} blocks written from the cache to the disks; the disks have everything"
        );
    }
    if damaged > 0 {
        tell!("virtbench fence: {damaged} damaged blocks were given up: the disks have what they had before");
    }
    Ok(())
}
