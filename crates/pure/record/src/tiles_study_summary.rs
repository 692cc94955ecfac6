//! What a program reads of a study of tiles.

use serde::{Deserialize, Serialize};

use crate::summary::Conclusion;
use crate::tiles_summary::TileSideNumbers;

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
}
