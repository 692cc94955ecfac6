//! Who issues I/O: closed-loop threads of a personality, or a recorded trace.
//!
//! What the three Filebench personalities do ([VirtualFence 2013], section 4.3), as their scripts in Filebench
//! 1.4 and 1.5 have it: mean file sizes, accesses of one round and their order.
//!
//! What reaches the disk is stated rather than simulated:
//! - Opening, closing, deleting and stat cost nothing: their metadata is in the guest's page cache.
//! - Reads miss the page cache, but for the share that an option gives: the file sets are meant to be
//!   far larger than a guest's 512 MB, or there would be no reads to measure.
//! - Writes are waited for. Mail's are synchronous in Filebench itself; the file server's go through a
//!   page cache that a saturated disk has filled, where a writer waits for the disk's rate.
//! - A new file takes the place of one that was deleted.
//! - The web server's log is appended in memory: the paper calls the workload read-only.

use std::sync::Arc;

use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::Random;
use virtbench_workload::{Direction, LoadSpec, NextOp, Pace, Rate, Stream, TraceAction, TraceOp};

/// What a virtual machine does with its disk.
#[derive(Debug, Clone)]
pub enum Client {
    /// Nothing: it is not running.
    Off,
    /// Threads that issue an access, wait for it, think, and go on.
    Closed(ClosedLoop),
    /// A recorded trace. An operation waits for its time and for room under `outstanding`; its
    /// response time counts from its time.
    Trace {
        /// The operations by time.
        ops: Arc<[TraceOp]>,
        /// How fast they are replayed.
        pace: Pace,
        /// Operations in flight at most.
        outstanding: u32,
    },
}

/// Threads that issue a personality's accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// What they do.
    pub personality: Personality,
    /// Files on the virtual disk.
    pub files: u32,
    /// How many threads. Each waits for its access before it thinks.
    pub threads: u32,
    /// Mean of the exponential think time between accesses, in nanoseconds.
    pub think_ns: f64,
    /// Share of reads that the guest's page cache answers at once. They are accesses of no time, and
    /// neither counted nor issued: the paper's figures are those of file accesses that reach storage.
    pub page_cache_hits: f64,
}

const BLOCK: u64 = 4096;

/// Shape of Filebench's file sizes (`cvar-gamma`, gamma 1.5).
const SIZE_SHAPE: f64 = 1.5;

/// Files spread evenly over a virtual disk, as a file system spreads directories over its groups.
#[derive(Debug, Clone)]
pub struct FileSet {
    /// Bytes from the start of one file to that of the next.
    stride: u64,
    /// Lengths in bytes, whole blocks.
    lens: Vec<u32>,
}

impl FileSet {
    /// `files` files of a personality over `disk_bytes`. At least one; none longer than its stride.
    #[must_use]
    pub fn new(personality: Personality, files: u32, disk_bytes: u64, seed: u64) -> Self {
        let files = files.max(1);
        let stride = (disk_bytes / u64::from(files) / BLOCK * BLOCK).max(BLOCK);
        let mean = personality.mean_file_bytes() as f64;
        let mut random = Random::new(seed);
        let sizes = Gamma::new(SIZE_SHAPE, mean / SIZE_SHAPE).ok();
        let lens = (0..files)
            .map(|_| {
                let bytes = sizes.as_ref().map_or(mean, |sizes| sizes.sample(&mut random));
                whole_blocks(bytes).min(stride).try_into().unwrap_or(u32::MAX / 4096 * 4096)
            })
            .collect();
        Self { stride, lens }
    }

    /// Draws a file.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // below the number of files
    pub fn draw(&self, random: &mut Random) -> u32 {
        random.below(self.lens.len() as u64) as u32
    }

