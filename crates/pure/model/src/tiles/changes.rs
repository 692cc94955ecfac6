//! Two configurations with as many tiles: what changed, and which member moved.

use super::configuration::{TileConfiguration, TileMember, TileStep};
use crate::ratio::{Ratio, paired_ratio};

/// A configuration against the first one with as many tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileChange {
    /// Which configuration.
    pub configuration: usize,
    /// Tiles on both.
    pub tiles: u32,
    /// The totals as a ratio, from runs of the same number; the sums of the tiles' scores where only one of the two has an
    /// infrastructure load.
    pub sum: Ratio,
    /// Every member's ratio, the one that moved most first.
    pub members: Vec<(String, Ratio)>,
}

/// All but the first against it.
pub(super) fn changes(configurations: &[TileConfiguration], seed: u64) -> Vec<TileChange> {
    let Some((reference, others)) = configurations.split_first() else { return Vec::new() };
    let pairs = others.iter().enumerate().flat_map(|(index, other)| {
        let both = other.steps.iter().filter_map(|after| {
            Some((reference.steps.iter().find(|before| before.tiles == after.tiles)?, after))
        });
        both.map(move |(before, after)| (index + 1, before, after))
    });
    pairs.filter_map(|(index, before, after)| change(index, before, after, seed)).collect()
}

fn change(configuration: usize, before: &TileStep, after: &TileStep, seed: u64) -> Option<TileChange> {
    // Totals of different parts are not compared.
    let is_alike = before.infrastructure.is_some() == after.infrastructure.is_some();
    let scores = |step: &TileStep| if is_alike { step.totals.clone() } else { step.sums.clone() };
    let sum = paired_ratio(&scores(before), &scores(after), seed)?;
    let both = after.members.iter().filter_map(|member| {
        let is_same =
            |other: &&TileMember| other.name == member.name && other.infrastructure == member.infrastructure;
        let other = before.members.iter().find(is_same)?;
        Some((member.name.clone(), paired_ratio(&other.by_run, &member.by_run, seed)?))
    });
    let mut members: Vec<(String, Ratio)> = both.collect();
    let moved = |ratio: &Ratio| ratio.value.ln().abs();
    members.sort_by(|(_, a), (_, b)| moved(b).total_cmp(&moved(a)));
    Some(TileChange { configuration, tiles: after.tiles, sum, members })
}
