//! What goes into the core and what comes out of it.

use thiserror::Error;

/// A moment: nanoseconds since an origin that the driver chooses and keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// `ns` nanoseconds after the origin.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// The moment `ns` later; stays at the end of time (584 years) rather than wrap.
    #[must_use]
    pub const fn after(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to here, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A virtual disk: its place in [`Config::disks`](crate::Config::disks).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(pub u16);

impl DiskId {
    /// As an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The driver's name for a request. The core gives it back and reads nothing into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The driver's name for a request's memory: guest pages in the daemon, digests in the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u64);

/// The core's name for a device I/O: unique over the life of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoId(pub(crate) u64);

impl IoId {
    /// The slab index within: small and reused, so that a driver can keep an array by it.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the lower half
    pub const fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// What a guest asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Fill the buffer.
    Read,
    /// Store the buffer.
    Write,
    /// Make every write completed before this request stable. Offset and length are ignored.
    Flush,
    /// The range's contents are no longer needed. Advice: the contents may stay.
    Discard,
}

/// One request of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Given back in [`Effect::Complete`].
    pub id: RequestId,
    /// Which virtual disk.
    pub disk: DiskId,
    /// What to do.
    pub op: Op,
    /// Where on the virtual disk, a multiple of 512 bytes.
    pub offset_bytes: u64,
    /// How much, a multiple of 512 bytes.
    pub len_bytes: u32,
    /// The memory to read into or write from; untouched by [`Op::Flush`] and [`Op::Discard`].
    pub buffer: BufferId,
}

/// One of the two physical devices of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// The large one whose service time is dominated by seeks.
    Slow,
    /// The flash one.
    Fast,
}

impl Device {
    /// 0 for slow, 1 for fast.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What a device is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceOp {
    /// Read from the device.
    Read,
    /// Write to the device.
    Write,
    /// Make every write that completed before this was dispatched stable.
    Flush,
    /// Discard the range.
    Discard,
}

/// Where the data of a device I/O or a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    /// In a guest's buffer, `at_bytes` from its beginning.
    Guest {
        /// The buffer of the request.
        buffer: BufferId,
        /// Offset in the buffer.
        at_bytes: u32,
    },
    /// In one of the [`Fence::scratch_blocks`](crate::Fence::scratch_blocks) blocks of 4 KiB that the driver keeps for
    /// the core.
    Scratch {
        /// Which block.
        block: u32,
        /// Offset in the block.
        at_bytes: u32,
    },
    /// Bytes that the core made: [`Fence::bytes`](crate::Fence::bytes) until the I/O has completed.
    Core,
    /// In several of these places, for a read: [`Fence::pieces`](crate::Fence::pieces) until the I/O has completed.
    Pieces,
    /// Nowhere: a flush, a discard, or the part of a read that was not asked for.
    None,
}

/// One I/O for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceIo {
    /// Given back in [`Completion`].
    pub id: IoId,
    /// On whose behalf.
    pub disk: DiskId,
    /// Which device.
    pub device: Device,
    /// What to do.
    pub op: DeviceOp,
    /// Where on the device.
    pub offset_bytes: u64,
    /// How much.
    pub len_bytes: u32,
    /// The memory.
    pub data: Data,
    /// The driver must put the CRC-32C of the data into [`Completion::data_crc`]: of what the device gave or was given,
    /// whatever a guest has made of its memory meanwhile.
    pub wants_crc: bool,
}

/// A device has finished an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The I/O.
    pub io: IoId,
    /// How it went. A failed write may have stored any part.
    pub result: Result<(), IoError>,
    /// CRC-32C of the data where [`DeviceIo::wants_crc`] said so; any digest of 32 bits will do if it is always the same.
    pub data_crc: u32,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IoError {
    /// The device failed; the code is the driver's.
    #[error("the device failed with code {0}")]
    Device(i32),
    /// Beyond the end of the disk, unaligned to 512 bytes, of no length, or of no such disk.
    #[error("the range is not on the disk, or not in whole sectors of 512 bytes")]
    OutOfRange,
    /// Longer than [`Config::max_request_bytes`](crate::Config::max_request_bytes).
    #[error("longer than the longest request that was configured")]
    TooLong,
    /// The cache's copy is not what was written, and the only one.
    #[error("the cached block does not have the checksum it was written with")]
    Corrupt,
}

