//! `virtbench study compare`

use virtbench_study::Compare;

use super::{common, grid_options};
use crate::args::CompareArgs;
use crate::commands::{environments, grid};
use crate::exit::{Failure, Outcome};

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &CompareArgs) -> Outcome {
    let out = common::folder_path(args.run.folder.out.as_deref(), "compare");
    let study = study(args)?;
    let measured = common::run(&out, args.run.folder.resume, |run| study.run(run))?;
    common::show(&out, args.run.folder.json)?;
    measured
}

/// The study that is asked for.
pub fn study(args: &CompareArgs) -> Result<Compare, Failure> {
    let environments = environments::named(&args.environment)?;
    let options = grid_options::options(&args.run, &args.guest, || grid::read(&args.grid))?;
    Ok(Compare { options, environments })
}