    /// First byte and length of an access to a file, both in whole blocks.
    #[inline]
    #[must_use]
    pub fn range(&self, file: u32, kind: AccessKind, random: &mut Random) -> (u64, u64) {
        let begin = u64::from(file) * self.stride;
        let len = u64::from(self.lens[file as usize]);
        match kind {
            AccessKind::ReadWhole | AccessKind::WriteWhole => (begin, len),
            // The last bytes written lie anywhere in the last block; what is appended begins there, or
            // in the file's last blocks where there is no room behind it.
            AccessKind::Append(most) => {
                let bytes = whole_blocks(1.0 + random.unit() * f64::from(most)).min(self.stride);
                let at = (len - BLOCK).min(self.stride - bytes);
                (begin + at, bytes)
            }
        }
    }

    /// All blocks of the files, in units of 4 KiB.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.lens.iter().map(|len| u64::from(*len) / BLOCK).sum()
    }

    /// Every file's first byte and length.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0u64..).zip(&self.lens).map(|(file, len)| (file * self.stride, u64::from(*len)))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn whole_blocks(bytes: f64) -> u64 {
    (bytes as u64).div_ceil(BLOCK).max(1) * BLOCK
}

/// The operations of a load with a rate, for so many nanoseconds: those that a worker of the engine draws from the same
/// seed, at the same moments. Nothing where it has no rate, several workers, or pauses within.
#[must_use]
pub fn open_loop(load: &LoadSpec, length_ns: u64) -> Option<Vec<TraceOp>> {
    let (Some(mut times), 1) = (load.arrivals(0), load.workers) else { return None };
    let mut stream = Stream::new(&load.access, load.region_bytes, load.seed, 0, 1);
    let mut ops = Vec::new();
    loop {
        let time_ns = times.next_ns();
        if time_ns >= length_ns {
            return Some(ops);
        }
        let NextOp::Issue(op) = stream.next_step() else { return None };
        let action = match op.direction {
            Direction::Read => TraceAction::Read,
            Direction::Write => TraceAction::Write,
            Direction::Trim | Direction::Flush => return None,
        };
        ops.push(TraceOp { time_ns, offset: op.offset, len: op.len, action, line: 0 });
    }
}

/// A client that applies such a load after `warm_up_ns` of the same accesses at `warm_up_rate` a second, drawn from another
/// seed.
#[must_use]
pub fn open_client(load: &LoadSpec, warm_up_ns: u64, warm_up_rate: f64) -> Option<Client> {
    let rate = Some(Rate { per_second: warm_up_rate, ..load.rate? });
    let mut ops =
        open_loop(&LoadSpec { seed: !load.seed, arrival_seed: None, rate, ..load.clone() }, warm_up_ns)?;
    let length_ns = load.ramp_ns.saturating_add(load.time_ns);
    ops.extend(
        open_loop(load, length_ns)?
            .into_iter()
            .map(|op| TraceOp { time_ns: op.time_ns.saturating_add(warm_up_ns), ..op }),
    );
    Some(Client::Trace { ops: ops.into(), pace: Pace::Speed(1.0), outstanding: load.outstanding })
}

/// One of the paper's workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Personality {
    /// Whole files written and read, and appends: 128 KiB files.
    Fileserver,
    /// A read for each synchronous append: 16 KiB files (Filebench's varmail).
    Mailserver,
    /// Whole files read: 16 KiB files.
    Webserver,
}

/// A workload that does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no workload: write fileserver, mailserver or webserver")]
pub struct PersonalityError(String);

impl std::str::FromStr for Personality {
    type Err = PersonalityError;

    fn from_str(text: &str) -> Result<Self, PersonalityError> {
        Self::ALL
            .into_iter()
            .find(|personality| personality.name() == text)
            .ok_or_else(|| PersonalityError(text.to_owned()))
    }
}

/// What an access moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// A whole file is read.
    ReadWhole,
    /// A whole file is written.
    WriteWhole,
    /// Up to this many bytes are written at a file's end, uniformly (`appendfilerand`).
    Append(u32),
}