/// What the driver must do. Effects are carried out in the order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Start an I/O; report it to [`Fence::on_device`](crate::Fence::on_device) when it is done.
    Dispatch(DeviceIo),
    /// Copy `len_bytes` at once, before any later effect.
    Copy {
        /// From here.
        from: Data,
        /// To here.
        to: Data,
        /// How much.
        len_bytes: u32,
    },
    /// The request is done; its buffer is the guest's again.
    Complete {
        /// The request that is answered.
        request: RequestId,
        /// How it went.
        result: Result<(), IoError>,
    },
}

/// A completion of an I/O that is not outstanding: a driver reported it twice or invented it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no outstanding I/O {0:?}: report each dispatched I/O once")]
pub struct UnknownIo(pub IoId);

/// How often something was, and how long altogether.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The times, summed, in nanoseconds.
    pub sum_ns: u64,
}

impl Tally {
    /// Once more, unless it took no time at all.
    pub(crate) const fn add(&mut self, ns: u64) {
        if ns > 0 {
            self.count += 1;
            self.sum_ns = self.sum_ns.saturating_add(ns);
        }
    }
}

/// Batches on one device: what they were predicted to take, and what they took from their dispatch to the completion of
/// their last I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PredictionErrors {
    /// Batches that have completed.
    pub batches: u64,
    /// Their predictions, summed, in nanoseconds.
    pub predicted_ns: u64,
    /// Their times, summed, in nanoseconds.
    pub measured_ns: u64,
    /// The differences of the two without their signs, summed, in nanoseconds.
    pub absolute_ns: u64,
}

impl PredictionErrors {
    pub(crate) const fn add(&mut self, predicted_ns: u64, measured_ns: u64) {
        self.batches += 1;
        self.predicted_ns = self.predicted_ns.saturating_add(predicted_ns);
        self.measured_ns = self.measured_ns.saturating_add(measured_ns);
        self.absolute_ns = self.absolute_ns.saturating_add(measured_ns.abs_diff(predicted_ns));
    }

    /// How much longer batches took than predicted, in nanoseconds, on average; none without batches.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        self.mean(self.measured_ns as f64 - self.predicted_ns as f64)
    }

    /// How far predictions missed, in nanoseconds, on average; none without batches.
    #[must_use]
    pub fn mean_absolute_ns(&self) -> Option<f64> {
        self.mean(self.absolute_ns as f64)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.batches > 0).then(|| sum / self.batches as f64)
    }
}

/// A disk's slots ([VirtualFence 2013], section 6.3). Disks that share slots share the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotAccount {
    /// Slots that have begun, idle ones included.
    pub slots: u64,
    /// Those of them in which something was dispatched.
    pub used: u64,
    /// Slots that ended before their time.
    pub credit: Tally,
    /// Slots that ended after it.
    pub overrun: Tally,
    /// What slots to come are owed (positive) or owe, in nanoseconds.
    pub balance_ns: i64,
    /// By [`Device::index`].
    pub predictions: [PredictionErrors; 2],
}

impl SlotAccount {
    /// Of one device.
    #[must_use]
    pub const fn prediction(&self, device: Device) -> &PredictionErrors {
        &self.predictions[device.index()]
    }
}

/// A disk's token buckets: how much of its rate is saved up, in nanoseconds of it; negative where it has to wait. None
/// without a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenAccount {
    /// Of I/Os a second.
    pub ios_ns: Option<i64>,
    /// Of bytes a second.
    pub bytes_ns: Option<i64>,
}

/// A disk behind a virtual device of its own (see [`paced`](crate::paced)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacedAccount {
    /// Device I/Os that have completed.
    pub ios: u64,
    /// Those that were ready before they were due, and were held so long.
    pub held: Tally,
    /// Those that were ready after they were due.
    pub late: Tally,
}

/// What there is to be kept depends on the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// Of [`Slots`](crate::slots::Slots).
    Slots(SlotAccount),
    /// Of [`TokenBucket`](crate::peers::TokenBucket).
    Tokens(TokenAccount),
    /// Of [`Paced`](crate::paced::Paced).
    Paced(PacedAccount),
}
