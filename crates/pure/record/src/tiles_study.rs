//! What the members of tiles did: a line for each number of tiles and repetition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;

use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey};
use crate::operations_study::OperationsMeasured;
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::summary::Conclusion;
use crate::tiles::TileSideNumbers;
use crate::tiles_plan::TileAlone;

/// A second of a member's series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileSecond {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Operations that ended as they should.
    pub completed: u64,
    /// Operations that failed; transactions of a database that fail are counted over the whole time alone.
    pub failed: u64,
    /// 95th percentile of response times (of a database the 90th), in nanoseconds; null where none completed.
    pub response_ns: Option<u64>,
}

/// What a member did under its load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileDone {
    /// Operations completed a second.
    pub per_second: f64,
    /// Operations that ended as they should; null where a client does not tell.
    pub completed: Option<u64>,
    /// Operations that failed.
    pub failed: u64,
    /// Response times, in nanoseconds; null where none completed, and of a client.
    pub latency_ns: Option<LatencySummary>,
    /// Response times of all: an HdrHistogram, compressed V2 in base64. A run folder keeps it in `histograms.hlog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Operations that were due or in flight at the end: they stand in the response times with the time that they waited.
    #[serde(default)]
    pub unfinished: u64,
    /// The response time that a client told, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_response_ns: Option<u64>,
    /// Failed operations by what went wrong.
    pub error_kinds: BTreeMap<String, u64>,
    /// How much later than at the common moment its users began, in nanoseconds; null where that is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
    /// Operations that were due but not started at the end of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_end: Option<u64>,
    /// Whether the member began less than nine tenths of what an open loop offered it.
    #[serde(default)]
    pub fell_behind: bool,
    /// The series, a second each.
    pub series: Vec<TileSecond>,
    /// Of the generator's threads, how busy the busiest was, in percent; null of a client.
    pub busiest_thread_percent: Option<f64>,
    /// Whether the generator was the limit, not the member.
    pub driver_is_limit: bool,
}

impl TileDone {
    /// Whether no operation was completed.
    #[must_use]
    pub fn did_nothing(&self) -> bool {
        self.completed == Some(0) || self.per_second <= 0.0
    }

    /// Operations that failed, in percent of all; nothing where there was none, or it was not counted.
    #[must_use]
    pub fn errors_percent(&self) -> Option<f64> {
        let all = self.completed?.saturating_add(self.failed);
        (all > 0).then(|| 100.0 * self.failed as f64 / all as f64)
    }

    /// How many response times there are; nothing where a client told one alone.
    #[must_use]
    pub fn timed(&self) -> Option<u64> {
        self.latency_ns.and(self.completed).map(|completed| completed.saturating_add(self.unfinished))
    }

    /// Response times at a percentile of a service level, in nanoseconds.
    #[must_use]
    pub fn response_ns(&self, percentile: f64) -> Option<u64> {
        let Some(latency) = &self.latency_ns else { return self.client_response_ns };
        let known = [
            (50.0, latency.p50),
            (90.0, latency.p90),
            (95.0, latency.p95),
            (99.0, latency.p99),
            (99.9, latency.p99_9),
        ];
        known.into_iter().find(|(known, _)| (known - percentile).abs() < 1e-9).map(|(_, ns)| ns)
    }
}

/// A member of one tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileMemberMeasured {
    /// Which tile, from 1.
    pub tile: u32,
    /// Its name.
    pub member: String,
    /// Until its services were ready, in nanoseconds since its start.
    pub ready_ns: u64,
    /// How busy the thread was that carries its network, in percent while measuring; null where the network has no thread of its
    /// own, as natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_thread_percent: Option<f64>,
    /// What it did; null of one that has no load.
    pub done: Option<TileDone>,
}

/// A second of the host while tiles were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileHostSecond {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Everything that is not idle, in percent of one processor.
    pub cpu_percent: f64,
    /// What a hypervisor below took away, in percent of one processor.
    pub steal_percent: f64,
    /// Memory that is available, in bytes; null where it is not reported.
    pub available_bytes: Option<u64>,
    /// Time in which the disk of the data had something to do, in percent; null where it is not counted.
    pub disk_percent: Option<f64>,
    /// Of the host's network interface that was nearest to its speed, in percent of that; null where no interface has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_percent: Option<f64>,
}

