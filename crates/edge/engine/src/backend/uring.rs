//! Operations through io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use virtbench_workload::{Direction, Op};

use super::{Backend, Completion};
use crate::clock::monotonic_ns;

/// How often a waiting worker is woken to look at its stop flag.
const HEARTBEAT: Timespec = Timespec::new().nsec(50_000_000);
/// Operations handed to the kernel at once. One system call for each costs a third more CPU; waiting
/// to hand over all that are free keeps the device idle meanwhile (14 % fewer IOPS at depth 32).
const SUBMIT_BATCH: usize = 4;
/// Marks the heartbeat among the completions.
const HEARTBEAT_TOKEN: u64 = u64::MAX;

/// One ring, used by the thread that made it.
///
/// A timer in the ring itself wakes the worker now and then. A time limit on each wait would do
/// the same, but arms a timer for every operation, which in a virtual machine costs more than the
/// operation's own system call.
pub(crate) struct Uring {
    ring: IoUring,
    file: Arc<File>,
    file_registered: bool,
    buffers_registered: bool,
    heartbeat_armed: bool,
}

impl Uring {
    /// A ring for `slots` operations on `file`, with `buffers` registered where the limit on locked
    /// memory permits. Returns a note where it does not.
    pub(crate) fn new(
        file: Arc<File>,
        slots: u32,
        buffers: &[libc::iovec],
    ) -> io::Result<(Self, Option<String>)> {
        let ring = build_ring(slots + 1)?;
        let file_registered = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        // SAFETY: the caller keeps the buffers mapped for as long as the backend lives, and an
        // mmap region that goes away later stays pinned by the kernel until the ring is closed.
        let registered = unsafe { ring.submitter().register_buffers(buffers) };
        let note = registered.as_ref().err().map(|error| {
            format!("buffers could not be registered with io_uring ({error}): each operation pins its own; raise `ulimit -l`")
        });
        let backend = Self {
            ring,
            file,
            file_registered,
            buffers_registered: registered.is_ok(),
            heartbeat_armed: false,
        };
        Ok((backend, note))
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffers behind an entry stay valid until its completion (`Backend::queue`),
        // and HEARTBEAT is a constant in static memory.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The ring has room for every slot, so it is full only of entries not yet submitted.
            let _ = self.ring.submit();
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn entry(&self, slot: u32, op: Op, buffer: *mut u8) -> squeue::Entry {
        let fd = Fd(self.file.as_raw_fd());
        macro_rules! build {
            ($plain:ident, $fixed:ident, $pointer:expr) => {
                match (self.file_registered, self.buffers_registered) {
                    (true, true) => {
                        opcode::$fixed::new(Fixed(0), $pointer, op.len, slot as u16).offset(op.offset).build()
                    }
                    (false, true) => {
                        opcode::$fixed::new(fd, $pointer, op.len, slot as u16).offset(op.offset).build()
                    }
                    (true, false) => {
                        opcode::$plain::new(Fixed(0), $pointer, op.len).offset(op.offset).build()
                    }
                    (false, false) => opcode::$plain::new(fd, $pointer, op.len).offset(op.offset).build(),
                }
            };
        }
        let entry = match op.direction {
            Direction::Read => build!(Read, ReadFixed, buffer),
            Direction::Write => build!(Write, WriteFixed, buffer.cast_const()),
        };
        entry.user_data(u64::from(slot))
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        for entry in self.ring.completion() {
            match u32::try_from(entry.user_data()) {
                Ok(slot) => completions.push(Completion { slot, result: entry.result() }),
                Err(_) => self.heartbeat_armed = false,
            }
        }
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let waited = match until_ns {
            None => {
                if !self.heartbeat_armed {
                    static PERIOD: Timespec = HEARTBEAT;
                    self.push(&opcode::Timeout::new(&raw const PERIOD).build().user_data(HEARTBEAT_TOKEN));
                    self.heartbeat_armed = true;
                }
                self.ring.submit_and_wait(1)
            }
            Some(until_ns) => {
                let left = until_ns.saturating_sub(monotonic_ns());
                let limit = Timespec::from(std::time::Duration::from_nanos(left));
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        };
        match waited {
            Ok(_) => Ok(()),
            // The time limit ran out, a signal came, or completions must be reaped first.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Backend for Uring {
    #[inline]
    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        let entry = self.entry(slot, op, buffer);
        self.push(&entry);
        if self.ring.submission().len() >= SUBMIT_BATCH {
            // What the kernel does not take now stays queued for the next wait, which reports errors.
            let _ = self.ring.submit();
        }
    }

    #[inline]
    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        self.wait(until_ns)?;
        self.reap(completions);
        Ok(())
    }
}

/// The cheapest kind of ring the kernel offers: completions are handled when the worker asks for
/// them (Linux 6.1), else without interrupting it (5.19), else plainly.
fn build_ring(entries: u32) -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().build(entries))
        .or_else(|_| IoUring::new(entries))
}
