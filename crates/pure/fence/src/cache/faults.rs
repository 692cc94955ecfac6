//! What cannot be left by anybody who keeps the crash contract: a start refuses it, an inspection tells it.
//!
//! Nothing that a power failure may leave is a fault: one superblock torn, a commit cut off, what lies ahead of the log's
//! head. A damaged partition is one of its own: the others are served. The log's younger half has been repeated in full, so that an entry is lost only if a block of that half is
//! damaged, or of a commit behind it that seems to be cut off. There, what was torn is told from what was damaged by
//! sectors: each is written whole, so that an entry that was never written has no written one beside it.

use std::collections::BTreeSet;

use thiserror::Error;

use super::metadata::{ENTRY_BYTES, Entry, Identity, LogHeader, PartitionLayout, Superblock, chunks};
use super::table::{NONE, Table};

/// Faults that are told one by one; more are counted.
const MOST_FAULTS: usize = 100;

const SECTOR_BYTES: usize = 512;

/// What no power failure leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    /// Two superblocks of one number that say different things.
    #[error("both superblocks have sequence {sequence} and say different things")]
    Superblocks {
        /// The number.
        sequence: u64,
    },
    /// A block of the log is not what was written there, in the half that every entry is in.
    #[error(
        "partition {partition}: block {log_block} of the log is damaged: a part of commit {commit} is lost"
    )]
    Log {
        /// Which partition.
        partition: usize,
        /// Which log block.
        log_block: u32,
        /// What should be there.
        commit: u64,
    },
    /// The log of a cache that has been used has nothing in it.
    #[error("partition {partition}: the log is empty, though the cache has been used")]
    Emptied {
        /// Which partition.
        partition: usize,
    },
    /// The log in memory is not as a process that served the cache left it.
    #[error(
        "the log in memory is damaged or another version's: remove its file from the folder that cache.memory names to give \
         up what was answered and not flushed"
    )]
    Memory,
    /// An entry of this cache that names what is not there.
    #[error(
        "partition {partition}: an entry says that block {block} holds byte {at_bytes} of disk {disk}: there is none"
    )]
    Stray {
        /// Which partition.
        partition: usize,
        /// The data block.
        block: u32,
        /// The disk.
        disk: u16,
        /// Where on it.
        at_bytes: u64,
    },
    /// Two entries of one version that say different things of a block.
    #[error("partition {partition}: two entries of version {generation} disagree about block {block}")]
    Contradiction {
        /// Which partition.
        partition: usize,
        /// The data block.
        block: u32,
        /// The version.
        generation: u64,
    },
    /// Two blocks of one version.
    #[error("partition {partition}: blocks {blocks:?} have the same version {generation}")]
    SameVersion {
        /// Which partition.
        partition: usize,
        /// The data blocks.
        blocks: [u32; 2],
        /// The version.
        generation: u64,
    },
}

impl Fault {
    /// The partition that it is in; none for what all of them rest on.
    #[must_use]
    pub const fn partition(&self) -> Option<usize> {
        match *self {
            Self::Superblocks { .. } | Self::Memory => None,
            Self::Log { partition, .. }
            | Self::Emptied { partition }
            | Self::Stray { partition, .. }
            | Self::Contradiction { partition, .. }
            | Self::SameVersion { partition, .. } => Some(partition),
        }
    }
}

/// Those found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) told: Vec<Fault>,
    pub(super) more: u64,
    /// Partitions that have any, and whether all have.
    partitions: BTreeSet<usize>,
    everywhere: bool,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        match fault.partition() {
            Some(partition) => drop(self.partitions.insert(partition)),
            None => self.everywhere = true,
        }
        if self.told.len() < MOST_FAULTS { self.told.push(fault) } else { self.more += 1 }
    }

    /// Whether a partition cannot be believed.
    pub(super) fn concern(&self, partition: usize) -> bool {
        self.everywhere || self.partitions.contains(&partition)
    }
}

/// Looks for two superblocks of one number.
pub(super) fn check_superblocks(superblocks: &[u8], faults: &mut Faults) {
    let mut copies = superblocks.chunks_exact(4096).filter_map(Superblock::decode);
    if let (Some(first), Some(second)) = (copies.next(), copies.next())
        && first.sequence == second.sequence
        && first != second
    {
        faults.add(Fault::Superblocks { sequence: first.sequence });
    }
}

/// Looks at the log of a partition: that it is there, its younger half, and what seems to be cut off behind it.
pub(super) fn check_log(
    found: &Superblock,
    partition: usize,
    place: &PartitionLayout,
    end: &End,
    bytes: &[u8],
    faults: &mut Faults,
) {
    if found.begun && end.stable == 0 {
        return faults.add(Fault::Emptied { partition });
    }
    check_chain(partition, place, end, faults);
    let identity = Identity::new(&found.uuid);
    for ((block, header), log_block) in bytes.chunks_exact(4096).zip(&end.headers).zip(0..) {
        if header.is_none()
            && let Some(LogHeader { commit, .. }) = LogHeader::peek(identity, block)
            && commit > end.stable
            && block.chunks_exact(SECTOR_BYTES).enumerate().any(|sector| is_damaged(identity, sector))
        {
            faults.add(Fault::Log { partition, log_block, commit });
        }
    }
}

