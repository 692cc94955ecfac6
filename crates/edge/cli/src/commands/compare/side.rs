//! One side of a comparison: a run folder, or a folder of runs that repeat each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use virtbench_model::before_after::RunSet;
use virtbench_record::{PointKey, PointRecord, Provenance, Records};
use virtbench_runs::{load_any_run, read_provenance};

use crate::exit::{Failure, Kind};
use crate::progress;

/// What a side measured.
pub struct Side {
    /// Of its first run.
    pub provenance: Provenance,
    /// What each of its runs measured.
    pub runs: Vec<Vec<PointRecord>>,
}

impl Side {
    /// As the comparison takes it.
    pub fn set(&self) -> RunSet<'_> {
        RunSet { provenance: &self.provenance, runs: self.runs.iter().map(Vec::as_slice).collect() }
    }

    /// The points that it measured, each once.
    pub fn points(&self) -> BTreeSet<PointKey> {
        self.runs.iter().flatten().map(|record| record.point).collect()
    }
}

/// The folder of a turn, counted from 1.
pub fn turn_folder(side: &Path, turn: u32) -> PathBuf {
    side.join(turn.to_string())
}

/// Reads a run folder, or the runs of the turns in it.
///
/// # Errors
/// There is no run, one has no points, or the runs are of different plans or versions.
pub fn open(path: &Path) -> Result<Side, Failure> {
    let turns = turns(path);
    let reading = progress::counted(turns.len().max(1), "reading runs");
    let mut turns = turns.into_iter();
    let mut side = open_run(&turns.next().unwrap_or_else(|| path.to_owned()))?;
    reading.inc(1);
    for turn in turns {
        let other = open_run(&turn)?;
        reading.inc(1);
        let part = side.provenance.plan.first_difference(&other.provenance.plan);
        let version = (side.provenance.version != other.provenance.version).then_some("the version".into());
        if let Some(part) = part.or(version) {
            let message = format!("{}: {part} is not that of the first turn beside it", turn.display());
            return Err(Failure::message(Kind::Folder, message));
        }
        side.runs.extend(other.runs);
    }
    reading.finish_and_clear();
    Ok(side)
}

/// Folders of turns that hold a run; none in a run folder.
fn turns(path: &Path) -> Vec<PathBuf> {
    if read_provenance(path).is_ok() {
        return Vec::new();
    }
    (1..).map(|turn| turn_folder(path, turn)).take_while(|turn| read_provenance(turn).is_ok()).collect()
}

fn open_run(path: &Path) -> Result<Side, Failure> {
    let run = load_any_run(path).map_err(|error| Failure::new(Kind::Folder, error))?;
    let Records::Points(points) = run.records else {
        let study = run.provenance.plan.study();
        let message = format!("{}: a run of study {study} has no points to compare", path.display());
        return Err(Failure::message(Kind::Usage, message));
    };
    Ok(Side { runs: vec![points], provenance: run.provenance })
}
