//! How a study runs under the command: its folder, what is shown meanwhile, failures, and the last words.

#[cfg(feature = "full")]
pub mod operations_verdict;
mod progress;
pub mod sets_summary;
#[cfg(feature = "full")]
pub mod systems;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use virtbench_model::{Unanswered, answered, summarise};
use virtbench_record::{Conclusion, Records};
use virtbench_report::{Takeaway, takeaway};
use virtbench_runs::LoadedRun;
use virtbench_study::{Experiment, JobsError, Observer, Run, RunEnd, StudyError};

use crate::args::FolderArgs;
use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome, lab_kind};
use crate::say::print_json;
use crate::{interrupt, resume};
use progress::StudyProgress;

/// The run folder: the one named, or one that tells study and time.
pub fn folder_path(out: Option<&Path>, study: &str) -> PathBuf {
    out.map(Path::to_owned).unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let stamp = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(since)).to_string();
        PathBuf::from(format!("virtbench-{study}-{}", stamp.replace([':', 'Z'], "").replace('T', "-")))
    })
}

/// Runs a study into the folder `out`, with what happens on the terminal.
pub fn watched<T>(out: &Path, resume: bool, study: impl FnOnce(&mut Run<'_>) -> T) -> T {
    let mut watch = StudyProgress::new();
    let command = resume::command_line();
    let run = &mut Run { out, resume, command, stop: interrupt::flag(), observer: &mut watch };
    let done = study(run);
    // What is left of it after a failure.
    watch.notes();
    done
}

/// The same of one run folder.
///
/// # Errors
/// Nothing was measured; any other failure is the answer, for after the report.
pub fn run(
    out: &Path,
    resume: bool,
    study: impl FnOnce(&mut Run<'_>) -> Result<RunEnd, StudyError>,
) -> Result<Outcome, Failure> {
    let ended = watched(out, resume, study).map_err(study_failure)?;
    Ok(ended.map_err(study_failure))
}

pub fn study_failure(error: StudyError) -> Failure {
    let kind = match &error {
        error if error.is_stopped() => Kind::Interrupted,
        error if error.lacks_something() => Kind::Environment,
        StudyError::Input(_) => Kind::Usage,
        StudyError::Folder(_) => Kind::Folder,
        StudyError::Target { .. } | StudyError::Images(_) => Kind::Target,
        StudyError::Lab(error) => lab_kind(error),
        StudyError::TooManyLost(_) => Kind::Guest,
        StudyError::Jobs(JobsError::NoRate { .. }) => Kind::Usage,
        StudyError::Jobs(JobsError::NoSaturation { .. }) => Kind::Measured,
        #[cfg(feature = "full")]
        error => of_full_studies(error),
        #[cfg(not(feature = "full"))]
        _ => Kind::Other,
    };
    Failure::new(kind, error)
}

/// The kind of what only studies of applications and platforms meet.
#[cfg(feature = "full")]
fn of_full_studies(error: &StudyError) -> Kind {
    match error {
        StudyError::Applications(error) => crate::applications::applications_kind(error),
        StudyError::Appliance(error) => crate::applications::appliance_kind(error),
        StudyError::Platform(failure) if failure.kind == virtbench_record::FailureKind::Unsupported => {
            Kind::Usage
        }
        StudyError::Platform(_) | StudyError::Started(_) => Kind::Guest,
        _ => Kind::Other,
    }
}

/// What a run comes to, and its files.
pub fn conclusion(folder: &Path, [report, csv]: &[PathBuf; 2], takeaway: &Takeaway) -> Conclusion {
    let path = |path: &Path| path.display().to_string();
    let Takeaway { headline, details, cautions } = takeaway.clone();
    Conclusion { folder: path(folder), report: path(report), csv: path(csv), headline, details, cautions }
}

/// Prints what a run comes to and where the rest is: as one JSON object, or in sentences after what `before` writes.
pub fn print(
    json: bool,
    conclusion: &Conclusion,
    run: &LoadedRun<Records>,
    before: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Outcome {
    let mut out = std::io::stdout().lock();
    if json {
        return Ok(print_json(&summarise(conclusion.clone(), &run.provenance, &run.records))?);
    }
    before(&mut out)?;
    let Conclusion { headline, details, cautions, report, .. } = conclusion;
    for sentence in std::iter::once(headline).chain(details).chain(cautions) {
        writeln!(out, "{sentence}")?;
    }
    writeln!(out, "\nreport: {report}")?;
    Ok(())
}

/// Prints what a run comes to that is in no file as it is, and where its files are.
pub fn tell(out: &Path, run: &LoadedRun<Records>, json: bool) -> Outcome {
    let files = ["report.html", "results.csv"].map(|name| out.join(name));
    print(json, &conclusion(out, &files, &takeaway(&run.provenance, &run.records)), run, |_| Ok(()))
}

/// Writes the report of a folder and prints what it comes to.
pub fn show(out: &Path, json: bool) -> Result<LoadedRun<Records>, Failure> {
    let report::Written { run, files, .. } = report::write(out)?;
    let conclusion = conclusion(out, &files, &takeaway(&run.provenance, &run.records));
    print(json, &conclusion, &run, |_| Ok(()))?;
    Ok(run)
}

/// Runs a study into its folder, writes the report, also of what an interrupted or failed run has measured, and looks for an answer.
pub fn execute<E: Experiment>(experiment: &E, folder: &FolderArgs) -> Outcome {
    check_answer(&measured(experiment, folder)?)
}

/// The same, without looking for an answer.
pub fn measured<E: Experiment>(experiment: &E, folder: &FolderArgs) -> Result<LoadedRun<Records>, Failure> {
    let out = std::path::absolute(folder_path(folder.out.as_deref(), E::NAME))?;
    let measured = run(&out, folder.resume, |run| experiment.run(run))?;
    let shown = show(&out, folder.json)?;
    measured?;
    Ok(shown)
}

/// Fails where a run has no answer to what its study asks.
///
/// # Errors
/// What is missing, or cannot be judged, and why.
pub fn check_answer(run: &LoadedRun<Records>) -> Outcome {
    answered(&run.provenance.plan, &run.records).map_err(|unanswered| match unanswered {
        Unanswered::Missing(why) => Failure::message(Kind::Measured, why),
        Unanswered::Undecided(why) => Failure::message(Kind::Undecided, why),
        Unanswered::Unavailable(why) => Failure::message(Kind::Environment, why),
    })
}