/// Power over a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerSample {
    /// When, in nanoseconds since measuring began; negative before it.
    pub at_ns: i64,
    /// Power then, in watts.
    pub watts: f64,
}

/// Energy that was used while measuring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TileEnergy {
    /// It was read.
    Read {
        /// Where, such as `rapl`.
        source: String,
        /// Power at moments.
        samples: Vec<PowerSample>,
    },
    /// It was not, and why.
    Unavailable(String),
}

/// What so many tiles did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesMeasured {
    /// From the first member's start until all were ready, in nanoseconds.
    pub ready_ns: u64,
    /// Every member of every tile.
    pub members: Vec<TileMemberMeasured>,
    /// The whole host while measuring.
    pub host: HostUse,
    /// The host's memory, in bytes; null where it is not reported.
    pub memory_bytes: Option<u64>,
    /// Second by second.
    pub seconds: Vec<TileHostSecond>,
    /// Energy.
    pub energy: TileEnergy,
    /// How long was measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// The result of the infrastructure load; null where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure: Option<OperationsMeasured>,
    /// Why the run does not count; empty where it does.
    pub void: Vec<String>,
}

/// Which member failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesFailureDetail {
    /// Of which tile, from 1; null where it was no member.
    pub tile: Option<u32>,
    /// Its name.
    pub member: Option<String>,
}

/// So many tiles at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesKey {
    /// How many.
    pub tiles: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Who alone is under load, of one tile that stands as a whole; null where everybody is, as tiles are scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<TileAlone>,
}

impl TilesKey {
    /// All members of so many tiles under load.
    #[must_use]
    pub fn together(tiles: u32, repetition: u32) -> Self {
        Self { tiles, repetition, alone: None }
    }

    /// One tile of which somebody alone is under load.
    #[must_use]
    pub fn alone(who: TileAlone) -> Self {
        Self { tiles: 1, repetition: 0, alone: Some(who) }
    }

    /// Whether the member at this place of the plan is under load, if it has one.
    #[must_use]
    pub fn loads(&self, place: usize) -> bool {
        match self.alone {
            None => true,
            Some(TileAlone::Nobody) => false,
            Some(TileAlone::Member(alone)) => alone as usize == place,
        }
    }
}

/// One line of `results.jsonl` of a study of tiles.
pub type TilesRecord = Measurement<TilesKey>;

impl TilesRecord {
    /// Why it does not count; nothing where it does.
    #[must_use]
    pub fn void(&self) -> Option<&[String]> {
        self.measured().map(|measured| measured.void.as_slice()).filter(|void| !void.is_empty())
    }

    /// Whether all members were under load, as tiles are scored.
    #[must_use]
    pub fn is_together(&self) -> bool {
        self.key.alone.is_none()
    }
}

impl MeasurementKey for TilesKey {
    type Measured = TilesMeasured;
    type Detail = TilesFailureDetail;

    fn follows(plan: &Plan) -> bool {
        plan.tiles().is_some()
    }

    fn take_histograms(&self, started_unix_ns: u64, measured: &mut TilesMeasured) -> Vec<TakenHistogram> {
        let who = match self.alone {
            None => String::new(),
            Some(TileAlone::Nobody) => "-idle".to_owned(),
            Some(TileAlone::Member(place)) => format!("-alone-{place}"),
        };
        let tag = format!("{}-tiles{who}/{}", self.tiles, self.repetition);
        let length_ns = measured.elapsed_ns;
        let member = |one: &mut TileMemberMeasured| {
            let histogram = one.done.as_mut()?.histogram.take()?;
            let tag = format!("{tag}/{}-{}", one.tile, one.member);
            Some(TakenHistogram { tag, started_unix_ns, length_ns, histogram })
        };
        let mut taken: Vec<TakenHistogram> = measured.members.iter_mut().filter_map(member).collect();
        if let Some(load) = &mut measured.infrastructure {
            taken.extend(load.take_histograms(&tag, started_unix_ns));
        }
        taken
    }
}

