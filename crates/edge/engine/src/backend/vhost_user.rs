//! Operations on a vhost-user-blk server: a queue of the device for each worker.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use blkio::{Blkioq, ReqFlags};
use virtbench_workload::{Direction, Op};

use super::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::vhost_user::{Device, VhostUserSource, ring_note};

/// Completions taken at once.
const BATCH: usize = 64;
/// The longest wait before the worker looks at its stop flag, in nanoseconds.
const HEARTBEAT_NS: u64 = 50_000_000;
/// The longest that a server is looked at without sleeping, in nanoseconds, as long as it answers within that time:
/// about what a solid-state drive takes for a deep queue.
const SPIN_NS: u64 = 500_000;
/// Pauses of the processor's between two looks: together about a third of a microsecond.
const PAUSES: u32 = 32;

/// One worker's queue.
pub(crate) struct VhostUser {
    // Declared before the device, as it must go first.
    queue: Blkioq,
    _device: Arc<Device>,
    /// Bytes that each slot's operation moves.
    moved: Vec<u32>,
    under_way: usize,
    /// Whether the last wait was shorter than that.
    is_quick: bool,
    done: Box<[MaybeUninit<blkio::Completion>; BATCH]>,
}

impl VhostUser {
    /// A queue for `slots` operations of one of so many workers, whose buffers the server gets to see.
    pub(crate) fn new(
        source: &VhostUserSource,
        workers: u32,
        slots: u32,
        buffers: &mut Buffers,
    ) -> Result<(Self, Option<String>), io::Error> {
        let device = source.device(workers, slots).map_err(io::Error::other)?;
        let shared = buffers.share()?;
        source.share(&device, &shared).map_err(io::Error::other)?;
        let mut queue =
            device.take_queue().ok_or_else(|| io::Error::other("there are fewer queues than workers"))?;
        // Waiting asks for the signal itself; who finds completions by looking need not be woken for them.
        queue.set_completion_fd_enabled(false);
        let backend = Self {
            queue,
            is_quick: true,
            _device: device,
            moved: vec![0; slots as usize],
            under_way: 0,
            done: Box::new([const { MaybeUninit::uninit() }; BATCH]),
        };
        Ok((backend, ring_note(slots)))
    }
}

impl VhostUser {
    /// Looks for completions without sleeping, for as long as the last ones let expect them.
    #[inline]
    fn look(&mut self, wait_ns: u64) -> io::Result<usize> {
        let mut count = self.do_io(0, None)?;
        if count == 0 && self.is_quick {
            let until_ns = monotonic_ns() + wait_ns.min(SPIN_NS);
            while count == 0 && monotonic_ns() < until_ns {
                // A reader without pause takes the cache line away from the writer.
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
                count = self.do_io(0, None)?;
            }
        }
        Ok(count)
    }

    /// Sleeps until there are some.
    fn wait(&mut self, wait_ns: u64) -> io::Result<usize> {
        let begun_ns = monotonic_ns();
        let count = self.do_io(1, Some(Duration::from_nanos(wait_ns)))?;
        self.is_quick = monotonic_ns() - begun_ns < SPIN_NS;
        Ok(count)
    }

    /// Completions that there are after `least` have come or the time is up.
    #[inline]
    fn do_io(&mut self, least: usize, mut limit: Option<Duration>) -> io::Result<usize> {
        match self.queue.do_io(&mut self.done[..], least, limit.as_mut(), None) {
            Ok(count) => Ok(count),
            Err(error)
                if [libc::ETIME, libc::EINTR, libc::EAGAIN].contains(&error.errno().raw_os_error()) =>
            {
                Ok(0)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Backend for VhostUser {
    #[inline]
    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        self.moved[slot as usize] = if op.direction.moves_data() { op.len } else { 0 };
        self.under_way += 1;
        let (len, tag, flags) = (op.len as usize, slot as usize, ReqFlags::empty());
        match op.direction {
            Direction::Read => self.queue.read(op.offset, buffer, len, tag, flags),
            Direction::Write => self.queue.write(op.offset, buffer, len, tag, flags),
            Direction::Trim => self.queue.discard(op.offset, op.len.into(), tag, flags),
            Direction::Flush => self.queue.flush(tag, flags),
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.under_way == 0 {
            return Ok(());
        }
        let wait_ns = until_ns
            .map_or(HEARTBEAT_NS, |until_ns| until_ns.saturating_sub(monotonic_ns()).min(HEARTBEAT_NS));
        let count = match self.look(wait_ns)? {
            0 => self.wait(wait_ns)?,
            count => count,
        };
        self.under_way -= count;
        for done in &self.done[..count] {
            // SAFETY: `do_io` has written the first `count` elements.
            let done = unsafe { done.assume_init_ref() };
            let slot = done.user_data as u32;
            let result = if done.ret == 0 { self.moved[done.user_data] as i32 } else { done.ret };
            completions.push(Completion { slot, result });
        }
        Ok(())
    }
}
