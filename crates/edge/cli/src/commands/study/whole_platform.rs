//! `virtbench study platform`: the other studies, and a score over them.

use std::path::Path;

use virtbench_model::platform::reference_of;
use virtbench_record::{PlatformPlan, PlatformReference};
use virtbench_report::takeaway;
use virtbench_runs::load_any_run;
use virtbench_study::{Estimate, Experiment, PlatformStudy};

use super::common;
use crate::args::platform_study::PlatformStudyArgs;
use crate::commands::environments;
use crate::exit::{Failure, Kind, Outcome};

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
    let mut plan = args.plan(compared(&args.environment)?)?;
    if let Some(run) = &args.reference {
        plan.reference = Some(reference(run, &plan)?);
    }
    Ok(PlatformStudy::new(plan, std::env::current_exe()?, sentence))
}

/// The figures of another run.
fn reference(run: &Path, plan: &PlatformPlan) -> Result<PlatformReference, Failure> {
    let refused =
        |why: String| Failure::message(Kind::Usage, format!("--reference {}: {why}", run.display()));
    let found = load_any_run(run).map_err(|error| refused(error.to_string()))?;
    let name = run.display().to_string();
    reference_of(&name, &found.provenance, found.records.samples(), plan).map_err(refused)
}

/// The environments that are compared, the base first: each as it was written, and its name. Where one is named, this host is the base.
fn compared(named: &[String]) -> Result<Option<[(String, String); 2]>, Failure> {
    let texts: Vec<String> = match named {
        [] => return Ok(None),
        [subject] => vec!["native:".into(), subject.clone()],
        both @ [_, _] => both.into(),
        more => {
            let why = format!("--environment: two are compared, and {} are named", more.len());
            return Err(Failure::message(Kind::Usage, why));
        }
    };
    let names: Vec<String> = environments::named(&texts)?.into_iter().map(|one| one.name).collect();
    let mut both = texts.into_iter().zip(names);
    Ok(both.next().zip(both.next()).map(|(base, subject)| [base, subject]))
}
