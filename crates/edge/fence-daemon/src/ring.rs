//! The one ring that everything waits on: devices' I/Os, and descriptors that front ends watch.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use io_uring::register::Restriction;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use virtbench_fence::Device;

/// Which kinds of readiness a front end wants to hear of; hang-ups and errors come with either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interest {
    /// There is something to read, or to accept.
    pub read: bool,
    /// There is room to write.
    pub write: bool,
}

impl Interest {
    /// To read.
    pub const READ: Self = Self { read: true, write: false };
    /// To read and to write.
    pub const BOTH: Self = Self { read: true, write: true };
    /// Nothing: the descriptor rests.
    pub const NONE: Self = Self { read: false, write: false };

    #[allow(clippy::cast_sign_loss)] // two small flags
    const fn mask(self) -> u32 {
        let read = if self.read { libc::POLLIN as u32 } else { 0 };
        let write = if self.write { libc::POLLOUT as u32 } else { 0 };
        read | write
    }
}

/// A watched descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchId {
    index: u32,
    generation: u32,
}

/// Whom a watch belongs to: the place of the front end, and its own name for the descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watcher {
    /// The front end.
    pub front_end: usize,
    /// Its name for the descriptor.
    pub token: u64,
}

#[derive(Debug)]
struct Watch {
    fd: RawFd,
    watcher: Watcher,
    interest: Interest,
    /// A poll is outstanding.
    armed: bool,
    /// Of that poll; an answer with another is of an earlier one and no longer counts.
    serial: u32,
    generation: u32,
    used: bool,
}

/// What the ring reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A device's I/O is over: bytes moved, or a negated error number.
    Device {
        /// Which device.
        device: Device,
        /// The name it was pushed with.
        slot: u32,
        /// As the kernel gave it.
        result: i32,
    },
    /// A watched descriptor is ready. It is watched on.
    Ready(Watcher),
}

const KIND_SHIFT: u32 = 56;
const KIND_DEVICE: u64 = 0;
const KIND_WATCH: u64 = 1;
const KIND_NOTHING: u64 = 2;
/// What is ever asked of the ring.
const OPERATIONS: [u8; 10] = [
    opcode::Read::CODE,
    opcode::Write::CODE,
    opcode::Readv::CODE,
    opcode::Writev::CODE,
    opcode::Fsync::CODE,
    opcode::Fallocate::CODE,
    opcode::PollAdd::CODE,
    opcode::PollRemove::CODE,
    opcode::Timeout::CODE,
    opcode::TimeoutRemove::CODE,
];
const SERIALS: u32 = 1 << 24;
/// Asks `io_uring_enter` for completions (linux/io_uring.h).
const ENTER_GETEVENTS: u32 = 1;

fn watch_data(index: u32, serial: u32) -> u64 {
    KIND_WATCH << KIND_SHIFT | u64::from(serial) << 32 | u64::from(index)
}

/// An `io_uring` with a table of watched descriptors.
pub struct Ring {
    ring: IoUring,
    watches: Vec<Watch>,
    /// Watches that wait for their poll to be handed over.
    to_arm: Vec<u32>,
}

impl Ring {
    /// A ring with room for so many entries at once; more are handed over in between.
    ///
    /// # Errors
    /// The kernel has none for us.
    pub fn new(entries: u32) -> io::Result<Self> {
        let mut deferred = IoUring::builder();
        deferred.setup_cqsize(entries * 4).setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        deferred.setup_r_disabled();
        let mut plain = IoUring::builder();
        plain.setup_cqsize(entries * 4).setup_r_disabled();
        let ring = deferred.build(entries).or_else(|_| plain.build(entries))?;
        // No filter of system calls sees what goes through the ring, so that it is made for these alone.
        let mut allowed = OPERATIONS.map(Restriction::sqe_op);
        ring.submitter().register_restrictions(&mut allowed)?;
        ring.submitter().register_enable_rings()?;
        Ok(Self { ring, watches: Vec::new(), to_arm: Vec::new() })
    }

    /// Hands over an I/O of a device, now or with the next [`submit`](Self::submit).
    ///
    /// # Safety
    /// The memory that the entry names stays valid until its [`Event::Device`] has come.
    pub unsafe fn push_device(&mut self, device: Device, slot: u32, entry: squeue::Entry) {
        let data = KIND_DEVICE << KIND_SHIFT | (device.index() as u64) << 32 | u64::from(slot);
        // SAFETY: the caller's promise.
        unsafe { self.push(&entry.user_data(data)) };
    }

