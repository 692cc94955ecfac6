//! `short=P%`: the operation moves half of what was asked, as at the end of a file that shrank.
//!
//! The whole is carried out, as half of it may be less than direct I/O can do; half is reported.

use super::verdict::{Verdict, no_argument};

pub(super) fn verdict(argument: Option<&str>) -> Result<Verdict, String> {
    no_argument("short", argument, Verdict::Halve)
}
