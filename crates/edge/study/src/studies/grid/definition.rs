//! Which points of the throughput surface are measured, for how long, and in which order.

use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use virtbench_record::{GridPlan, PointKey};
use virtbench_runs::read_provenance;
use virtbench_units::{Random, parse_bytes, parse_duration_ns};
use virtbench_workload::{AccessLine, AccessSpec, LoadError, LoadSpec};

/// The most points a grid may have.
const MAX_POINTS: usize = 10_000;

/// A grid that cannot be used.
#[derive(Debug, Error)]
pub enum GridError {
    /// The file is not TOML with the fields of a grid; the message names line and field.
    #[error("the grid file cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A value that makes no sense.
    #[error("grid: {0}")]
    Value(String),
}

/// A grid as a user writes it, in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    blocks: Vec<String>,
    reads: Vec<u8>,
    randoms: Vec<u8>,
    repetitions: Option<u32>,
    ramp: Option<String>,
    time: Option<String>,
}

/// The points of a surface: every block size with every share of reads and of random seeks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Its name.
    pub name: String,
    /// Block sizes, in bytes.
    pub blocks_bytes: Vec<u64>,
    /// Shares of reads, in percent.
    pub read_percents: Vec<u8>,
    /// Shares of random seeks, in percent.
    pub random_percents: Vec<u8>,
    /// Repetitions of each point.
    pub repetitions: u32,
    /// Ramp-up before each point, in nanoseconds.
    pub ramp_ns: u64,
    /// Measuring time of each point, in nanoseconds.
    pub time_ns: u64,
}

impl Grid {
    /// [ESX Disk 2003]'s grid (section 3.1): 1, 4, 8, 16 KiB x 0, 25, 50, 75, 100 % read x as many shares
    /// random, three minutes each. The paper measured each point once; so does this.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            name: "paper".into(),
            blocks_bytes: vec![1 << 10, 4 << 10, 8 << 10, 16 << 10],
            read_percents: vec![0, 25, 50, 75, 100],
            random_percents: vec![0, 25, 50, 75, 100],
            repetitions: 1,
            ramp_ns: 5_000_000_000,
            time_ns: 180_000_000_000,
        }
    }

    /// The same surface at the corners and in the middle, for two block sizes, repeated: what fits
    /// four minutes.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            name: "quick".into(),
            blocks_bytes: vec![4 << 10, 16 << 10],
            read_percents: vec![0, 50, 100],
            random_percents: vec![0, 50, 100],
            repetitions: 3,
            ramp_ns: 300_000_000,
            time_ns: 1_200_000_000,
        }
    }

    /// Blocks of 4 KiB at the corners of the surface, once: what fits ten seconds.
    #[must_use]
    pub fn minute() -> Self {
        Self {
            name: "minute".into(),
            blocks_bytes: vec![4 << 10],
            read_percents: vec![0, 100],
            random_percents: vec![0, 100],
            repetitions: 1,
            ramp_ns: 150_000_000,
            time_ns: 400_000_000,
        }
    }

    /// [ESX Adapters 2006]'s matrix (Table 1): 4 to 64 KiB x read or write x sequential or random, 60 s of ramp-up
    /// and three minutes each. The paper measured each point once; so does this.
    #[must_use]
    pub fn adapters_paper() -> Self {
        Self {
            name: "paper".into(),
            blocks_bytes: [4, 8, 16, 32, 64].map(|kib| kib << 10).to_vec(),
            read_percents: vec![0, 100],
            random_percents: vec![0, 100],
            repetitions: 1,
            ramp_ns: 60_000_000_000,
            time_ns: 180_000_000_000,
        }
    }

    /// The same matrix at its ends and in the middle, repeated: what fits four minutes with four
    /// configurations.
    #[must_use]
    pub fn adapters_quick() -> Self {
        Self {
            blocks_bytes: [4, 16, 64].map(|kib| kib << 10).to_vec(),
            read_percents: vec![0, 100],
            random_percents: vec![0, 100],
            repetitions: 3,
            ramp_ns: 250_000_000,
            time_ns: 1_000_000_000,
            ..Self::quick()
        }
    }

    /// Reads a grid from TOML:
    ///
    /// ```toml
    /// blocks = ["4k", "64k"]
    /// reads = [0, 50, 100]
    /// randoms = [0, 100]
    /// repetitions = 5     # of each point, default 3
    /// ramp = "1s"         # default 1s
    /// time = "10s"        # default 10s
    /// ```
    ///
    /// # Errors
    /// An unknown or missing field, or a value outside its limits.
    pub fn parse(name: &str, text: &str) -> Result<Self, GridError> {
        let file: GridFile = toml::from_str(text)?;
        let duration = |text: Option<String>, default| {
            text.map_or(Ok(default), |text| parse_duration_ns(&text))
                .map_err(|error| GridError::Value(error.to_string()))
        };
        let blocks = file.blocks.iter().map(|text| parse_bytes(text));
        let grid = Self {
            name: name.to_owned(),
            blocks_bytes: blocks
                .collect::<Result<_, _>>()
                .map_err(|error| GridError::Value(error.to_string()))?,
            read_percents: file.reads,
            random_percents: file.randoms,
            repetitions: file.repetitions.unwrap_or(3),
            ramp_ns: duration(file.ramp, 1_000_000_000)?,
            time_ns: duration(file.time, 10_000_000_000)?,
        };
        grid.validate()?;
        Ok(grid)
    }

    /// The points of the run in a folder, if there is one.
    #[must_use]
    pub fn of_run(folder: &Path) -> Option<Self> {
        let provenance = read_provenance(folder).ok()?;
        let plan = provenance.plan.grid()?.clone();
        Some(Self {
            name: plan.grid,
            blocks_bytes: plan.blocks_bytes,
            read_percents: plan.read_percents,
            random_percents: plan.random_percents,
            repetitions: plan.repetitions,
            ramp_ns: plan.ramp_ns,
            time_ns: plan.time_ns,
        })
    }

    /// Every point, each once, in the order of the lists.
    #[must_use]
    pub fn points(&self) -> Vec<PointKey> {
        cross(&self.blocks_bytes, &self.read_percents, &self.random_percents)
    }

    fn validate(&self) -> Result<(), GridError> {
        let value = |message: String| Err(GridError::Value(message));
        for (name, length) in [
            ("blocks", self.blocks_bytes.len()),
            ("reads", self.read_percents.len()),
            ("randoms", self.random_percents.len()),
        ] {
            if length == 0 {
                return value(format!("{name} is empty"));
            }
        }
        if let Some(percent) =
            self.read_percents.iter().chain(&self.random_percents).find(|percent| **percent > 100)
        {
            return value(format!("{percent} is over 100 %"));
        }
        if !(1..=1000).contains(&self.repetitions) {
            return value(format!("repetitions = {} is outside 1 to 1000", self.repetitions));
        }
        let points = self.blocks_bytes.len() * self.read_percents.len() * self.random_percents.len();
        if points > MAX_POINTS {
            return value(format!("{points} points are more than {MAX_POINTS}"));
        }
        Ok(())
    }
}

