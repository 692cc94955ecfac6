//! `virtbench study adapters`

use virtbench_study::{Adapters, Grid, Setup, setups};

use super::{common, grid_options};
use crate::args::AdaptersArgs;
use crate::commands::grid;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

/// What is compared when nothing is named: three paravirtual or modern ones, and the LSI Logic of [ESX Adapters 2006].
const DEFAULT_ADAPTERS: [&str; 4] = ["virtio-blk", "virtio-scsi", "nvme", "mptsas1068"];

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &AdaptersArgs) -> Outcome {
    let out = common::folder_path(args.run.folder.out.as_deref(), "adapters");
    let study = study(args)?;
    let measured = common::run(&out, args.run.folder.resume, |run| study.run(run))?;
    let run = common::show(&out, args.run.folder.json)?;
    for setup in &run.provenance.setups {
        for one in &setup.not_honoured {
            tell!("{}: {} was to be {} and is {}", setup.name, one.setting, one.asked, one.found);
        }
    }
    measured
}

/// The study that is asked for.
pub fn study(args: &AdaptersArgs) -> Result<Adapters, Failure> {
    let setups = named(args)?;
    let named = || grid::read_named(&args.grid, Grid::adapters_quick, Grid::adapters_paper);
    let options = grid_options::options(&args.run, &args.guest, named)?;
    let booted = args.booted.map(|booted| usize::try_from(booted).unwrap_or(usize::MAX));
    Ok(Adapters { options, setups, booted })
}

fn named(args: &AdaptersArgs) -> Result<Vec<Setup>, Failure> {
    let by_default = DEFAULT_ADAPTERS.map(str::to_owned);
    let adapters =
        if args.adapters.is_empty() && args.setup.is_empty() { &by_default[..] } else { &args.adapters[..] };
    setups(adapters, &args.backings, &args.setup).map_err(|error| Failure::new(Kind::Usage, error))
}
