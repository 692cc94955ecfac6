//! `virtbench study neighbours`

use virtbench_study::Colocation;

use super::common::{self, study_failure};
use super::sets_summary;
use crate::args::NeighboursArgs;
use crate::commands::environments;
use crate::exit::{Failure, Outcome};

/// Measures, then says what came of it, also of what an interrupted or failed run has measured.
pub fn execute(args: &NeighboursArgs) -> Outcome {
    let out = common::folder_path(args.sets.folder.out.as_deref(), "neighbours");
    let study = study(args)?;
    let measured = common::run(&out, args.sets.folder.resume, |run| study.run(run))?;
    // Why the run ended weighs more than which machines failed in it.
    let shown = sets_summary::show(&out, args.sets.folder.json);
    measured.and(shown)
}

/// The study that is asked for.
pub fn study(args: &NeighboursArgs) -> Result<Colocation, Failure> {
    let options =
        args.sets.options(args.vcpus, args.memory, environments::spread(&args.sets.environment)?)?;
    let numbers = args.numbers(options.environments.len());
    Colocation::neighbours(args.workload.clone(), &numbers, options).map_err(study_failure)
}
