//! Batches of accesses on a real device, timed: what calibration measures with.

use std::io;
use std::time::{Duration, Instant};

use virtbench_fence::{Device, DeviceOp, IoError, Time};
use virtbench_fence_sim::calibrate::{Access, LARGEST};

use crate::device::{Backend, Io};
use crate::memory::{Buffer, Segment};
use crate::ring::{Event, Ring};

/// Entries of the ring: a batch fits.
const RING_ENTRIES: u32 = 256;
/// How long a batch may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A device under test, with memory for a batch.
pub(super) struct Bench {
    device: Device,
    backend: Box<dyn Backend>,
    ring: Ring,
    origin: Instant,
    buffers: Vec<Buffer>,
    /// The same memory, as devices take it.
    segments: Vec<Segment>,
    block_bytes: u32,
    /// Places of accesses are from here on.
    base_bytes: u64,
    /// Where the last access ended.
    head_bytes: u64,
}

impl Bench {
    pub(super) fn new(
        device: Device,
        backend: Box<dyn Backend>,
        base_bytes: u64,
        block_bytes: u32,
    ) -> io::Result<Self> {
        let block = block_bytes as usize;
        let buffers: Vec<Buffer> = (0..LARGEST).map(|_| Buffer::zeroed(block)).collect();
        let segments = buffers.iter().map(Buffer::segment).collect();
        let (ring, origin) = (Ring::new(RING_ENTRIES)?, Instant::now());
        Ok(Self { device, backend, ring, origin, buffers, segments, block_bytes, base_bytes, head_bytes: 0 })
    }

    /// Where the last access ended, from the base.
    pub(super) const fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// Fetches what the batch is going to write, so that it writes what is there already. The head ends up somewhere else.
    pub(super) fn prepare(&mut self, batch: &[Access]) -> io::Result<()> {
        self.round(batch, |access| access.write.then_some(DeviceOp::Read)).map(|_| ())
    }

    /// Carries a prepared batch out, all of it at once. Gives nanoseconds from handing it over to the last answer.
    pub(super) fn measure(&mut self, batch: &[Access]) -> io::Result<u64> {
        self.round(batch, |access| Some(if access.write { DeviceOp::Write } else { DeviceOp::Read }))
    }

    /// A flush, in nanoseconds.
    pub(super) fn flush(&mut self) -> io::Result<u64> {
        let begun = Instant::now();
        let io = Io { slot: 0, op: DeviceOp::Flush, offset_bytes: 0, len_bytes: 0, segments: &[] };
        self.backend.start(time(self.origin), &io, &mut self.ring);
        self.finish(1, begun)
    }

    fn round(&mut self, batch: &[Access], op: impl Fn(&Access) -> Option<DeviceOp>) -> io::Result<u64> {
        debug_assert!(batch.len() <= self.buffers.len());
        let mut left = 0;
        let begun = Instant::now();
        for ((slot, access), segment) in (0u32..).zip(batch).zip(&self.segments) {
            let Some(op) = op(access) else { continue };
            let offset_bytes = self.base_bytes + access.offset_bytes;
            let segments = std::slice::from_ref(segment);
            let io = Io { slot, op, offset_bytes, len_bytes: self.block_bytes, segments };
            self.backend.start(time(self.origin), &io, &mut self.ring);
            self.head_bytes = access.offset_bytes + u64::from(self.block_bytes);
            left += 1;
        }
        self.finish(left, begun)
    }

    fn finish(&mut self, mut left: usize, begun: Instant) -> io::Result<u64> {
        let mut events = Vec::new();
        let mut failed = None;
        loop {
            while let Some(finished) = self.backend.finished() {
                left -= 1;
                if let Err(error) = finished.result {
                    failed = Some(error);
                }
            }
            if left == 0 {
                break;
            }
            let Some(limit) = LIMIT.checked_sub(begun.elapsed()) else {
                // The device may still write to this memory: it must not be used for anything else.
                self.buffers.drain(..).for_each(std::mem::forget);
                self.segments.clear();
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "a batch was not answered within a minute",
                ));
            };
            let now = time(self.origin);
            let due = self.backend.next_deadline().map(|at| Duration::from_nanos(at.since(now)));
            self.ring.wait(Some(due.unwrap_or(limit).min(limit)))?;
            self.ring.reap(usize::MAX, &mut events);
            let now = time(self.origin);
            for event in events.drain(..) {
                if let Event::Device { slot, result, .. } = event {
                    self.backend.on_ring(now, slot, result, &mut self.ring);
                }
            }
            if self.backend.next_deadline().is_some_and(|at| at <= now) {
                self.backend.on_timer(now, &mut self.ring);
            }
        }
        let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match failed {
            None => Ok(ns),
            Some(IoError::Device(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(error) => Err(io::Error::other(format!("{:?}: {error:?}", self.device))),
        }
    }
}

fn time(origin: Instant) -> Time {
    Time::from_ns(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
