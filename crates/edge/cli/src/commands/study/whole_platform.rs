//! `virtbench study platform`: the other studies, and a score over them.

use virtbench_report::takeaway;
use virtbench_study::{Estimate, Experiment, PlatformStudy};

use super::common;
use crate::args::platform_study::PlatformStudyArgs;
use crate::exit::{Failure, Outcome};

/// Measures what is missing, then writes the report card.
pub fn execute(args: &PlatformStudyArgs) -> Outcome {
    common::execute(&study(args)?, &args.folder)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// It is impossible.
pub fn estimate(args: &PlatformStudyArgs) -> Result<Estimate, Failure> {
    Ok(study(args)?.estimate())
}

fn study(args: &PlatformStudyArgs) -> Result<PlatformStudy, Failure> {
    let sentence = |provenance: &_, records: &_| takeaway(provenance, records).headline;
    Ok(PlatformStudy::new(args.plan()?, std::env::current_exe()?, sentence))
}
