//! `full=P%`: a write fails with ENOSPC, as on thin storage that has run out.

use super::verdict::{Verdict, no_argument};

pub(super) fn verdict(argument: Option<&str>) -> Result<Verdict, String> {
    no_argument("full", argument, Verdict::Full)
}
