//! `virtbench study native-vs-vm`

use virtbench_study::NativeVsVm;

use super::{common, grid_options};
use crate::args::NativeVsVmArgs;
use crate::commands::grid;
use crate::exit::{Failure, Outcome};

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NativeVsVmArgs) -> Outcome {
    let out = common::folder_path(args.run.folder.out.as_deref(), "native-vs-vm");
    let study = study(args)?;
    let measured = common::run(&out, args.run.folder.resume, |run| study.run(run))?;
    common::show(&out, args.run.folder.json)?;
    measured
}

/// The study that is asked for.
pub fn study(args: &NativeVsVmArgs) -> Result<NativeVsVm, Failure> {
    let options = grid_options::options(&args.run, &args.guest, || grid::read(&args.grid))?;
    Ok(NativeVsVm { options, adapter: args.adapter.clone() })
}
