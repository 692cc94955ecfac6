//! Points of a grid and environments as they are named on the command line.

use std::path::Path;

use virtbench_study::{Grid, GridOptions, NamedEnvironment, find_environments, find_homes, read_user_file};

use crate::args::{GuestArgs, RunArgs};
use crate::exit::{Failure, Kind};

/// [ESX Disk 2003]'s grid of this name, or the one in the file of this name.
pub fn read(name: &str) -> Result<Grid, Failure> {
    match name {
        "minute" => Ok(Grid::minute()),
        _ => read_named(name, Grid::quick, Grid::paper),
    }
}

/// The study's own grid of this name, or the one in the file of this name.
pub fn read_named(name: &str, quick: fn() -> Grid, paper: fn() -> Grid) -> Result<Grid, Failure> {
    match name {
        "quick" => Ok(quick()),
        "paper" => Ok(paper()),
        file => {
            let text = read_user_file(Path::new(file)).map_err(|error| {
                let message =
                    format!("--grid {file}: neither quick nor paper nor a file that can be read: {error}");
                Failure::message(Kind::Usage, message)
            })?;
            Grid::parse(file, &text)
                .map_err(|error| Failure::message(Kind::Usage, format!("--grid {file}: {error}")))
        }
    }
}

/// The environments that are named.
///
/// # Errors
/// One is none, or the file of names cannot be read.
pub fn named(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    find_environments(texts).map_err(|error| Failure::new(Kind::Usage, error))
}

/// The environments that machines live in, each as often as it takes machines in a row.
///
/// # Errors
/// As [`named`].
pub fn spread(texts: &[String]) -> Result<Vec<NamedEnvironment>, Failure> {
    find_homes(texts).map_err(|error| Failure::new(Kind::Usage, error))
}

/// The points of the run that is resumed, or those that are named, and how each is measured.
///
/// # Errors
/// The named grid cannot be read.
pub fn options(
    args: &RunArgs,
    guest: &GuestArgs,
    named: impl FnOnce() -> Result<Grid, Failure>,
) -> Result<GridOptions, Failure> {
    let begun = args.folder.out.as_deref().filter(|_| args.folder.resume).and_then(Grid::of_run);
    let grid = begun.map_or_else(named, Ok)?;
    Ok(GridOptions {
        grid: Grid {
            repetitions: args.repetitions.unwrap_or(grid.repetitions),
            ramp_ns: args.ramp.unwrap_or(grid.ramp_ns),
            time_ns: args.time.unwrap_or(grid.time_ns),
            ..grid
        },
        outstanding: args.outstanding,
        workers: args.workers,
        size_bytes: args.size,
        target_dir: args.target_dir.clone(),
        seed: args.seed,
        guest: guest.options(),
    })
}
