//! What a configuration does with each number of tiles.

use std::collections::BTreeMap;

use super::score::at_least_share;
use crate::interval::Estimate;
use crate::ratio::Ratio;

/// What a member did in each run, by the run's number: the geometric mean over tiles, as a share of the reference system.
pub(super) type ByRun = BTreeMap<u32, f64>;

/// A member at one number of tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileMember {
    /// Its name.
    pub name: String,
    /// What it did as a share of the reference system, geometric mean over tiles; nothing where it is not scored.
    pub normalised: Option<Estimate>,
    /// What is left of what it does with one tile: normalised reduced throughput (Georges and Eeckhout, "Performance Metrics
    /// for Consolidated Servers", HPCVirt 2010). Nothing where one tile was not measured.
    pub of_one_tile: Option<Ratio>,
    /// Times that it broke its service levels, over all tiles and runs.
    pub broken: u32,
    /// Whether it is a management operation of the infrastructure load, and no member of a tile.
    pub infrastructure: bool,
    pub(super) by_run: ByRun,
}

/// One number of tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileStep {
    /// Tiles at once.
    pub tiles: u32,
    /// Runs with them.
    pub runs: u32,
    /// Runs in which no member is known to have broken its levels.
    pub held: u32,
    /// Whether it is known of every row that its levels were kept or broken.
    pub levels_known: bool,
    /// Whose figures a run lacks, in words: it has no score.
    pub missing: Vec<String>,
    /// The sum of the tiles' scores, over runs.
    pub sum: Option<Estimate>,
    /// The score of the infrastructure load, over runs; nothing where there was none.
    pub infrastructure: Option<Estimate>,
    /// The sum, weighed with the infrastructure load where there was one.
    pub total: Option<Estimate>,
    /// Jain's index of fairness of what members have left.
    pub jain: Option<f64>,
    /// The members, in the order of the rows.
    pub members: Vec<TileMember>,
    pub(super) sums: ByRun,
    pub(super) totals: ByRun,
}

impl TileStep {
    /// Whether there are tiles and all runs kept all levels, as far as they are known.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.tiles > 0 && self.runs > 0 && self.held == self.runs
    }

    /// The score, which a broken level voids.
    #[must_use]
    pub fn score(&self) -> Option<Estimate> {
        self.total.filter(|_| self.fits())
    }

    /// The member that broke its levels most often; of equals the first.
    #[must_use]
    pub fn weakest(&self) -> Option<&TileMember> {
        let broken = self.members.iter().filter(|member| member.broken > 0);
        // Of equals `max_by_key` returns the last.
        broken.rev().max_by_key(|member| member.broken)
    }
}

/// One configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct TileConfiguration {
    /// Its name.
    pub name: String,
    /// Every number of tiles, ascending.
    pub steps: Vec<TileStep>,
}

impl TileConfiguration {
    /// The most tiles that fit: the last number before the first that does not.
    #[must_use]
    pub fn most(&self) -> Option<&TileStep> {
        self.steps.iter().take_while(|step| step.fits()).last()
    }

    /// The least number of tiles that does not fit.
    #[must_use]
    pub fn too_many(&self) -> Option<&TileStep> {
        self.steps.iter().find(|step| !step.fits())
    }

    /// The share of runs with the most tiles that hold at least, with 95 % confidence.
    #[must_use]
    pub fn holds_at_least(&self) -> Option<f64> {
        at_least_share(self.most()?.runs)
    }
}