/// Every point of a plan, each once, in the order of the plan's lists.
pub(crate) fn points(plan: &GridPlan) -> Vec<PointKey> {
    cross(&plan.blocks_bytes, &plan.read_percents, &plan.random_percents)
}

fn cross(blocks_bytes: &[u64], read_percents: &[u8], random_percents: &[u8]) -> Vec<PointKey> {
    let mut points = Vec::new();
    for &block_bytes in blocks_bytes {
        for &read_percent in read_percents {
            for &random_percent in random_percents {
                let point = PointKey { block_bytes, read_percent, random_percent };
                if !points.contains(&point) {
                    points.push(point);
                }
            }
        }
    }
    points
}

/// Checks that every point of a plan is a load that can be applied.
///
/// # Errors
/// The first point's load that cannot, naming the flag to change.
pub fn check_plan(plan: &GridPlan) -> Result<(), LoadError> {
    points(plan).into_iter().try_for_each(|point| load_of(plan, point, 0).validate())
}

/// The load of one point of a plan. Both environments get the same, seed included.
#[must_use]
pub(crate) fn load_of(plan: &GridPlan, point: PointKey, repetition: u32) -> LoadSpec {
    LoadSpec {
        outstanding: plan.outstanding,
        workers: plan.workers,
        ramp_ns: plan.ramp_ns,
        time_ns: plan.time_ns,
        interval_ns: (plan.time_ns / 10).max(1_000_000),
        seed: plan.seed.wrapping_add(u64::from(repetition)),
        ..LoadSpec::new(
            AccessSpec::single(AccessLine::new(
                point.block_bytes,
                f64::from(point.read_percent),
                f64::from(point.random_percent),
            )),
            plan.size_bytes,
        )
    }
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledPoint {
    /// The point.
    pub point: PointKey,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Index of the environment in the plan.
    pub environment: usize,
}

/// Every measurement of a plan, in order.
///
/// Environments alternate at each point, so that whatever drifts (a disk that fills, a neighbour
/// on the host) hits them alike, and which comes first alternates too, since the second may find
/// a warmer device. Each repetition passes through the points in an order of its own, drawn from
/// the plan's seed, so that no point always follows the same other one.
#[must_use]
pub fn schedule(plan: &GridPlan) -> Vec<ScheduledPoint> {
    let mut random = Random::new(plan.seed);
    let mut steps = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut order = points(plan);
        shuffle(&mut order, &mut random);
        for (index, point) in order.into_iter().enumerate() {
            let mut environments: Vec<usize> = (0..plan.environments.len()).collect();
            if (index + repetition as usize) % 2 == 1 {
                environments.reverse();
            }
            steps.extend(environments.into_iter().map(|environment| ScheduledPoint {
                point,
                repetition,
                environment,
            }));
        }
    }
    steps
}

