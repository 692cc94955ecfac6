//! `eio=P%`: the operation fails with EIO, as on a medium that cannot be read.

use super::verdict::{Verdict, no_argument};

/// Linux's number.
pub(super) const EIO: i32 = 5;

pub(super) fn verdict(argument: Option<&str>) -> Result<Verdict, String> {
    no_argument("eio", argument, Verdict::Fail(EIO))
}
