//! What is known of the writes that go past the cache.
//!
//! Streams of consecutive writes of one disk, several at a time.
//!
//! What is remembered is where each stream began and where its next write belongs, as bcache does for the I/Os of late
//! (`sequential_cutoff`). A write that overtakes the one before it begins a stream of its own, which joins the other once the
//! gap between them is closed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::metadata::MOST_DISKS;
use super::table;
use crate::config::{CacheConfig, Config};
use crate::types::{DiskId, IoError};

/// What of a partition goes past it.
#[derive(Debug, Default)]
pub(super) struct Bypass {
    pub(super) disks: Vec<Past>,
    pub(super) is_used: bool,
    /// Blocks that stand for blocks in flight.
    pub(super) held: u32,
    /// Keys that entries awaiting their tombstones name, and how many; kept where some disk writes past the cache.
    pub(super) leaving: BTreeMap<u64, u32>,
}

/// The writes of one disk past the cache.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// How long a stream has to be; none of this disk's go past the cache without.
    pub(super) cutoff_bytes: Option<u64>,
    pub(super) streams: Streams,
    pub(super) bytes: u64,
    /// Writes that are over, and how many of them a sync has made stable.
    pub(super) written: u64,
    pub(super) stable: u64,
    /// From the first to the last block written since a sync began.
    pub(super) since: Option<Range<u64>>,
    pub(super) sync: Option<Sync>,
    /// Flushes, and how many writes they make stable.
    pub(super) waiters: VecDeque<(u32, u64)>,
    /// What is lost and no flush has told.
    pub(super) lost: Option<IoError>,
}

/// A sync of the slow device under way.
#[derive(Debug, Clone)]
pub(super) struct Sync {
    /// Writes that were over when it began, and their blocks.
    pub(super) covers: u64,
    pub(super) keys: Option<Range<u64>>,
    /// Of the write-backs then: another one means that a sync has failed meanwhile.
    pub(super) epoch: u32,
}

/// The smallest range that has both.
pub(super) fn hull(one: Option<Range<u64>>, other: Option<Range<u64>>) -> Option<Range<u64>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.start.min(other.start)..one.end.max(other.end)),
        (one, other) => one.or(other),
    }
}

impl Bypass {
    pub(super) fn new(config: &Config, cache: &CacheConfig) -> Self {
        let cutoffs = cache.bypass_bytes.iter().copied().chain(std::iter::repeat(None));
        let past = |cutoff_bytes| Past { cutoff_bytes, ..Past::default() };
        let disks: Vec<Past> = cutoffs.take(config.disks.len()).map(past).collect();
        let is_used = disks.iter().any(|disk| disk.cutoff_bytes.is_some());
        Self { disks, is_used, ..Self::default() }
    }

    /// Bytes of a disk written past the cache.
    pub(super) fn bytes(&self, disk: DiskId) -> u64 {
        self.disks.get(disk.index()).map_or(0, |past| past.bytes)
    }

    /// A block's entry awaits its tombstone.
    pub(super) fn leaves(&mut self, key: u64) {
        if self.is_used {
            *self.leaving.entry(key).or_default() += 1;
        }
    }

    /// The tombstone is stable.
    pub(super) fn has_left(&mut self, key: u64) {
        if let Some(count) = self.leaving.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.leaving.remove(&key);
            }
        }
    }

    /// Whether the slow device has been synced since the block was written past the cache; blocks between two such count too.
    pub(super) fn is_unsynced(&self, key: u64) -> bool {
        let Some(past) = self.disks.get(usize::from(table::disk_of(key))) else { return false };
        let syncing = past.sync.as_ref().and_then(|sync| sync.keys.as_ref());
        past.since.iter().chain(syncing).any(|keys| keys.contains(&key))
    }

    /// Whether a disk has lost something that no flush has told.
    pub(super) fn is_loss_untold(&self) -> bool {
        self.disks.iter().any(|past| past.lost.is_some())
    }

    /// A bit for each disk of which something is so: there are as many at most.
    pub(super) fn bits(&self, is_so: impl Fn(&Past) -> bool) -> u128 {
        let bit = |(disk, past)| u128::from(is_so(past)) << disk;
        self.disks.iter().take(MOST_DISKS).enumerate().map(bit).sum()
    }
}

