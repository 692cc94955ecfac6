//! `virtbench study native-vs-vm`, `adapters` and `compare`: the points of a grid.

use virtbench_study::{
    Adapters, Compare, Grid, MachineAndVm, NativeVsVm, Run, RunEnd, StudyError, USUAL_ADAPTERS, setups,
};

use crate::args::{AdaptersArgs, CompareArgs, FolderArgs, NativeVsVmArgs};
use crate::commands::grid;
use crate::commands::grid::options;
use crate::commands::study_runs::{folder_path, run, show};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(
    name: &str,
    folder: &FolderArgs,
    study: impl FnOnce(&mut Run<'_>) -> Result<RunEnd, StudyError>,
) -> Outcome {
    let out = folder_path(folder.out.as_deref(), name);
    let measured = run(&out, folder.resume, study)?;
    let run = show(&out, folder.json)?;
    for setup in &run.provenance.setups {
        for one in &setup.not_honoured {
            tell!("{}: {} was to be {} and is {}", setup.name, one.setting, one.asked, one.found);
        }
    }
    measured
}

/// The same load natively and in a VM.
pub fn native_vs_vm(args: &NativeVsVmArgs) -> Result<MachineAndVm, Failure> {
    let options = options(&args.run, &args.guest, || grid::read(&args.grid))?;
    match &args.vm {
        None => Ok(MachineAndVm::Here(NativeVsVm { options, adapter: args.adapter.clone() })),
        Some(vm) => MachineAndVm::named(options, args.native.as_deref(), vm)
            .map_err(|error| Failure::new(Kind::Usage, error)),
    }
}

/// The same load through different adapters, and over different backings.
pub fn adapters(args: &AdaptersArgs) -> Result<Adapters, Failure> {
    let usual = USUAL_ADAPTERS.map(str::to_owned);
    let is_none = args.adapters.is_empty() && args.setup.is_empty();
    let named = if is_none { &usual[..] } else { &args.adapters[..] };
    let setups =
        setups(named, &args.backings, &args.setup).map_err(|error| Failure::new(Kind::Usage, error))?;
    let grid = || grid::read_named(&args.grid, Grid::adapters_quick, Grid::adapters_paper);
    let booted = args.booted.map(|booted| usize::try_from(booted).unwrap_or(usize::MAX));
    Ok(Adapters { options: options(&args.run, &args.guest, grid)?, setups, booted })
}

/// The same load in environments of whatever kind.
pub fn compare(args: &CompareArgs) -> Result<Compare, Failure> {
    let environments = grid::named(&args.environment)?;
    Ok(Compare { options: options(&args.run, &args.guest, || grid::read(&args.grid))?, environments })
}
