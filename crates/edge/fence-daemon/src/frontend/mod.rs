//! The seam to clients: a [`FrontEnd`] hands requests in and is told when they are done.
//!
//! Front ends live in the scheduler's thread, on its ring, so that no request changes threads. One is told when a
//! descriptor that it watches is ready, is asked at every turn whether shared memory has something new, and hands
//! requests in through its [`Host`]. Nothing here may block, and whatever a client sends harms that client alone.

pub mod listen;
pub mod nbd;
pub(crate) mod served;
pub mod vhost_user;

use std::os::fd::BorrowedFd;

use virtbench_fence::{ChangeError, DiskId, SchedulerConfig, Time};

use crate::memory::{Buffer, Pool, Segment};
use crate::requests::core::Asked;
use crate::requests::{Core, Full};
use crate::ring::{Interest, Ring, WatchId, Watcher};

pub use self::served::Served;
pub use crate::request::{Action, Done, Memory, Request};

/// How clients reach virtual disks.
pub trait FrontEnd {
    /// Begins to watch its descriptors.
    fn start(&mut self, host: &mut Host<'_>);

    /// A watched descriptor is ready. It will be told again while it remains so and is watched: take a bounded amount
    /// of work each time, and watch for [`Interest::NONE`] what cannot be served now.
    fn ready(&mut self, token: u64, host: &mut Host<'_>);

    /// Looks for requests that come without notification, in shared memory. Returns how many were handed in.
    fn poll(&mut self, _host: &mut Host<'_>) -> usize {
        0
    }

    /// A request is done. Answers may be put together until [`settle`](Self::settle).
    fn completed(&mut self, done: Done, host: &mut Host<'_>);

    /// The end of a turn: tell clients what was completed, take up what found no room.
    fn settle(&mut self, _host: &mut Host<'_>) {}

    /// The thread is about to wait: ask clients for notifications. True if there is something to do after all.
    fn before_sleep(&mut self, _host: &mut Host<'_>) -> bool {
        false
    }

    /// When [`on_timer`](Self::on_timer) wants to be called, for clients that say nothing.
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// A deadline may have passed.
    fn on_timer(&mut self, _host: &mut Host<'_>) {}

    /// A disk has another size, all of which can be used.
    fn resized(&mut self, _disk: DiskId, _size_bytes: u64, _host: &mut Host<'_>) {}

    /// The disk that it serves, if it goes with it.
    fn serves(&self) -> Option<DiskId> {
        None
    }

    /// Whether a client uses this disk.
    fn has_client(&self, _disk: DiskId) -> bool {
        false
    }

    /// Disks have other numbers, or are gone (`None`). Nothing is in flight.
    fn renumber(&mut self, _moved: &[Option<DiskId>], _host: &mut Host<'_>) {}

    /// There is a disk more.
    fn disk_added(&mut self, _added: &Served) {}

    /// What it serves is gone: it takes leave of its clients, and is not asked again.
    fn leave(&mut self, _host: &mut Host<'_>) {}

    /// The daemon is about to end: requests in flight are completed after this, and no new ones are taken.
    fn stop(&mut self, _host: &mut Host<'_>) {}
}

/// What a front end may do.
pub struct Host<'a> {
    pub(crate) front_end: usize,
    pub(crate) core: &'a mut Core,
    pub(crate) ring: &'a mut Ring,
}

impl Host<'_> {
    /// The time of this turn.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.core.now
    }

    /// Hands a request in; it will be [completed](FrontEnd::completed), never at once from within this call.
    ///
    /// # Errors
    /// The disk has as many requests in flight as it may: nothing was taken, try again after a completion.
    #[inline]
    pub fn submit(&mut self, request: Request, memory: Memory) -> Result<(), Full> {
        self.core.submit(self.front_end, request, memory)
    }

    /// The clients of the requests with these tags are gone: what has not been handed to a device need not be done.
    /// Each is [completed](FrontEnd::completed) all the same, once nothing of it is in flight.
    pub fn abandon(&mut self, is_abandoned: impl Fn(u64) -> bool) {
        self.core.abandon(self.front_end, is_abandoned);
    }

    /// How many more requests of a disk would be taken now.
    #[must_use]
    pub fn room(&self, disk: DiskId) -> usize {
        self.core.room(disk)
    }

    /// Gives a disk room behind its end, which is free and zeroed; clients are told.
    ///
    /// # Errors
    /// The fence refuses.
    pub fn grow_disk(&mut self, disk: DiskId, size_bytes: u64) -> Result<(), ChangeError> {
        self.core.grow_disk(disk, size_bytes)
    }

    /// Gives slots or shares anew; nothing that is queued is lost.
    ///
    /// # Errors
    /// The fence refuses.
    pub fn reschedule(&mut self, scheduler: &SchedulerConfig) -> Result<(), ChangeError> {
        self.core.reschedule(scheduler)
    }

    /// Asks the loop itself for something; one thing at a time.
    pub(crate) fn ask(&mut self, asked: Asked) {
        self.core.asked = Some(asked);
    }

    /// An empty list for [`Memory::Shared`].
    pub fn segments(&mut self) -> Vec<Segment> {
        self.core.spare_lists.pop().unwrap_or_default()
    }

    /// A buffer of at least `len` bytes for [`Memory::Owned`]; its contents are whatever they are.
    pub fn buffer(&mut self, len: usize) -> Buffer {
        self.core.pool.take(len)
    }

    /// Gives a buffer back.
    pub fn give(&mut self, buffer: Buffer) {
        self.core.pool.give(buffer);
    }

    /// The pool itself, for a front end that keeps buffers of its own.
    pub const fn pool(&mut self) -> &mut Pool {
        &mut self.core.pool
    }

    /// Watches a descriptor, which stays open until it is forgotten.
    pub fn watch(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> WatchId {
        self.ring.watch(fd, interest, Watcher { front_end: self.front_end, token })
    }

    /// Changes what a watch is for.
    pub fn set_interest(&mut self, watch: WatchId, interest: Interest) {
        self.ring.set_interest(watch, interest);
    }

    /// Ends a watch; do it before the descriptor is closed.
    pub fn forget(&mut self, watch: WatchId) {
        self.ring.forget(watch);
    }
}
