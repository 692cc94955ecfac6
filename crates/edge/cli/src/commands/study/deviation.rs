//! `virtbench study deviation`

use virtbench_study::{Colocation, Saturating};

use super::common::{self, study_failure};
use super::sets_summary;
use crate::args::{DeviationArgs, SaturatingArg};
use crate::commands::environments;
use crate::exit::{Failure, Kind, Outcome};

/// Measures, then says what came of it, also of what an interrupted or failed run has measured.
pub fn execute(args: &DeviationArgs) -> Outcome {
    let out = common::folder_path(args.sets.folder.out.as_deref(), "deviation");
    let study = study(args)?;
    let measured = common::run(&out, args.sets.folder.resume, |run| study.run(run))?;
    // Why the run ended weighs more than which machines failed in it.
    let shown = sets_summary::show(&out, args.sets.folder.json);
    measured.and(shown)
}

/// The study that is asked for.
pub fn study(args: &DeviationArgs) -> Result<Colocation, Failure> {
    let options =
        args.sets.options(args.vcpus, args.memory, environments::spread(&args.sets.environment)?)?;
    if args.matrix {
        return Colocation::matrix(args.workload.clone(), options).map_err(study_failure);
    }
    let [job] = args.workload.as_slice() else {
        return Err(Failure::message(
            Kind::Usage,
            "--pattern is of one --workload; give --matrix to set several against each other",
        ));
    };
    let saturating = match args.saturating {
        Some(SaturatingArg::All) => Saturating::All,
        None if !args.systems.is_empty() => Saturating::All,
        Some(SaturatingArg::One) | None => Saturating::One,
    };
    Colocation::pattern(job.clone(), &args.pattern.0, saturating, options).map_err(study_failure)
}