/// Fisher and Yates.
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        let chosen = usize::try_from(random.below(last as u64 + 1)).unwrap_or(last);
        items.swap(last, chosen);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_paper_measured_a_hundred_points() {
        let grid = Grid::paper();
        let fifths = vec![0, 25, 50, 75, 100];
        assert_eq!(grid.blocks_bytes, [1024, 4096, 8192, 16384]);
        assert_eq!((&grid.read_percents, &grid.random_percents), (&fifths, &fifths));
        assert_eq!((grid.points().len(), grid.repetitions, grid.time_ns), (100, 1, 180_000_000_000));
    }

    #[test]
    fn the_second_paper_measured_twenty_points_of_three_minutes() {
        let grid = Grid::adapters_paper();
        assert_eq!(grid.blocks_bytes, [4096, 8192, 16384, 32768, 65536]);
        assert_eq!((&grid.read_percents, &grid.random_percents), (&vec![0, 100], &vec![0, 100]));
        assert_eq!((grid.points().len(), grid.ramp_ns, grid.time_ns), (20, 60_000_000_000, 180_000_000_000));
        assert!(Grid::adapters_quick().points().iter().all(|point| grid.points().contains(point)));
    }

    #[test]
    fn a_grid_file_is_read() {
        let text = "blocks = ['4k']\nreads = [0, 100]\nrandoms = [50]\ntime = '2s'";
        let grid = Grid::parse("mine", text).unwrap();
        assert_eq!((grid.blocks_bytes, grid.repetitions, grid.time_ns), (vec![4096], 3, 2_000_000_000));
    }

    #[test]
    fn errors_name_the_field() {
        for (text, word) in [
            ("blocks = ['4k']\nreads = []\nrandoms = [0]", "reads is empty"),
            ("blocks = ['4k']\nreads = [101]\nrandoms = [0]", "101"),
            ("blocks = ['4q']\nreads = [1]\nrandoms = [0]", "4q"),
            ("blocks = ['4k']\nreads = [1]\nrandoms = [0]\nspeed = 1", "speed"),
            ("blocks = ['4k']\nreads = [1]\nrandoms = [0]\nrepetitions = 0", "repetitions"),
            ("nonsense", "line 1"),
        ] {
            let message = Grid::parse("g", text).unwrap_err().to_string();
            assert!(message.contains(word), "{text:?}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,120}") {
            let _ = Grid::parse("g", &text);
        }
    }

    fn plan() -> GridPlan {
        GridPlan {
            grid: "test".into(),
            blocks_bytes: vec![4096, 16384],
            read_percents: vec![0, 100],
            random_percents: vec![0, 100],
            repetitions: 4,
            outstanding: 16,
            workers: 1,
            ramp_ns: 0,
            time_ns: 1,
            size_bytes: 1 << 20,
            environments: vec!["native".into(), "vm".into()],
            seed: 3,
        }
    }

    #[test]
    fn everything_is_measured_once() {
        let steps = schedule(&plan());
        let distinct: BTreeSet<_> =
            steps.iter().map(|step| (step.point, step.repetition, step.environment)).collect();
        assert_eq!((steps.len(), distinct.len()), (64, 64));
    }

    #[test]
    fn environments_meet_at_each_point_and_take_turns_at_going_first() {
        let steps = schedule(&plan());
        let mut first = [0, 0];
        for pair in steps.chunks(2) {
            assert_eq!((pair[0].point, pair[0].repetition), (pair[1].point, pair[1].repetition));
            assert_ne!(pair[0].environment, pair[1].environment);
            first[pair[0].environment] += 1;
        }
        assert_eq!(first, [16, 16]);
    }

    #[test]
    fn a_seed_reproduces_the_order_and_another_changes_it() {
        assert_eq!(schedule(&plan()), schedule(&plan()));
        assert_ne!(schedule(&plan()), schedule(&GridPlan { seed: 4, ..plan() }));
    }
}
