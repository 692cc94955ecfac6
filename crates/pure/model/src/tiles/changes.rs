//! Two configurations with as many tiles: what changed, and which member moved.

use super::configuration::{TileConfiguration, TileStep};
use crate::ratio::{Ratio, paired_ratio};

/// A configuration against the first one with as many tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct TileChange {
    /// Which configuration.
    pub configuration: usize,
    /// Tiles on both.
    pub tiles: u32,
    /// The sum of the tiles' scores as a ratio, from runs of the same number.
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
    let sum = paired_ratio(&before.sums, &after.sums, seed)?;
    let both = after.members.iter().filter_map(|member| {
        let other = before.members.iter().find(|other| other.name == member.name)?;
        Some((member.name.clone(), paired_ratio(&other.by_run, &member.by_run, seed)?))
    });
    let mut members: Vec<(String, Ratio)> = both.collect();
    let moved = |ratio: &Ratio| ratio.value.ln().abs();
    members.sort_by(|(_, a), (_, b)| moved(b).total_cmp(&moved(a)));
    Some(TileChange { configuration, tiles: after.tiles, sum, members })
}
