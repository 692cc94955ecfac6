//! How much runs of one configuration differ, from the catalogue of past runs.

use std::path::Path;

use virtbench_history::{Catalogue, Filter, read_run};
use virtbench_model::before_after::BetweenRuns;
use virtbench_model::history::{HistoryRun, between_runs};

use super::side::Side;
use crate::commands::history;
use crate::exit::{Failure, Kind};
use crate::say::tell;

/// The seed of the permutations by which levels are told apart.
const SEED: u64 = 1;

/// What runs that are comparable with those of `folder` tell; nothing where there is no catalogue, or too few such runs. Both sides are
/// left out: how they differ is the question.
///
/// # Errors
/// A catalogue that was named cannot be read.
pub fn between(
    named: Option<&Path>,
    folders: [&Path; 2],
    before: &Side,
) -> Result<Option<BetweenRuns>, Failure> {
    let Some(path) = named.map(Path::to_owned).or_else(|| history::default_catalogue().ok()) else {
        return Ok(None);
    };
    let opened = Catalogue::open_to_read(history::place(&path)?)
        .and_then(|found| found.map(|found| found.runs(&Filter::default())).transpose());
    let runs = match opened {
        Ok(Some(runs)) => runs,
        Ok(None) if named.is_some() => {
            let message = format!(
                "--catalogue: {} is no catalogue of this version: virtbench history list DIR fills one",
                path.display()
            );
            return Err(Failure::message(Kind::Folder, message));
        }
        Ok(None) => return Ok(None),
        Err(error) if named.is_some() => return Err(Failure::new(Kind::Folder, error)),
        Err(error) => {
            tell!("how much runs differ is not known: {error}");
            return Ok(None);
        }
    };
    let sides: Vec<HistoryRun> = folders.iter().filter_map(|folder| read_run(folder).ok()).collect();
    let Some(of_before) = sides.first() else { return Ok(None) };
    let is_past = |run: &&HistoryRun| {
        run.study == of_before.study
            && run.parts == of_before.parts
            && sides.iter().all(|side| side.identity != run.identity)
    };
    let mut past: Vec<&HistoryRun> = runs.iter().filter(is_past).collect();
    past.sort_by_key(|run| (run.started_unix_s, &run.identity));
    past.dedup_by_key(|run| &run.identity);
    let points: Vec<_> = before.points().into_iter().collect();
    Ok(between_runs(&past, before.provenance.plan.environments(), &points, SEED))
}
