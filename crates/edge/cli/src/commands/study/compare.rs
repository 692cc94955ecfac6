//! `virtbench study compare`

use virtbench_study::Compare;

use super::{common, grid_options};
use crate::args::CompareArgs;
use crate::commands::{environments, grid};
use crate::exit::Outcome;

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &CompareArgs) -> Outcome {
    let out = common::folder_path(args.run.out.as_deref(), "compare");
    let environments = environments::named(&args.environment)?;
    let options = grid_options::options(&args.run, &args.guest, || grid::read(&args.grid))?;
    let study = Compare { options, environments };
    let measured = common::run(&out, args.run.resume, |run| study.run(run))?;
    common::show(&out, args.run.json)?;
    measured
}
