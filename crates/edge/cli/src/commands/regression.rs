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

/// The result of a search for something worse.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// Something is worse.
    pub regression: bool,
    /// It could be told at all, and on hosts that were as busy.
    pub judged: bool,
    /// What could not be judged, each in words.
    pub undecided: &'a [String],
}

/// Fails with an exit code of its own if there is a regression, or if that could not be judged, and that was asked for. What was not judged at
/// all has not passed: that fails whatever was asked for.
pub fn fail(on: &[FailOn], found: Found<'_>, takeaway: Takeaway) -> Outcome {
    if on.is_empty() {
        return Ok(());
    }
    if on.contains(&FailOn::Regression) && found.regression {
        return Err(Failure::message(Kind::Regression, takeaway.headline));
    }
    if !found.judged && !found.regression {
        return Err(Failure::message(Kind::Undecided, takeaway.headline));
    }
    if on.contains(&FailOn::Undecided) && !found.undecided.is_empty() {
        let message = format!("not judged: {}", found.undecided.join("; "));
        return Err(Failure::message(Kind::Undecided, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_judged_has_not_passed() {
        use FailOn::{Regression, Undecided};
        let some = ["vm is in one run only".to_owned()];
        for (on, regression, judged, undecided, code) in [
            (&[][..], true, false, &some[..], None),
            (&[Regression][..], true, true, &[][..], Some(Kind::Regression)),
            (&[Regression][..], true, false, &some[..], Some(Kind::Regression)),
            (&[Regression][..], false, true, &some[..], None),
            (&[Regression][..], false, false, &some[..], Some(Kind::Undecided)),
            (&[Regression, Undecided][..], false, true, &some[..], Some(Kind::Undecided)),
            (&[Regression, Undecided][..], false, true, &[][..], None),
            (&[Regression, Undecided][..], true, true, &some[..], Some(Kind::Regression)),
            (&[Undecided][..], true, true, &[][..], None),
        ] {
            let takeaway = Takeaway { headline: "h".into(), details: Vec::new(), cautions: Vec::new() };
            let failed = fail(on, Found { regression, judged, undecided }, takeaway).err();
            assert_eq!(
                failed.map(|failure| failure.kind()),
                code,
                "{on:?} {regression} {judged} {undecided:?}"
            );
        }
    }
}
