//! `virtbench study predictions`: applications profiled natively, predicted, and then run in a VM.

use std::path::Path;

use virtbench_record::{Provenance, Records, Trial};
use virtbench_report::takeaway;
use virtbench_runs::{FolderError, LoadedRun, read_provenance};
use virtbench_study::{Cases, Estimate, Predictions, predict_again};

use super::common;
use crate::applications::applications_failure;
use crate::args::predictions::PredictionsArgs;
use crate::commands::costs;
use crate::exit::{Failure, Kind, Outcome};
use crate::small_file;

/// Tries what is missing, then writes the report, also of what an interrupted or failed run has tried.
pub fn execute(args: &PredictionsArgs) -> Outcome {
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "predictions"))?;
    if args.again {
        return again(args, &out);
    }
    let study = study(args, &out)?;
    let measured = common::run(&out, args.folder.resume, |run| study.run(run))?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    complete(&run.provenance, run.records.trials())
}

/// The study that is asked for.
fn study(args: &PredictionsArgs, out: &Path) -> Result<Predictions, Failure> {
    let brought = args.costs.as_deref().filter(|_| !out.join("costs.json").exists());
    let folder = args.vm.target_dir.clone().unwrap_or_else(|| out.to_owned());
    Ok(Predictions {
        cases: cases(args, out)?,
        trials: args.trials,
        runs: args.runs,
        method: args.method.method(),
        vm: args.vm.options(args.vcpus, folder)?,
        costs: brought.map(costs::read).transpose()?,
    })
}

/// What is tried.
///
/// # Errors
/// The cases cannot be read, or the study is impossible.
pub fn estimate(args: &PredictionsArgs) -> Result<Estimate, Failure> {
    let out = common::folder_path(args.folder.out.as_deref(), "predictions");
    let estimate = study(args, &out)?.estimate();
    // To predict again runs nothing.
    Ok(if args.again {
        Estimate { measurements: 0, total_ns: Some(0), besides: None, ..estimate }
    } else {
        estimate
    })
}

/// The applications of the file; of a run that is resumed its own, as the file may have changed or be gone.
fn cases(args: &PredictionsArgs, out: &Path) -> Result<Cases, Failure> {
    let begun = match &args.cases {
        Some(_) if !args.folder.resume => None,
        _ => Some(read_provenance(out).map_err(common::folder_failure)?),
    };
    if let Some(begun) = begun {
        let other = || FolderError::OtherPlan { path: out.to_owned(), field: "the study".into() };
        let plan = begun.plan.predictions().cloned().ok_or_else(other).map_err(common::folder_failure)?;
        return Ok(Cases { set: plan.set, cases: plan.cases });
    }
    let path = args.cases.clone().unwrap_or_default();
    let wrong = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    let text = small_file::read(&path).map_err(wrong)?;
    let cases = Cases::parse(&text).map_err(|error| wrong(error.to_string()))?;
    cases.only(&args.only).map_err(|error| Failure::message(Kind::Usage, format!("--only: {error}")))
}

/// Predicts from what the folder holds, and leaves it as it is.
fn again(args: &PredictionsArgs, out: &Path) -> Outcome {
    let run = predict_again(out, args.method.method()).map_err(applications_failure)?;
    let files = ["report.html", "results.csv"].map(|name| out.join(name));
    let LoadedRun { provenance, records, histograms } = run;
    let run = LoadedRun { provenance, records: Records::Trials(records), histograms };
    let conclusion = common::conclusion(out, &files, &takeaway(&run.provenance, &run.records));
    common::print(args.folder.json, &conclusion, &run, |_| Ok(()))
}

/// Fails where an application has no trial at all.
fn complete(provenance: &Provenance, trials: &[Trial]) -> Outcome {
    let planned =
        provenance.plan.predictions().into_iter().flat_map(|plan| &plan.cases).map(|case| case.name.as_str());
    let missing: Vec<&str> = planned.filter(|name| !trials.iter().any(|trial| trial.case == *name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::message(Kind::Measured, format!("no trial of {}", missing.join(", "))))
}
