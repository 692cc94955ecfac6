//! What each of the peers is told about the disks.

use crate::scheduler::Parameters;

/// Priorities go from 0, the highest, to one below this.
pub(super) const PRIORITIES: u8 = 8;
/// The priority at which slices are as long as [`SLICE_NS`](super::cfq::SLICE_NS).
pub(super) const MIDDLE: u8 = 4;

/// How much of a capped rate may be saved up, nanoseconds of it.
const BURST_NS: u64 = 100_000_000;
/// What fair queueing lets a disk do before another's turn, in sectors: what CFQ's slice of 100 ms lets through.
const FAIR_SECTORS: u64 = 2048;
/// How long it waits for a disk's next request (`slice_idle`), nanoseconds.
const FAIR_IDLE_NS: u64 = 8_000_000;

/// The cap of one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// I/Os a second; none for no cap.
    pub iops: Option<u64>,
    /// Bytes a second; none for no cap.
    pub bytes_per_s: Option<u64>,
    /// How much of the rate may be saved up and used at once, in nanoseconds of it.
    pub burst_ns: u64,
}

impl Cap {
    /// The cap of each disk.
    #[must_use]
    pub fn each(parameters: &Parameters) -> Vec<Self> {
        let caps = parameters.disks.iter();
        caps.map(|disk| Self { iops: disk.iops, bytes_per_s: disk.bytes_per_s, burst_ns: BURST_NS }).collect()
    }

    pub(super) fn cost_ns(rate: Option<u64>, amount: u64) -> u64 {
        let cost = |rate: u64| u128::from(amount) * 1_000_000_000 / u128::from(rate.max(1));
        rate.map_or(0, |rate| u64::try_from(cost(rate)).unwrap_or(u64::MAX))
    }
}

/// The shares of one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// I/Os a second it gets whatever the others do.
    pub reservation_iops: u64,
    /// I/Os a second it never exceeds.
    pub limit_iops: u64,
    /// Its part of what is left.
    pub weight: u64,
}

impl Shares {
    /// The shares of each disk: nothing reserved and no limit where none is given.
    #[must_use]
    pub fn each(parameters: &Parameters) -> Vec<Self> {
        let shares = parameters.disks.iter().map(|disk| Self {
            reservation_iops: disk.reservation_iops.unwrap_or(0),
            limit_iops: disk.limit_iops.unwrap_or(u64::MAX),
            weight: disk.weight.unwrap_or(1),
        });
        shares.collect()
    }

    /// Reservation and limit at the same rate.
    #[must_use]
    pub const fn exactly(iops: u64) -> Self {
        Self { reservation_iops: iops, limit_iops: iops, weight: 1 }
    }
}

/// How disks share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FairConfig {
    /// A disk's part of the sectors, for each disk.
    pub weights: Vec<u64>,
    /// Sectors of 512 bytes a disk may use before another's turn.
    pub budget_sectors: u64,
    /// How long the slow device is kept for a disk that has nothing more to ask just now, because it may soon ask for
    /// what comes next on the device.
    pub idle_ns: u64,
}

impl FairConfig {
    /// Weights of 1 where none is given.
    #[must_use]
    pub fn new(parameters: &Parameters) -> Self {
        Self {
            weights: parameters.disks.iter().map(|disk| disk.weight.unwrap_or(1)).collect(),
            budget_sectors: FAIR_SECTORS,
            idle_ns: FAIR_IDLE_NS,
        }
    }
}

/// Whose I/Os are whose, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CfqConfig {
    /// The process that issues each disk's I/O, by disk: its QEMU, or one driver for all.
    pub processes: Vec<u16>,
    /// Priority of each process, 0 to 7; one that is not named has 4.
    pub priorities: Vec<u8>,
    /// Whether writes are asynchronous: they come from the host's page cache, which writes all of them back in one queue.
    pub buffered_writes: bool,
    /// Whether each device seeks. One that does not, and takes several commands at a time, is never kept idle.
    pub seeks: [bool; 2],
}

impl CfqConfig {
    /// A process for each disk, direct I/O, a hard disk and a solid-state drive.
    #[must_use]
    pub fn per_disk(disks: u16) -> Self {
        Self {
            processes: (0..disks).collect(),
            priorities: Vec::new(),
            buffered_writes: false,
            seeks: [true, false],
        }
    }

    pub(super) fn priority(&self, process: usize) -> u8 {
        self.priorities.get(process).map_or(MIDDLE, |priority| (*priority).min(PRIORITIES - 1))
    }
}
