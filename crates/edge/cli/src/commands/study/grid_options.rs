//! What studies of a grid of points are told on the command line.

use virtbench_study::{Grid, GridOptions};

use crate::args::{GuestArgs, RunArgs};
use crate::exit::Failure;

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