impl Past {
    /// A sync of the slow device has failed. The flushes that have to say so.
    pub(super) fn lose(&mut self, error: IoError) -> VecDeque<(u32, u64)> {
        if self.written > self.stable {
            let told = self.waiters.back().map_or(0, |&(_, covers)| covers);
            if told < self.written {
                self.lost = Some(error);
            }
        }
        if let Some(sync) = &mut self.sync {
            self.since = hull(self.since.take(), sync.keys.take());
        }
        std::mem::take(&mut self.waiters)
    }
}

/// Streams that are followed at most: of more, those that have not grown for longest are forgotten.
const MOST: usize = 8;

/// Bytes from `from` to `to` were written, each write behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stream {
    from: u64,
    to: u64,
}

/// The streams of one disk, those that grew last at the end.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

impl Streams {
    /// A write of the bytes from `from` to `to`. How long its stream was before.
    pub(super) fn write(&mut self, from: u64, to: u64) -> u64 {
        let mut stream = self.take(|stream| stream.to == from).unwrap_or(Stream { from, to: from });
        let before = stream.to - stream.from;
        stream.to = self.take(|stream| stream.from == to).map_or(to, |next| next.to);
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(stream);
        before
    }

    fn take(&mut self, is_it: impl Fn(&Stream) -> bool) -> Option<Stream> {
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place))
    }

    /// What comes next begins anew.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    #[test]
    fn a_stream_is_as_long_as_its_writes_behind_each_other() {
        let mut streams = Streams::default();
        let lengths: Vec<u64> = (0..4).map(|n| streams.write(n * 64 * K, (n + 1) * 64 * K)).collect();
        assert_eq!(lengths, [0, 64 * K, 128 * K, 192 * K]);
        assert_eq!(streams.write(1024 * K, 1028 * K), 0, "elsewhere");
        assert_eq!(streams.write(256 * K, 260 * K), 256 * K, "the first goes on");
        assert_eq!(streams.write(256 * K, 260 * K), 0, "the same place once more");
    }

    #[test]
    fn streams_that_take_turns_are_told_apart_and_those_left_alone_are_forgotten() {
        let mut streams = Streams::default();
        let begins = |stream: u64| stream << 30;
        for step in 0..10 {
            for stream in 0..MOST as u64 {
                let from = begins(stream) + step * 4 * K;
                assert_eq!(streams.write(from, from + 4 * K), step * 4 * K, "stream {stream}");
            }
        }
        // One more is too many: the first has not grown for longest.
        assert_eq!(streams.write(begins(99), begins(99) + 4 * K), 0);
        let next = |stream: u64| (begins(stream) + 40 * K, begins(stream) + 44 * K);
        assert_eq!(streams.write(next(1).0, next(1).1), 40 * K);
        assert_eq!(streams.write(next(0).0, next(0).1), 0);
        assert_eq!(streams.0.len(), MOST);
    }

    #[test]
    fn writes_that_overtake_each_other_are_one_stream() {
        let mut streams = Streams::default();
        streams.write(0, 8 * K);
        assert_eq!(streams.write(16 * K, 24 * K), 0, "it has overtaken one");
        assert_eq!(streams.write(8 * K, 16 * K), 8 * K, "which closes the gap");
        assert_eq!(streams.write(24 * K, 32 * K), 24 * K);
    }

    #[test]
    fn a_flush_ends_streams() {
        let mut streams = Streams::default();
        streams.write(0, 8 * K);
        streams.end();
        assert_eq!(streams.write(8 * K, 16 * K), 0);
    }
}
