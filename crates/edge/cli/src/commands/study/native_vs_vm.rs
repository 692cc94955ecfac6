//! `virtbench study native-vs-vm`

use virtbench_report::takeaway;
use virtbench_study::NativeVsVm;

use super::{common, grid_options, numbers};
use crate::args::NativeVsVmArgs;
use crate::commands::{grid, report};
use crate::exit::Outcome;

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NativeVsVmArgs) -> Outcome {
    let out = common::folder_path(args.run.out.as_deref(), "native-vs-vm");
    let options = grid_options::options(&args.run, &args.guest, || grid::read(&args.grid))?;
    let study = NativeVsVm { options, adapter: args.adapter.clone() };
    let measured = common::run(&out, args.run.resume, |run| study.run(run))?;
    let report::Written { run, files, .. } = report::write(&out)?;
    let conclusion = numbers::conclusion(&out, &files, &takeaway(&run.provenance, &run.records));
    common::print(args.run.json, &conclusion, || {
        serde_json::to_value(numbers::native_vs_vm(conclusion.clone(), &run.provenance, run.records.points()))
    })?;
    measured
}
