//! `stall@P%`: the operation never completes, as on a device that hangs. The load's time limit for
//! operations is what ends it.

use super::verdict::{Verdict, no_argument};

pub(super) fn verdict(argument: Option<&str>) -> Result<Verdict, String> {
    no_argument("stall", argument, Verdict::Swallow)
}
