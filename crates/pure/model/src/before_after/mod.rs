//! Did it get worse? Two runs of one plan, before a change and after it, at the points that both measured.
//!
//! ```text
//! repetitions of a point ------> ratio, better or worse        independent: Welch; what completed nothing decides by itself
//! points of an environment ----> the same over all points      by runs where a side has several of them
//! runs of the past ------------> at least that wide            between_runs
//! load of the hosts -----------> not comparable                crate::host_load
//! what nobody could see -------> not judged                    unjudged
//! ```

mod between_runs;
mod change;
mod compared;
mod differences;
mod environment;
mod independent;
mod unjudged;

use std::collections::BTreeMap;

use virtbench_record::{PointKey, PointRecord, Provenance};

pub use self::between_runs::BetweenRuns;
pub use self::change::Change;
pub use self::compared::{BeforeAfter, ChangedEnvironment, ChangedPoint};
pub(crate) use self::differences::differences;
pub(crate) use self::independent::LogRatio;
pub use crate::host_load::{Busier, Load};
pub use crate::quantity::{Direction, Quantity};

use self::environment::{Repetitions, Rules, changed_environment};
use self::unjudged::unjudged;
use crate::pairwise::{LEVEL, Margin};

/// One side of a comparison: a run, or several that repeat each other.
#[derive(Debug, Clone)]
pub struct RunSet<'a> {
    /// Of its first run.
    pub provenance: &'a Provenance,
    /// What each run measured.
    pub runs: Vec<&'a [PointRecord]>,
}

impl<'a> RunSet<'a> {
    /// A single run.
    #[must_use]
    pub fn one(provenance: &'a Provenance, records: &'a [PointRecord]) -> Self {
        Self { provenance, runs: vec![records] }
    }
}

/// Records of each point of each environment, run by run.
type Samples<'r> = BTreeMap<(&'r str, PointKey), Repetitions<'r>>;

/// Compares two sides at the points of the environments that both have. Repetitions of one side have no counterpart in the
/// other: they are pooled. `between` is how much comparable runs differ, where that is known.
#[must_use]
pub fn before_after(sides: [&RunSet<'_>; 2], margin: Margin, between: Option<&BetweenRuns>) -> BeforeAfter {
    let [old, new] = sides.map(samples);
    let common: Vec<(&str, PointKey)> = old.keys().filter(|key| new.contains_key(*key)).copied().collect();
    let planned = sides[0].provenance.plan.environments();
    let mut names: Vec<&str> = Vec::new();
    for name in planned.iter().map(String::as_str).chain(common.iter().map(|(name, _)| *name)) {
        if common.iter().any(|(other, _)| *other == name) && !names.contains(&name) {
            names.push(name);
        }
    }
    // Half of what may be false goes to the points, half to the environments.
    let adjusted = |number: usize| 1.0 - LEVEL / (number * Quantity::ALL.len()).max(1) as f64;
    let is_alternated = alternated(sides[0], sides[1]);
    // What runs of different days differ by does not part sides that were measured in turn.
    let between = between.filter(|_| !is_alternated);
    let rules = Rules {
        margin,
        careful: [adjusted(common.len()), adjusted(names.len())],
        between,
        alternated: is_alternated,
    };
    let environments = names.iter().map(|name| {
        let points = common.iter().filter(|(other, _)| other == name);
        let points: Vec<_> = points.map(|key| (key.1, [&old[key], &new[key]])).collect();
        changed_environment(name, &points, &rules)
    });
    let (unmatched_environments, unmatched_points) = unmatched(&old, &new);
    let mut compared = BeforeAfter {
        margin: margin.share(),
        differences: differences(sides[0].provenance, sides[1].provenance),
        alternated: is_alternated,
        runs: sides.map(|side| side.runs.len()),
        runs_of_the_past: between.map(|between| between.runs),
        same_run: !common.is_empty() && is_same_run(sides[0], sides[1]),
        environments: environments.collect(),
        unmatched_environments,
        unmatched_points,
        undecided: Vec::new(),
    };
    compared.undecided = unjudged(&compared);
    compared
}

/// Environments of one side only, and how many points of the others are.
fn unmatched(old: &Samples<'_>, new: &Samples<'_>) -> (Vec<String>, usize) {
    let has = |side: &Samples<'_>, name: &str| side.keys().any(|(other, _)| *other == name);
    let (mut names, mut points) = (Vec::<String>::new(), 0);
    for (side, other) in [(old, new), (new, old)] {
        for key in side.keys().filter(|key| !other.contains_key(*key)) {
            if has(other, key.0) {
                points += 1;
            } else if !names.iter().any(|name| name == key.0) {
                names.push(key.0.to_owned());
            }
        }
    }
    (names, points)
}

fn samples<'r>(side: &RunSet<'r>) -> Samples<'r> {
    let mut samples = Samples::new();
    for (index, run) in side.runs.iter().enumerate() {
        // What was stopped before it completed anything says nothing.
        for record in run.iter().filter(|record| Quantity::Throughput.value(record).is_some()) {
            let runs = samples
                .entry((record.environment.as_str(), record.point))
                .or_insert_with(|| vec![Vec::new(); side.runs.len()]);
            runs[index].push(record);
        }
    }
    samples
}

/// Whether both sides hold the same measurements, such as a folder and a copy of it.
fn is_same_run(before: &RunSet<'_>, after: &RunSet<'_>) -> bool {
    before.runs == after.runs
}

/// Whether each side began before the other had ended.
fn alternated(before: &RunSet<'_>, after: &RunSet<'_>) -> bool {
    let range = |side: &RunSet<'_>| {
        let times = || side.runs.iter().flat_map(|run| run.iter()).map(|record| record.started_unix_ns);
        Some((times().min()?, times().max()?))
    };
    match (range(before), range(after)) {
        (Some(before), Some(after)) => before.0 < after.1 && after.0 < before.1,
        _ => false,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
