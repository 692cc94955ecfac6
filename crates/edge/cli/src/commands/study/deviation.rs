//! `virtbench study deviation`: what machines lose to those beside them.

use virtbench_study::{Colocation, Saturating};

use crate::args::{DeviationArgs, SaturatingArg};
use crate::commands::grid;
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Kind};

/// The study that is asked for.
pub fn deviation(args: &DeviationArgs) -> Result<Colocation, Failure> {
    let options = args.sets.options(args.vcpus, args.memory, grid::spread(&args.sets.environment)?)?;
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