    /// # Safety
    /// As [`push_device`](Self::push_device).
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the caller's promise.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full of what has not been handed over. An error is told by the next `submit` or `wait`.
            let _ = self.hand_over();
        }
    }

    /// Watches a descriptor, which stays open until it is [forgotten](Self::forget). Readiness is a state: it is told
    /// again and again while it lasts.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, interest: Interest, watcher: Watcher) -> WatchId {
        let free = self.watches.iter().position(|watch| !watch.used);
        let index = free.unwrap_or_else(|| {
            self.watches.push(Watch {
                fd: -1,
                watcher,
                interest: Interest::NONE,
                armed: false,
                serial: 0,
                generation: 0,
                used: false,
            });
            self.watches.len() - 1
        });
        let watch = &mut self.watches[index];
        let generation = watch.generation;
        *watch = Watch { fd: fd.as_raw_fd(), watcher, interest, armed: false, used: true, ..*watch };
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        self.to_arm.push(index);
        WatchId { index, generation }
    }

    /// Changes what a watch is for.
    pub fn set_interest(&mut self, id: WatchId, interest: Interest) {
        let Some(watch) = self.find(id) else { return };
        if watch.interest == interest {
            return;
        }
        watch.interest = interest;
        self.disarm(id.index);
        self.to_arm.push(id.index);
    }

    /// Ends a watch; call it before the descriptor is closed.
    pub fn forget(&mut self, id: WatchId) {
        let Some(watch) = self.find(id) else { return };
        watch.used = false;
        watch.generation = watch.generation.wrapping_add(1);
        self.disarm(id.index);
    }

    fn disarm(&mut self, index: u32) {
        let watch = &mut self.watches[index as usize];
        if std::mem::take(&mut watch.armed) {
            let data = watch_data(index, watch.serial);
            let entry = opcode::PollRemove::new(data).build().user_data(KIND_NOTHING << KIND_SHIFT);
            // SAFETY: the entry names no memory.
            unsafe { self.push(&entry) };
        }
    }

    fn find(&mut self, id: WatchId) -> Option<&mut Watch> {
        let watch = self.watches.get_mut(id.index as usize)?;
        (watch.used && watch.generation == id.generation).then_some(watch)
    }

    fn arm(&mut self) {
        while let Some(index) = self.to_arm.pop() {
            let watch = &mut self.watches[index as usize];
            if !watch.used || watch.armed || watch.interest == Interest::NONE {
                continue;
            }
            watch.armed = true;
            watch.serial = (watch.serial + 1) % SERIALS;
            let data = watch_data(index, watch.serial);
            let entry = opcode::PollAdd::new(Fd(watch.fd), watch.interest.mask()).build().user_data(data);
            // SAFETY: the entry names no memory.
            unsafe { self.push(&entry) };
        }
    }

    /// Entries not yet handed over.
    pub fn queued(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Hands everything over, and takes in completions that are ready. Without either it costs no system call.
    ///
    /// # Errors
    /// The kernel refuses the ring itself.
    pub fn submit(&mut self) -> io::Result<()> {
        self.arm();
        let queue = self.ring.submission();
        let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        if idle { Ok(()) } else { tolerate(self.hand_over()) }
    }

    fn hand_over(&mut self) -> io::Result<usize> {
        let queued = u32::try_from(self.ring.submission().len()).unwrap_or(u32::MAX);
        // SAFETY: no argument is passed; the flag asks the kernel to bring up what has completed, which a ring with
        // deferred completions does only when asked.
        unsafe { self.ring.submitter().enter::<()>(queued, 0, ENTER_GETEVENTS, None) }
    }

    /// Hands everything over and waits for something to happen, for `limit` at most.
    ///
    /// # Errors
    /// The kernel refuses the ring itself.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.arm();
        tolerate(match limit {
            None => self.ring.submit_and_wait(1),
            Some(limit) => {
                let limit = Timespec::from(limit);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
        })
    }

    /// Moves at most `most` events to `events`.
    #[allow(clippy::cast_possible_truncation)] // halves of a word
    pub fn reap(&mut self, most: usize, events: &mut Vec<Event>) {
        for entry in self.ring.completion().take(most) {
            let data = entry.user_data();
            let low = data as u32;
            match data >> KIND_SHIFT {
                KIND_DEVICE => {
                    let device = if data >> 32 & 1 == 0 { Device::Slow } else { Device::Fast };
                    events.push(Event::Device { device, slot: low, result: entry.result() });
                }
                KIND_WATCH => {
                    let serial = (data >> 32) as u32 & (SERIALS - 1);
                    if let Some(watch) = self.watches.get_mut(low as usize)
                        && watch.armed
                        && watch.serial == serial
                    {
                        watch.armed = false;
                        self.to_arm.push(low);
                        events.push(Event::Ready(watch.watcher));
                    }
                }
                _ => {}
            }
        }
    }
}

/// What a wait may end with besides completions.
fn tolerate(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        // The time is over, a signal came, or completions must be taken first.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
        Err(error) => Err(error),
    }
}
