//! `--grid`: the points of a surface.

use std::path::Path;

use virtbench_study::{Grid, read_user_file};

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
