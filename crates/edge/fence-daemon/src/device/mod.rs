//! The seam to physical devices: a [`Backend`] carries out the fence's device I/Os.

mod blocks;
mod emulated;
mod faulty;
mod file;
mod open;

pub use blocks::{read_at, write_at};
pub use emulated::EmulatedBackend;
pub use faulty::FaultyBackend;
pub use file::{FileBackend, NullBackend};
pub use open::{DeviceError, Opened, open, open_read_only};

use virtbench_fence::{DeviceOp, DiskId, IoError, Time};

use crate::memory::Segment;
use crate::ring::Ring;

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Offsets and lengths are multiples of this, in bytes; a power of two, 512 at least.
    pub block_bytes: u32,
    /// Memory begins at multiples of this, in bytes; a power of two.
    pub memory_alignment: u32,
}

/// An I/O to be carried out.
#[derive(Debug, Clone, Copy)]
pub struct Io<'a> {
    /// Its name until it is finished; small, and used again afterwards.
    pub slot: u32,
    /// For which virtual disk.
    pub disk: DiskId,
    /// What to do.
    pub op: DeviceOp,
    /// Where on the device, in whole blocks.
    pub offset_bytes: u64,
    /// How much, in whole blocks.
    pub len_bytes: u32,
    /// The memory, `len_bytes` long together, aligned, at most 1024 pieces; none for a flush or discard. Memory and list stay where they are
    /// until the I/O is finished.
    pub segments: &'a [Segment],
}

/// An I/O that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Its name.
    pub slot: u32,
    /// How it went.
    pub result: Result<(), IoError>,
}

/// A physical device. It runs in the scheduler's thread: nothing here may block.
///
/// A [`DeviceOp::Flush`] makes stable every write that had finished when it was started. An I/O that moves less than it
/// should is an error of the device, never a success.
pub trait Backend {
    /// What the device is.
    fn facts(&self) -> Facts;

    /// Starts an I/O, by pushing entries to the ring or otherwise. What is over at once is told by
    /// [`finished`](Self::finished) like the rest.
    fn start(&mut self, now: Time, io: &Io<'_>, ring: &mut Ring);

    /// The ring's answer to an entry that was pushed for `slot`.
    fn on_ring(&mut self, now: Time, slot: u32, result: i32, ring: &mut Ring);

    /// The next I/O that is over.
    fn finished(&mut self) -> Option<Finished>;

    /// Reads change nothing in memory. What is not the client's own is then zeroed beforehand, so that no client sees what
    /// belongs to others.
    fn leaves_memory(&self) -> bool {
        false
    }

    /// When [`on_timer`](Self::on_timer) wants to be called.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// A deadline may have passed.
    fn on_timer(&mut self, _now: Time, _ring: &mut Ring) {}
}
