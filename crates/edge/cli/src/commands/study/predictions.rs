//! `virtbench study predictions`: applications profiled natively, predicted, and then run in a VM.

use std::path::Path;

use virtbench_record::Records;
use virtbench_runs::LoadedRun;
use virtbench_study::{
    Cases, Estimate, Predictions, predict_again, several_storages, storages_of_run, untried,
};

use crate::applications::applications_failure;
use crate::args::predict::PredictionsArgs;
use crate::commands::profile;
use crate::commands::study_runs::{folder_path, run, show, study_failure, tell};
use crate::exit::{Failure, Kind, Outcome};

/// Tries what is missing, then writes the report, also of what an interrupted or failed run has tried; or predicts anew from what the
/// folder holds, and leaves it as it is.
pub fn execute(args: &PredictionsArgs) -> Outcome {
    let out = std::path::absolute(folder_path(args.folder.out.as_deref(), "predictions"))?;
    if args.again {
        let again = predict_again(&out, args.method.method()).map_err(applications_failure)?;
        let LoadedRun { provenance, records, histograms } = again;
        let run = LoadedRun { provenance, records: Records::Trials(records), histograms };
        return tell(&out, &run, args.folder.json);
    }
    let study = study(args, &out)?;
    let measured = run(&out, args.folder.resume, |run| study.run(run))?;
    let run = show(&out, args.folder.json)?;
    measured?;
    match untried(&run.provenance, run.records.trials()).as_slice() {
        [] => Ok(()),
        missing => Err(Failure::message(Kind::Measured, format!("no trial of {}", missing.join(", ")))),
    }
}

/// The study that is asked for, with the cases of the run that it goes on with.
fn study(args: &PredictionsArgs, out: &Path) -> Result<Predictions, Failure> {
    let brought = args.costs.as_deref().filter(|_| !out.join("costs.json").exists());
    let folder = args.vm.target_dir.clone().unwrap_or_else(|| out.to_owned());
    let cases = match &args.cases {
        Some(path) if !args.folder.resume => Cases::of_file(path, &args.only),
        _ => Cases::of_run(out),
    };
    let storages = match args.storage.as_slice() {
        [] if args.folder.resume => storages_of_run(out).map_err(study_failure)?,
        named => several_storages(named)
            .map_err(|why| Failure::message(Kind::Usage, format!("--storage: {why}")))?,
    };
    Ok(Predictions {
        storages,
        cases: cases.map_err(study_failure)?,
        trials: args.trials,
        runs: args.runs,
        method: args.method.method(),
        vm: args.vm.options(args.vcpus, folder)?,
        costs: brought.map(profile::read_costs).transpose()?,
    })
}

/// What is tried. To predict again runs nothing.
pub fn estimate(args: &PredictionsArgs) -> Result<Estimate, Failure> {
    let estimate = study(args, &folder_path(args.folder.out.as_deref(), "predictions"))?.estimate();
    Ok(if args.again { estimate.of_nothing() } else { estimate })
}
