//! What a run has left on a platform, for the user to decide whether it goes.

use std::collections::BTreeMap;

use virtbench_mark::{Mark, RunId};

use super::sign::{Sign, Standing, now_s};

/// A run that has something on a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRun {
    /// The run.
    pub run: RunId,
    /// The name of the machine that it ran on; empty where that is not known.
    pub host: String,
    /// When the first of it was made, in seconds since 1970.
    pub made_s: u64,
    /// When it last gave a sign of life.
    pub seen_s: u64,
    /// Whether it still needs it.
    pub standing: Standing,
    /// Names of VMs and paths of volumes.
    pub things: Vec<String>,
}

/// One thing that says whose it is.
#[derive(Debug, Clone)]
pub struct MarkedThing {
    /// Whose it is.
    pub mark: Mark,
    /// Where and when it was made.
    pub sign: Sign,
    /// Whether it is a guest that runs now and ends with its run's connection.
    pub guest_runs: bool,
    /// Its name, and what goes with it.
    pub names: Vec<String>,
}

impl LeftRun {
    /// The runs of these things, each with all that it has, the oldest first.
    #[must_use]
    pub fn gather(things: impl IntoIterator<Item = MarkedThing>) -> Vec<Self> {
        let mut runs: BTreeMap<RunId, Vec<MarkedThing>> = BTreeMap::new();
        for thing in things {
            runs.entry(thing.mark.run.clone()).or_default().push(thing);
        }
        let mut left: Vec<Self> =
            runs.into_iter().filter_map(|(run, things)| Self::of(run, things)).collect();
        left.sort_by_key(|run| run.made_s);
        left
    }

    fn of(run: RunId, things: Vec<MarkedThing>) -> Option<Self> {
        let seen_s = things.iter().map(|thing| thing.sign.seen_s).max()?;
        let made_s = things.iter().map(|thing| thing.sign.made_s).min()?;
        let guest_runs = things.iter().any(|thing| thing.guest_runs);
        let standing = |thing: &MarkedThing| Standing::of(&thing.mark, seen_s, guest_runs, now_s());
        let (mut standings, host) = (things.iter().map(standing), things[0].sign.host.clone());
        let first = standings.next()?;
        let standing = if first.is_dead() {
            standings.find(|standing| !standing.is_dead()).unwrap_or(first)
        } else {
            first
        };
        let mut names: Vec<String> = things.into_iter().flat_map(|thing| thing.names).collect();
        names.sort();
        Some(Self { run, host, made_s, seen_s, standing, things: names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_gathered_by_their_run_and_one_that_lives_is_enough() {
        let (one, two) = (RunId::new_random(), RunId::new_random());
        let thing = |run: &RunId, made_s, name: &str| MarkedThing {
            mark: Mark::new(run.clone(), "vm"),
            sign: Sign { made_s, ..Sign::now() },
            guest_runs: false,
            names: vec![name.into()],
        };
        let mut dead = thing(&one, 5, "b");
        let gone = dead.mark.to_string().replace("began=", "began=1");
        dead.mark = Mark::parse(&gone).unwrap();
        let runs = LeftRun::gather([dead.clone(), thing(&two, 3, "c"), thing(&one, 7, "a")]);
        let names: Vec<_> = runs.iter().map(|run| (run.made_s, run.things.join(" "))).collect();
        assert_eq!(names, [(3, "c".to_owned()), (5, "a b".to_owned())]);
        assert!(runs.iter().all(|run| !run.standing.is_dead()), "{runs:?}");
        assert!(LeftRun::gather([dead])[0].standing.is_dead());
    }
}