/// Whether a sector of a log block has both what this cache wrote and what it did not.
fn is_damaged(identity: Identity, (sector, bytes): (usize, &[u8])) -> bool {
    let header = usize::from(sector == 0);
    let entries = &bytes.as_chunks::<ENTRY_BYTES>().0[header..];
    let written = |entry: &[u8; ENTRY_BYTES]| Entry::decode(identity, entry).is_some();
    let foreign = |entry: &[u8; ENTRY_BYTES]| !written(entry) && entry.iter().any(|byte| *byte != 0);
    (header == 1 || entries.iter().any(written)) && entries.iter().any(foreign)
}

/// Goes back from the log's head, commit by commit, through the half in which everything has been repeated.
fn check_chain(partition: usize, place: &PartitionLayout, end: &End, faults: &mut Faults) {
    let ring = place.log_blocks;
    let (mut commit, mut index) = (end.stable, None);
    for back in 1..=chunks(place.blocks) {
        if commit == 0 {
            return;
        }
        let log_block = (end.head + ring - back) % ring;
        let fits = |header: &LogHeader| {
            header.commit == commit && header.index == index.unwrap_or(header.count.wrapping_sub(1))
        };
        let Some(header) = end.headers[log_block as usize].filter(fits) else {
            // What lies before it cannot be counted on any more, so that looking further tells nothing.
            return faults.add(Fault::Log { partition, log_block, commit });
        };
        index = header.index.checked_sub(1);
        if index.is_none() {
            commit = header.after;
        }
    }
}

/// Looks for blocks of one version.
pub(super) fn check_versions(partition: usize, table: &Table, faults: &mut Faults) {
    let version = |block: u32| (table.generation(block), block);
    let mut versions: Vec<(u64, u32)> =
        (0..table.len()).map(version).filter(|(version, _)| *version > 0).collect();
    versions.sort_unstable();
    let mut before = (0, NONE);
    for (generation, block) in versions {
        if generation == before.0 {
            faults.add(Fault::SameVersion { partition, blocks: [before.1, block], generation });
        }
        before = (generation, block);
    }
}

/// How far the log goes.
pub(super) struct End {
    /// The log block behind the last whole commit.
    pub(super) head: u32,
    /// Number of that commit, and the highest number seen: also of a commit that did not come to its end. A second one with
    /// its number could complete it, and what was answered for the second would pass for stable.
    pub(super) stable: u64,
    pub(super) newest: u64,
    /// Of each log block what it says of itself, if it is whole, and whether it is part of a whole commit.
    pub(super) headers: Vec<Option<LogHeader>>,
    pub(super) whole: Vec<bool>,
}

impl End {
    pub(super) fn find(identity: Identity, bytes: &[u8]) -> Self {
        let mut highest = 0;
        let header = |block| {
            // Most of a young log is empty: what has no header is not read further.
            let begun = LogHeader::peek(identity, block)?;
            highest = highest.max(begun.commit);
            LogHeader::is_whole(block).then_some(begun)
        };
        let headers: Vec<Option<LogHeader>> = bytes.chunks_exact(4096).map(header).collect();
        let newest = headers.iter().flatten().max_by_key(|header| header.commit);
        let stable = newest.map_or(0, |newest| {
            let valid = headers.iter().flatten().filter(|header| header.commit == newest.commit).count();
            if valid == newest.count as usize { newest.commit } else { newest.after }
        });
        let void = cut_off(headers.iter().flatten());
        let is_whole = |header: &LogHeader| {
            let before = void.partition_point(|&(after, _)| after < header.commit);
            let is_void = before.checked_sub(1).is_some_and(|at| header.commit < void[at].1);
            header.commit <= stable && !is_void
        };
        let last = headers.iter().zip(0..).filter_map(|(header, at)| {
            header.filter(|header| header.commit == stable).map(|header| (header.index, at))
        });
        let ring = u32::try_from(headers.len().max(1)).unwrap_or(u32::MAX);
        let head = last.max().map_or(0, |(_, at): (u32, u32)| (at + 1) % ring);
        let whole = headers.iter().map(|header| header.as_ref().is_some_and(is_whole)).collect();
        Self { head, stable, newest: highest, headers, whole }
    }
}

/// The commits that a crash cut off, as the first commit after each tells: those between the two numbers of a pair.
fn cut_off<'a>(headers: impl Iterator<Item = &'a LogHeader>) -> Vec<(u64, u64)> {
    let mut pairs: Vec<(u64, u64)> = headers.map(|header| (header.after, header.commit)).collect();
    pairs.sort_unstable();
    let mut disjoint: Vec<(u64, u64)> = Vec::new();
    for (after, next) in pairs.into_iter().filter(|(after, next)| after + 1 < *next) {
        match disjoint.last_mut() {
            Some(last) if after < last.1 => last.1 = last.1.max(next),
            _ => disjoint.push((after, next)),
        }
    }
    disjoint
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log block of one entry, which is no more than bytes here.
    fn block(identity: Identity, header: LogHeader, entry: u8) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[32..64].fill(entry);
        header.seal(identity, &mut bytes);
        bytes
    }

    #[test]
    fn the_number_of_a_commit_that_was_cut_off_is_used_up() {
        let identity = Identity::new(&[3; 16]);
        let whole = block(identity, LogHeader { commit: 5, after: 4, index: 0, count: 1 }, 1);
        let mut cut_off = block(identity, LogHeader { commit: 6, after: 5, index: 0, count: 1 }, 2);
        cut_off[40] ^= 1;
        let end = End::find(identity, &[whole, cut_off].concat());
        assert_eq!((end.stable, end.newest, end.head), (5, 6, 1));
    }
}
