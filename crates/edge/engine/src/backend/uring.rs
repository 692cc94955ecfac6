//! Operations through io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use virtbench_record::TargetFacts;
use virtbench_workload::{Direction, FlushKind, LoadSpec, Op, UringOptions, WriteSync};

use super::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::error::EngineError;

/// How often a waiting worker is woken to look at its stop flag.
const HEARTBEAT: Timespec = Timespec::new().nsec(50_000_000);

/// Operations handed to the kernel at once. One system call for each costs a third more CPU; waiting
/// to hand over all that are free keeps the device idle meanwhile (14 % fewer IOPS at depth 32).
const SUBMIT_BATCH: usize = 4;

/// How long the read that finds out about polling may take.
const PROBE_LIMIT_NS: u64 = 5_000_000_000;

/// Asks io_uring_enter for completions (linux/io_uring.h).
const ENTER_GETEVENTS: u32 = 1;

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
    submission_polling: bool,
    completion_polling: bool,
    flush_flags: FsyncFlags,
    write_flags: i32,
}

impl Uring {
    /// A ring for `slots` operations on `file`, with `buffers` registered where the limit on locked
    /// memory permits. Returns a note where it does not.
    ///
    /// # Errors
    /// The kernel has no io_uring for us, or it or the device refuses an option.
    pub(crate) fn new(
        file: &Arc<File>,
        facts: &TargetFacts,
        slots: u32,
        buffers: &mut Buffers,
        spec: &LoadSpec,
    ) -> Result<(Self, Option<String>), EngineError> {
        let options = spec.uring;
        let buffers = vectors(buffers, slots);
        let ring = build_ring(slots + 1, options)?;
        let file_registered = ring.submitter().register_files(&[file.as_raw_fd()]).is_ok();
        // SAFETY: the caller keeps the buffers mapped for as long as the backend lives, and an
        // mmap region that goes away later stays pinned by the kernel until the ring is closed.
        let registered = unsafe { ring.submitter().register_buffers(&buffers) };
        let note = registered.as_ref().err().map(|error| {
            format!("buffers could not be registered with io_uring ({error}): each operation pins its own; raise `ulimit -l`")
        });
        let mut backend = Self {
            ring,
            file: Arc::clone(file),
            file_registered,
            buffers_registered: registered.is_ok(),
            heartbeat_armed: false,
            submission_polling: options.submission_polling,
            completion_polling: options.completion_polling,
            flush_flags: match spec.flush {
                FlushKind::Data => FsyncFlags::DATASYNC,
                FlushKind::All => FsyncFlags::empty(),
            },
            write_flags: match spec.write_sync {
                WriteSync::None => 0,
                WriteSync::Data => libc::RWF_DSYNC,
                WriteSync::All => libc::RWF_SYNC,
            },
        };
        if let Some(buffer) = buffers.first().filter(|_| options.completion_polling) {
            backend.probe_polling(buffer.iov_base.cast(), facts.alignment_bytes)?;
        }
        Ok((backend, note))
    }