/// One access of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// What it moves.
    pub kind: AccessKind,
    /// Whether it is of the file of the access before it.
    pub same_file: bool,
}

const fn access(kind: AccessKind, same_file: bool) -> Access {
    Access { kind, same_file }
}

const APPEND: AccessKind = AccessKind::Append(16 << 10);

impl Personality {
    /// All of them, as the paper's figures order them.
    pub const ALL: [Self; 3] = [Self::Fileserver, Self::Mailserver, Self::Webserver];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fileserver => "fileserver",
            Self::Mailserver => "mailserver",
            Self::Webserver => "webserver",
        }
    }

    /// Mean file size in bytes; sizes follow a gamma distribution of shape 1.5.
    #[must_use]
    pub const fn mean_file_bytes(self) -> u64 {
        match self {
            Self::Fileserver => 128 << 10,
            Self::Mailserver | Self::Webserver => 16 << 10,
        }
    }

    /// The accesses of one round, which each thread repeats.
    #[must_use]
    pub const fn round(self) -> &'static [Access] {
        match self {
            Self::Fileserver => {
                const {
                    &[
                        access(AccessKind::WriteWhole, false),
                        access(APPEND, false),
                        access(AccessKind::ReadWhole, false),
                    ]
                }
            }
            Self::Mailserver => {
                const {
                    &[
                        access(APPEND, false),
                        access(AccessKind::ReadWhole, false),
                        access(APPEND, true),
                        access(AccessKind::ReadWhole, false),
                    ]
                }
            }
            Self::Webserver => const { &[access(AccessKind::ReadWhole, false)] },
        }
    }
}

#[cfg(test)]
mod tests {
    use virtbench_workload::{AccessLine, AccessSpec, Arrivals};

    use super::*;

    #[test]
    fn accesses_are_as_long_as_filebench_s() {
        let mut random = Random::new(1);
        for (personality, want) in
            [(Personality::Fileserver, 90.0), (Personality::Mailserver, 14.0), (Personality::Webserver, 18.0)]
        {
            let files = FileSet::new(personality, 20_000, 40 << 30, 2);
            let (mut bytes, mut accesses) = (0, 0u32);
            for access in personality.round().iter().cycle().take(30_000) {
                let file = files.draw(&mut random);
                let (offset, len) = files.range(file, access.kind, &mut random);
                assert!(offset % BLOCK == 0 && len % BLOCK == 0 && len > 0 && offset + len <= 40 << 30);
                bytes += len;
                accesses += 1;
            }
            let mean = bytes as f64 / f64::from(accesses) / 1024.0;
            assert!((mean / want - 1.0).abs() < 0.05, "{personality:?}: {mean} KiB for {want}");
        }
    }

    #[test]
    fn files_do_not_overlap_however_little_room_there_is() {
        let files = FileSet::new(Personality::Fileserver, 1000, 1000 * 8192, 3);
        let mut end = 0;
        for (offset, len) in files.iter() {
            assert!(offset >= end);
            end = offset + len;
        }
        assert!(end <= 1000 * 8192);
    }

    #[test]
    fn a_load_arrives_at_its_rate_and_one_without_has_no_operations() {
        let closed = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 1 << 30);
        assert!(open_loop(&closed, 1_000_000_000).is_none());
        let rate = Some(Rate { per_second: 1000.0, arrivals: Arrivals::Poisson });
        let open = LoadSpec { rate, ..closed };
        let ops = open_loop(&open, 20_000_000_000).unwrap();
        assert!(ops.len().abs_diff(20_000) < 700, "{}", ops.len());
        assert!(ops.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
        let reads = ops.iter().filter(|op| op.action == TraceAction::Read).count();
        assert!(reads.abs_diff(14_000) < 900, "{reads}");
        assert_ne!(ops, open_loop(&LoadSpec { seed: 2, ..open }, 20_000_000_000).unwrap());
    }
}
