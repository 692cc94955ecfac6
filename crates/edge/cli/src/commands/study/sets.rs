//! `virtbench study neighbours`, and how studies of machines that run at one moment go.

use virtbench_study::Colocation;

use crate::args::{FolderArgs, NeighboursArgs};
use crate::commands::grid;
use crate::commands::study_runs::{folder_path, run, sets_summary, study_failure};
use crate::exit::{Failure, Outcome};

/// Measures, then says what came of it, also of what an interrupted or failed run has measured.
pub fn execute(name: &str, folder: &FolderArgs, study: &Colocation) -> Outcome {
    let out = folder_path(folder.out.as_deref(), name);
    let measured = run(&out, folder.resume, |run| study.run(run))?;
    // Why the run ended weighs more than which machines failed in it.
    let shown = sets_summary::show(&out, folder.json);
    measured.and(shown)
}

/// The same in more and more machines.
pub fn neighbours(args: &NeighboursArgs) -> Result<Colocation, Failure> {
    let environments = grid::spread(&args.sets.environment)?;
    let options = args.sets.options(args.vcpus, args.memory, environments)?;
    let numbers = args.numbers(options.environments.len());
    Colocation::neighbours(args.workload.clone(), &numbers, options).map_err(study_failure)
}