    /// Reads once, because whether a device can be polled shows only then.
    fn probe_polling(&mut self, buffer: *mut u8, unit_bytes: u32) -> Result<(), EngineError> {
        let op = Op { direction: Direction::Read, offset: 0, len: unit_bytes, line: 0 };
        self.queue(0, op, buffer);
        let mut completions = Vec::new();
        let limit_ns = monotonic_ns() + PROBE_LIMIT_NS;
        while completions.is_empty() && monotonic_ns() < limit_ns {
            self.drive(Some(limit_ns), &mut completions).map_err(polling_refused)?;
        }
        match completions.first().map_or(-libc::ETIMEDOUT, |completion| completion.result) {
            result if result < 0 => Err(polling_refused(io::Error::from_raw_os_error(-result))),
            _ => Ok(()),
        }
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffers behind an entry stay valid until its completion (`Backend::queue`),
        // and HEARTBEAT is a constant in static memory.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The ring has room for every slot, so it is full only of entries not yet submitted.
            let _ = self.ring.submit();
            if self.submission_polling {
                let _ = self.ring.submitter().squeue_wait();
            }
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn entry(&self, slot: u32, op: Op, buffer: *mut u8) -> squeue::Entry {
        let fd = Fd(self.file.as_raw_fd());
        macro_rules! build {
            ($plain:ident, $fixed:ident, $pointer:expr, $flags:expr) => {
                match (self.file_registered, self.buffers_registered) {
                    (true, true) => opcode::$fixed::new(Fixed(0), $pointer, op.len, slot as u16)
                        .offset(op.offset)
                        .rw_flags($flags)
                        .build(),
                    (false, true) => opcode::$fixed::new(fd, $pointer, op.len, slot as u16)
                        .offset(op.offset)
                        .rw_flags($flags)
                        .build(),
                    (true, false) => opcode::$plain::new(Fixed(0), $pointer, op.len)
                        .offset(op.offset)
                        .rw_flags($flags)
                        .build(),
                    (false, false) => {
                        opcode::$plain::new(fd, $pointer, op.len).offset(op.offset).rw_flags($flags).build()
                    }
                }
            };
        }
        let entry = match op.direction {
            Direction::Read => build!(Read, ReadFixed, buffer, 0),
            Direction::Write => build!(Write, WriteFixed, buffer.cast_const(), self.write_flags),
            // Rare enough to go by the plain descriptor. Punching a hole discards on block devices too.
            Direction::Trim => opcode::Fallocate::new(fd, op.len.into())
                .offset(op.offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            Direction::Flush => opcode::Fsync::new(fd).flags(self.flush_flags).build(),
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
        if self.completion_polling {
            return self.poll();
        }
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
        tolerate(waited)
    }

    /// Hands over what is queued and looks at the device once. A ring that polls knows no timers, and
    /// waiting in the kernel for a device that stalls would have no end.
    fn poll(&self) -> io::Result<()> {
        // With --sqpoll this wakes the kernel's thread, which then polls for completions as well.
        self.ring.submit()?;
        // SAFETY: no argument is passed; the flag only asks the kernel to poll for completions.
        tolerate(unsafe { self.ring.submitter().enter::<()>(0, 0, ENTER_GETEVENTS, None) })
    }
}

/// What a wait may end with besides completions.
fn tolerate(waited: io::Result<usize>) -> io::Result<()> {
    match waited {
        Ok(_) => Ok(()),
        // The time limit ran out, a signal came, or completions must be reaped first.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
        Err(error) => Err(error),
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

/// The buffers as io_uring wants to know them.
fn vectors(buffers: &mut Buffers, slots: u32) -> Vec<libc::iovec> {
    (0..slots as usize)
        .map(|slot| {
            let memory = buffers.slot(slot);
            libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() }
        })
        .collect()
}

/// How long the kernel's submission thread keeps polling when nothing comes, in milliseconds.
const SUBMISSION_IDLE_MS: u32 = 1_000;

/// The cheapest kind of ring the kernel offers: completions are handled when the worker asks for
/// them (Linux 6.1), else without interrupting it (5.19), else plainly.
pub(super) fn build_ring(entries: u32, options: UringOptions) -> Result<IoUring, EngineError> {
    let UringOptions { submission_polling, completion_polling } = options;
    let mut plain = IoUring::builder();
    if completion_polling {
        plain.setup_iopoll();
    }
    if submission_polling {
        // Its completions come from the kernel's thread; the cheaper kinds are for rings without one.
        return plain.setup_sqpoll(SUBMISSION_IDLE_MS).build(entries).map_err(|source| {
            EngineError::Resource {
            what: "the kernel refuses --sqpoll (a thread of its own that polls for submissions): leave it out"
                .to_owned(),
            source,
        }
        });
    }
    let mut deferred = plain.clone();
    deferred.setup_single_issuer().setup_defer_taskrun();
    let mut cooperative = plain.clone();
    cooperative.setup_coop_taskrun();
    deferred
        .build(entries)
        .or_else(|_| cooperative.build(entries))
        .or_else(|_| plain.build(entries))
        .map_err(|source| EngineError::Resource {
            what: "io_uring (if the kernel forbids it, see sysctl kernel.io_uring_disabled, or use --engine psync)"
                .to_owned(),
            source,
        })
}

/// The error of a device that cannot be polled.
pub(super) fn polling_refused(source: io::Error) -> EngineError {
    EngineError::Resource {
        what: "the target refuses --iopoll (polling its device for completions): an NVMe device can be \
               polled when its driver has poll queues (nvme.poll_queues); leave --iopoll out"
            .to_owned(),
        source,
    }
}