/// A service level that was broken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileBreach {
    /// Tiles at once.
    pub tiles: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Which tile, from 1; 0 of the infrastructure load.
    pub tile: u32,
    /// Which of its members.
    pub member: String,
    /// What was broken, in words, with what was found and what was allowed.
    pub level: String,
    /// How far, as a ratio of what was found to what was allowed (of a rate the other way round); null where the member ended.
    pub beyond: Option<f64>,
    /// Since when, in nanoseconds since measuring began; null where nobody saw it by the second.
    pub since_ns: Option<u64>,
}

/// What a member was predicted to do among so many tiles, and what it did in a run: means over the tiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilePredictedMember {
    /// Its name.
    pub member: String,
    /// Operations a second of each, predicted.
    pub predicted_per_second: f64,
    /// The same as measured.
    pub measured_per_second: f64,
    /// Mean response time, predicted, in nanoseconds; null where it does not keep up with its rate, so that there is none.
    pub predicted_response_ns: Option<u64>,
    /// The same as measured; null where a client does not tell it, or it did not keep up.
    pub measured_response_ns: Option<u64>,
}

/// So many tiles, predicted from what each member does by itself, and as a run has measured them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilePredicted {
    /// Tiles at once.
    pub tiles: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Each member that is under load.
    pub members: Vec<TilePredictedMember>,
    /// How busy all processors of the host are with the tiles, other programs left out, predicted, in percent of all of them.
    pub predicted_busy_percent: f64,
    /// The same as measured.
    pub measured_busy_percent: f64,
}

/// How far predictions of tiles are off, each of a run and member by itself: means of sizes, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilePredictionErrors {
    /// Runs that were predicted.
    pub runs: u32,
    /// Of operations a second.
    pub per_second_percent: f64,
    /// Of mean response times; null where none is known on both sides.
    pub response_percent: Option<f64>,
    /// Of how busy the host's processors were.
    pub busy_percent: f64,
}

/// What the host had left with so many tiles, means over runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileHostNumbers {
    /// Tiles at once.
    pub tiles: u32,
    /// How busy all processors were, in percent of all of them.
    pub busy_percent: f64,
    /// The busiest processor, in percent; null where single ones were not seen.
    pub busiest_processor_percent: Option<f64>,
    /// What a hypervisor below took away, in percent of all processors.
    pub steal_percent: f64,
    /// The least memory that was available, in bytes.
    pub least_available_bytes: Option<u64>,
    /// How busy the disk of the data was, in percent.
    pub disk_percent: Option<f64>,
    /// The network interface that was nearest to its speed, in percent of that; null where no interface has one.
    pub network_percent: Option<f64>,
    /// Of threads that carry a member's network, how busy the busiest was, in percent; null where there is none.
    pub network_thread_percent: Option<f64>,
    /// What was exhausted, in words; empty where nothing was that is looked at.
    pub exhausted: Vec<String>,
    /// Mean power, in watts; null where it was not read.
    pub watts: Option<f64>,
    /// The score for each kilowatt; null without a score or without power.
    pub score_per_kilowatt: Option<f64>,
}

/// A run that does not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileVoid {
    /// Tiles at once.
    pub tiles: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Why it does not count.
    pub why: Vec<String>,
}

/// The figures of a study of tiles, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesStudySummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// What the score covers: `applications only`, or also the infrastructure load with the operations that it had.
    pub covers: String,
    /// Score, tiles that fit, and every number of tiles; null where nothing was measured.
    pub tiles: Option<TileSideNumbers>,
    /// Every broken service level, as it was found.
    pub breaches: Vec<TileBreach>,
    /// The one that was broken farthest at the least number of tiles that does not fit.
    pub broke_first: Option<TileBreach>,
    /// The one that was first in time there, of those whose time is known.
    pub first_in_time: Option<TileBreach>,
    /// The host at every number of tiles.
    pub host: Vec<TileHostNumbers>,
    /// Why energy was not read, where it was not.
    pub energy_unavailable: Option<String>,
    /// Runs that do not count.
    pub void: Vec<TileVoid>,
    /// Every run of tiles as it was predicted from its members by themselves; empty where these were not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicted: Vec<TilePredicted>,
    /// How far these are off; null where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction_errors: Option<TilePredictionErrors>,
}
