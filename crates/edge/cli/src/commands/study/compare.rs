//! `virtbench study compare`

use std::path::{Path, PathBuf};

use virtbench_study::{Compare, EnvironmentNames, NamedEnvironment};

use super::{common, grid_options};
use crate::args::CompareArgs;
use crate::commands::grid;
use crate::exit::{Failure, Kind, Outcome};

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &CompareArgs) -> Outcome {
    let out = common::folder_path(args.run.out.as_deref(), "compare");
    let environments = environments(&args.environment)?;
    let options = grid_options::options(&args.run, &args.guest, || grid::read(&args.grid))?;
    let study = Compare { options, environments };
    let measured = common::run(&out, args.run.resume, |run| study.run(run))?;
    common::show(&out, args.run.json)?;
    measured
}

/// The environments that are named.
fn environments(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    let usage = |error| Failure::new(Kind::Usage, error);
    let names = EnvironmentNames::find(Path::new("."), configuration_folder().as_deref()).map_err(usage)?;
    texts.iter().map(|text| names.resolve(text)).collect::<Result<_, _>>().map_err(usage)
}

/// Where the user's configurations are.
fn configuration_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("XDG_CONFIG_HOME").or_else(|| named("HOME").map(|home| home.join(".config")))
}
