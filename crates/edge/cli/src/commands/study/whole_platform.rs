//! `virtbench study platform`: the other studies, and a score over them.

use virtbench_report::takeaway;
use virtbench_study::{Estimate, PlatformStudy};

use super::common;
use crate::args::platform_study::PlatformStudyArgs;
use crate::exit::{Failure, Kind, Outcome};

/// Measures what is missing, then writes the report card, also of what an interrupted or failed run has measured.
pub fn execute(args: &PlatformStudyArgs) -> Outcome {
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "platform"))?;
    let plan = args.plan()?;
    let program = std::env::current_exe()?;
    let sentence = |provenance: &_, records: &_| takeaway(provenance, records).headline;
    let mut study = PlatformStudy::new(plan, program, sentence);
    let measured = common::run(&out, args.folder.resume, |run| study.run(run))?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    let records = run.records.samples();
    let failed: Vec<String> = records
        .iter()
        .filter(|record| {
            let again = |other: &&virtbench_record::SamplesRecord| {
                other.side == record.side
                    && other.repetition == record.repetition
                    && other.measured().is_some()
            };
            record.failure().is_some() && !records.iter().any(|other| again(&other))
        })
        .map(|record| format!("{}: {}", record.key.side, record.failure().unwrap_or_default()))
        .collect();
    if let Some(first) = failed.first() {
        return Err(Failure::message(Kind::Measured, first.clone()));
    }
    if records.iter().all(|record| record.measured().is_none()) {
        return Err(Failure::message(Kind::Environment, "this host has none of the domains"));
    }
    Ok(())
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// It is impossible.
pub fn estimate(args: &PlatformStudyArgs) -> Result<Estimate, Failure> {
    Ok(PlatformStudy::estimate(&args.plan()?))
}
