//! `virtbench study predictions`: applications profiled natively, predicted, and then run in a VM.

use std::fs;
use std::path::Path;

use virtbench_record::{Plan, PredictionsPlan, Provenance, Records, Trial};
use virtbench_report::takeaway;
use virtbench_study::{
    ApplicationEvent, ApplicationsError, Cases, FolderError, HostAndVm, LoadedRun, Observer as _, Progress,
    RunFolder, missing_trials, new_provenance, predict_again, read_provenance, run_predictions,
};

use super::common;
use super::watch::Watch;
use crate::applications::{applications_failure, with_progress};
use crate::args::predictions::PredictionsArgs;
use crate::commands::costs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, log, progress};

/// Tries what is missing, then writes the report, also of what an interrupted or failed run has tried.
pub fn execute(args: &PredictionsArgs) -> Outcome {
    let out = std::path::absolute(common::folder_path(args.out.as_deref(), "predictions"))?;
    if args.again {
        return again(args, &out);
    }
    let provenance = provenance(args, &out)?;
    // Before the folder is made: what is missing is said, and leaves nothing behind.
    let new_sides = if args.resume { None } else { Some(sides(args, &out)?) };
    let mut folder: RunFolder<Trial> =
        if args.resume { RunFolder::resume(&out, &provenance) } else { RunFolder::create(&out, provenance) }
            .map_err(common::folder_failure)?;
    log::keep_in(folder.path());
    let is_complete = missing_trials(folder.provenance(), folder.records()).is_empty();
    let measured = if is_complete {
        Ok(())
    } else {
        let sides = new_sides.map_or_else(|| sides(args, &out), Ok);
        sides.and_then(|mut sides| measure(args, &mut sides, &mut folder))
    };
    let measured = common::keep_or_abandon(folder, measured)?;
    let run = common::show(&out, args.json)?;
    measured?;
    complete(&run.provenance, run.records.trials())
}

/// Both sides, looked over before anything is measured.
fn sides(args: &PredictionsArgs, out: &Path) -> Result<HostAndVm, Failure> {
    let folder = args.vm.target_dir.clone().unwrap_or_else(|| out.to_owned());
    let options = args.vm.options(args.vcpus, folder)?;
    with_progress(|progress| HostAndVm::new(options, progress))
}

fn measure(args: &PredictionsArgs, sides: &mut HostAndVm, folder: &mut RunFolder<Trial>) -> Outcome {
    let brought = match &args.costs {
        Some(path) if !folder.path().join("costs.json").exists() => Some(costs::read(path)?),
        _ => None,
    };
    let mut watch = Watch::new();
    watch.begin(progress::bar(1, "starting"));
    let mut on_event = |event: ApplicationEvent<'_>| match event {
        ApplicationEvent::Doing(what) => watch.doing(what.to_owned()),
        ApplicationEvent::Remark(what) => watch.say(what),
        ApplicationEvent::Done { done, total } => {
            watch.bar().set_length(total);
            watch.bar().set_position(done);
            watch.recorded(None);
        }
        ApplicationEvent::Tried(trial) => {
            trial.hosts().for_each(|host| watch.recorded(Some(host)));
            watch.say(&format!(
                "{} {}: native {:.1}, predicted {:.1}, measured {:.1} {} ({:+.0} %)",
                trial.case,
                trial.trial,
                trial.reference,
                trial.predicted,
                trial.truth,
                trial.capacity_name,
                trial.error_percent()
            ));
        }
        ApplicationEvent::Failed { case, trial, why } => watch.say(&format!("{case} {trial}: {why}")),
    };
    let mut progress = Progress { stop: interrupt::flag(), on_event: &mut on_event };
    let measured = run_predictions(folder, sides, brought.as_ref(), &mut progress);
    let notes = watch.notes();
    folder.amend(|provenance| provenance.add_notes(notes)).map_err(common::folder_failure)?;
    measured.map_err(|error| match error {
        ApplicationsError::Stopped => {
            interrupt::failure("what was tried is kept; --resume goes on with the rest")
        }
        error => applications_failure(error),
    })
}

/// What the run sets out to try; of a run that is resumed, what it set out to try.
fn provenance(args: &PredictionsArgs, out: &Path) -> Result<Provenance, Failure> {
    let Cases { set, cases } = cases(args, out)?;
    let predictions = PredictionsPlan {
        set,
        cases,
        trials: args.trials,
        runs: args.runs,
        method: args.method.method().map(|method| method.name().to_owned()),
        vcpus: args.vcpus,
        memory_bytes: args.vm.memory,
        adapter: args.vm.adapter.clone(),
        size_bytes: args.vm.size,
        filesystem: args.vm.filesystem.clone(),
        accelerator: args.vm.guest(args.vcpus).options().accelerator.name().to_owned(),
        limit_ns: args.vm.limit,
    };
    let target_dir = args.vm.target_dir.as_deref().unwrap_or(out);
    Ok(new_provenance(Plan::Predictions(predictions), std::env::args().collect(), target_dir))
}

/// The applications of the file; of a run that is resumed its own, as the file may have changed or be gone.
fn cases(args: &PredictionsArgs, out: &Path) -> Result<Cases, Failure> {
    let begun = match &args.cases {
        Some(_) if !args.resume => None,
        _ => Some(read_provenance(out).map_err(common::folder_failure)?),
    };
    if let Some(begun) = begun {
        let other = || FolderError::OtherPlan { path: out.to_owned(), field: "the study" };
        let plan = begun.plan.predictions().cloned().ok_or_else(other).map_err(common::folder_failure)?;
        return Ok(Cases { set: plan.set, cases: plan.cases });
    }
    let path = args.cases.clone().unwrap_or_default();
    let wrong = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
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
    common::print(args.json, &conclusion, &run, |_| Ok(()))
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
