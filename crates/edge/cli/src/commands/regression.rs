//! What commands that look for something worse have in common: the margin, JSON, and how they fail.

use serde::Serialize;
use virtbench_model::Margin;
use virtbench_report::Takeaway;

use crate::args::compare::FailOn;
use crate::exit::{Failure, Kind, Outcome};
use crate::say;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a, T> {
    headline: &'a str,
    details: &'a [String],
    cautions: &'a [String],
    regression: bool,
    #[serde(flatten)]
    found: &'a T,
}

/// What counts as the same, from `--margin` as a share.
///
/// # Errors
/// It is none.
pub fn margin(share: f64) -> Result<Margin, Failure> {
    Margin::new(share)
        .ok_or_else(|| Failure::message(Kind::Usage, "--margin: write a percentage above 0 and at most 100"))
}

/// Prints what was found as one JSON object.
pub fn print_json<T: Serialize>(takeaway: &Takeaway, regression: bool, found: &T) -> Outcome {
    let Takeaway { headline, details, cautions } = takeaway;
    Ok(say::print_json(&Report { headline, details, cautions, regression, found })?)
}

/// Fails with an exit code of its own if there is a regression and that was asked for.
pub fn fail(on: Option<FailOn>, regression: bool, takeaway: Takeaway) -> Outcome {
    if on == Some(FailOn::Regression) && regression {
        return Err(Failure::message(Kind::Regression, takeaway.headline));
    }
    Ok(())
}
