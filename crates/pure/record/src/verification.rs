//! What verification found on a target.

use serde::{Deserialize, Serialize};

/// How a block differs from what it should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// After the load, the target still holds another version than the one it acknowledged.
    Lost,
    /// During the load, a read returned another version than the one acknowledged.
    Stale,
    /// Sectors of one block come from different writes.
    Torn,
    /// The block holds what was written for another offset.
    Misplaced,
    /// The block was written by another run: its header carries another seed.
    Foreign,
    /// A header or what follows it does not match its checksum, or there is no header at all.
    Corrupt,
}

/// One damaged block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DamagedBlock {
    /// Where, in bytes from the target's start.
    pub offset: u64,
    /// In what way.
    pub damage: Damage,
    /// What was expected and what was found.
    pub words: String,
}

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// Size of a block, in bytes: the unit that is judged as one.
    pub block_bytes: u64,
    /// Blocks whose contents were judged, each time they were read.
    pub blocks_checked: u64,
    /// Blocks read of which nothing is known: never written, trimmed, or their write failed.
    pub blocks_unknown: u64,
    /// See [`Damage::Lost`].
    pub lost: u64,
    /// See [`Damage::Stale`].
    pub stale: u64,
    /// See [`Damage::Torn`].
    pub torn: u64,
    /// See [`Damage::Misplaced`].
    pub misplaced: u64,
    /// See [`Damage::Foreign`].
    pub foreign: u64,
    /// See [`Damage::Corrupt`].
    pub corrupt: u64,
    /// The first damaged blocks, at most ten.
    pub examples: Vec<DamagedBlock>,
    /// Whether the whole region was read once the load was over.
    pub complete: bool,
}

impl Verification {
    /// The most examples kept.
    pub const MAX_EXAMPLES: usize = 10;

    /// Findings of every kind together.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.lost + self.stale + self.torn + self.misplaced + self.foreign + self.corrupt
    }

    /// Counts a finding, and keeps it while there are few examples.
    pub fn add(&mut self, block: DamagedBlock) {
        *match block.damage {
            Damage::Lost => &mut self.lost,
            Damage::Stale => &mut self.stale,
            Damage::Torn => &mut self.torn,
            Damage::Misplaced => &mut self.misplaced,
            Damage::Foreign => &mut self.foreign,
            Damage::Corrupt => &mut self.corrupt,
        } += 1;
        if self.examples.len() < Self::MAX_EXAMPLES {
            self.examples.push(block);
        }
    }

    /// Adds what another worker found in the same run.
    pub fn merge(&mut self, other: &Self) {
        self.blocks_checked += other.blocks_checked;
        self.blocks_unknown += other.blocks_unknown;
        self.lost += other.lost;
        self.stale += other.stale;
        self.torn += other.torn;
        self.misplaced += other.misplaced;
        self.foreign += other.foreign;
        self.corrupt += other.corrupt;
        let room = Self::MAX_EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
        self.complete |= other.complete;
    }
}
