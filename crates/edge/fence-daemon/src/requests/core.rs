//! The fence with what it needs to act: requests on one side, device I/Os on the other.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use thiserror::Error;
use virtbench_fence::cache::CacheCounts;
use virtbench_fence::{
    BufferId, ChangeError, Completion, Device, DeviceIo, DeviceOp, DiskId, Effect, Fence, IoError, RequestId,
    SchedulerConfig, Time,
};

use super::flight::{Flights, Sources};
use super::table::{Part, Pending, Table};
use crate::device::{Backend, Facts, Finished, Io};
use crate::frontend::listen::Listener;
use crate::frontend::served::Served;
use crate::journal::Journal;
use crate::memory::{Pool, Segment};
use crate::metrics::{Metrics, Publisher};
use crate::request::{Action, Done, Memory, Request};
use crate::ring::Ring;

/// The slow and the fast device, where they are there.
pub(crate) type Devices = [Option<Box<dyn Backend>>; 2];

/// Of requests that are of no client.
const NO_FRONT_END: usize = usize::MAX;

/// A disk has as many requests in flight as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the disk has as many requests in flight as it may")]
pub struct Full;

/// The state that front ends reach through their [`Host`](crate::frontend::Host).
pub struct Core {
    pub(crate) now: Time,
    pub(crate) pool: Pool,
    pub(crate) spare_lists: Vec<Vec<Segment>>,
    fence: Fence,
    requests: Table,
    write_through: Vec<bool>,
    max_request_bytes: u32,
    flights: Flights,
    figures: Arc<Metrics>,
    publisher: Publisher,
    notes: Notes,
    /// Device I/Os that could not even be started.
    refused: Vec<Finished>,
    /// Disks of other sizes, for front ends to be told.
    resized: Vec<(DiskId, u64)>,
    /// What the loop is asked for.
    pub(crate) asked: Option<Asked>,
    /// No request is taken: clients wait.
    pub(crate) rests: bool,
    /// A flush of no client's has failed.
    pub(crate) has_failed_flush: bool,
    facts: [Facts; 2],
    /// Completed, for front ends to be told.
    done: Vec<(usize, Done)>,
}

impl Core {
    pub(crate) fn new(
        fence: Fence,
        write_through: Vec<bool>,
        most_per_disk: usize,
        max_request_bytes: u32,
        facts: [Facts; 2],
        figures: Arc<Metrics>,
    ) -> Self {
        let flights = Flights::new(fence.scratch_blocks(), max_request_bytes as usize, facts);
        Self {
            now: Time::ZERO,
            pool: Pool::default(),
            spare_lists: Vec::new(),
            fence,
            requests: Table::new(write_through.len(), most_per_disk),
            write_through,
            max_request_bytes,
            flights,
            publisher: Publisher::new(Arc::clone(&figures)),
            notes: Notes::default(),
            figures,
            refused: Vec::new(),
            resized: Vec::new(),
            asked: None,
            rests: false,
            has_failed_flush: false,
            facts,
            done: Vec::new(),
        }
    }

    /// Requests of a disk that would be taken now.
    pub(crate) fn room(&self, disk: DiskId) -> usize {
        if self.rests { 0 } else { self.requests.room(disk) }
    }

    /// Whether nothing is under way, of clients or of the cache's own.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.pending() == 0 && self.fence.is_at_rest() && self.refused.is_empty()
    }

    /// Whether a cache keeps what a device does not take, or is not believed.
    pub(crate) fn is_ailing(&self) -> bool {
        self.fence.cache_counts().any(|cache| cache.failing || cache.read_only || cache.sealed)
    }

    /// Whether a client still has to hear that what it wrote past the cache is lost.
    pub(crate) fn is_loss_untold(&self) -> bool {
        self.fence.is_loss_untold()
    }

    /// Goes by another fence from now on, over the same devices. It must be at rest.
    pub(crate) fn go_over_to(&mut self, fence: Fence, write_through: Vec<bool>, figures: Arc<Metrics>) {
        self.flights = Flights::new(fence.scratch_blocks(), self.max_request_bytes as usize, self.facts);
        self.requests = Table::new(write_through.len(), self.requests.most_per_disk());
        self.publisher = Publisher::new(Arc::clone(&figures));
        self.notes = Notes::default();
        (self.fence, self.write_through, self.figures) = (fence, write_through, figures);
    }

    pub(crate) fn grow_disk(&mut self, disk: DiskId, size_bytes: u64) -> Result<(), ChangeError> {
        self.fence.grow_disk(disk, size_bytes)?;
        self.resized.push((disk, size_bytes));
        Ok(())
    }

    pub(crate) fn resized(&mut self) -> Option<(DiskId, u64)> {
        self.resized.pop()
    }

    pub(crate) fn reschedule(&mut self, scheduler: &SchedulerConfig) -> Result<(), ChangeError> {
        self.fence.reschedule(self.now, scheduler)
    }

    /// Publishes the state of everything to readers of the metrics.
    pub(crate) fn publish(&mut self) {
        self.publisher.publish(self.now, self.requests.per_disk(), &self.fence);
        self.notes.caches(self.fence.cache_counts(), &self.figures);
    }

    /// Requests in flight.
    pub(crate) const fn pending(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.fence.next_deadline()
    }

    pub(crate) fn on_timer(&mut self) {
        self.fence.on_timer(self.now);
    }

    #[inline]
    pub(crate) fn submit(&mut self, front_end: usize, request: Request, memory: Memory) -> Result<(), Full> {
        if self.room(request.disk) == 0 && front_end != NO_FRONT_END {
            return Err(Full);
        }
        let mut request = request;
        if let Action::Write { fua } | Action::WriteZeroes { fua } = &mut request.action {
            *fua |= self.write_through.get(request.disk.index()).is_some_and(|through| *through);
        }
        let index = self.requests.insert(Pending::new(front_end, request, memory, self.now));
        self.hand_over(index);
        Ok(())
    }

    /// Drops what has not been handed to the fence of requests whose client is gone.
    pub(crate) fn abandon(&mut self, front_end: usize, is_abandoned: impl Fn(u64) -> bool) {
        let requests = self.requests.pending_of(front_end);
        requests.filter(|pending| is_abandoned(pending.request.tag)).for_each(Pending::abandon);
    }

    /// Flushes every disk, for no client in particular.
    pub(crate) fn flush_all(&mut self) {
        for disk in (0..).take(self.write_through.len()) {
            let (disk, action) = (DiskId(disk), Action::Flush);
            let request = Request { tag: 0, disk, action, offset_bytes: 0, len_bytes: 0 };
            let flushed = self.submit(NO_FRONT_END, request, Memory::None);
            debug_assert!(flushed.is_ok(), "nothing else is in flight");
        }
    }

    /// Hands as much of a request to the fence as it may have at once.
    #[inline]
    fn hand_over(&mut self, index: u32) {
        while let Some(pending) = self.requests.get_mut(index)
            && let Some(part) = pending.next_part(self.max_request_bytes)
        {
            let (disk, offset) = (pending.request.disk, pending.request.offset_bytes);
            self.submit_part(index, disk, offset, part);
        }
    }

    #[inline]
    fn submit_part(&mut self, index: u32, disk: DiskId, offset_bytes: u64, part: Part) {
        let request = virtbench_fence::Request {
            id: RequestId(index.into()),
            disk,
            op: part.op,
            offset_bytes: offset_bytes.saturating_add(part.at_bytes),
            len_bytes: part.len_bytes,
            // The request, and where in its memory the part begins.
            buffer: BufferId(part.at_bytes << 32 | u64::from(index)),
        };
        self.fence.submit(self.now, request);
    }

    /// Carries out what the fence wants; devices may be finished with some of it at once. False if it wants nothing.
    #[inline]
    pub(crate) fn carry_out(&mut self, devices: &mut Devices, ring: &mut Ring) -> bool {
        let mut any = false;
        while let Some(effect) = self.fence.poll_effect() {
            any = true;
            match effect {
                Effect::Dispatch(io) => self.dispatch(io, devices, ring),
                Effect::Copy { from, to, len_bytes } => {
                    let sources = Sources { fence: &self.fence, requests: &self.requests };
                    self.flights.copy(&sources, from, to, len_bytes);
                }
                Effect::Complete { request, result } => self.answered(request, result),
            }
        }
        any
    }

    #[allow(clippy::cast_possible_truncation)] // what `submit` made of an index
    fn answered(&mut self, request: RequestId, result: Result<(), IoError>) {
        let index = request.0 as u32;
        let Some(pending) = self.requests.get_mut(index) else { return };
        if pending.answered(result) {
            let (front_end, request) = (pending.front_end, pending.request);
            let (response_ns, is_abandoned) = (self.now.since(pending.begun), pending.is_abandoned());
            let (done, list) = pending.finish();
            self.requests.remove(index);
            let (disk, well) = (request.disk.index(), done.result.is_ok());
            if !is_abandoned {
                self.figures.completed(disk, request.action, request.len_bytes, response_ns, well);
            }
            if let (NO_FRONT_END, Err(error)) = (front_end, done.result) {
                self.has_failed_flush = true;
                self.fence.flush_untold(request.disk, error);
            }
            self.done.push((front_end, done));
            if let Some(mut list) = list {
                list.clear();
                self.spare_lists.push(list);
            }
            return;
        }
        if let Some(part) = pending.closing_flush() {
            let disk = pending.request.disk;
            self.submit_part(index, disk, 0, part);
        } else {
            self.hand_over(index);
        }
    }

    /// Completions for front ends, the oldest first.
    pub(crate) const fn done(&mut self) -> &mut Vec<(usize, Done)> {
        &mut self.done
    }

    #[inline]
    fn dispatch(&mut self, io: DeviceIo, devices: &mut Devices, ring: &mut Ring) {
        let sources = Sources { fence: &self.fence, requests: &self.requests };
        let slot = io.id.slot();
        let backend = devices[io.device.index()].as_mut();
        let found = self.flights.begin(&sources, &mut self.pool, io);
        if found && backend.as_ref().is_some_and(|backend| backend.leaves_memory()) {
            self.flights.blank(slot);
        }
        match (backend, found.then(|| self.flights.segments(slot))) {
            (Some(backend), Some(segments)) => {
                let DeviceIo { disk, op, offset_bytes, len_bytes, .. } = io;
                backend.start(self.now, &Io { slot, disk, op, offset_bytes, len_bytes, segments }, ring);
            }
            // A device that is not there, or memory that has gone: the fence hears of it as of any failure.
            _ => self.refused.push(Finished { slot, result: Err(IoError::Device(libc::ENXIO)) }),
        }
    }

    /// A device's I/O is over.
    #[inline]
    pub(crate) fn finished(&mut self, finished: Finished) {
        let sources = Sources { fence: &self.fence, requests: &self.requests };
        let Some((io, data_crc)) = self.flights.end(&sources, &mut self.pool, finished) else { return };
        if let Err(error) = finished.result {
            self.notes.failed(&io, error, &self.figures);
        }
        let completion = Completion { io: io.id, result: finished.result, data_crc };
        let known = self.fence.on_device(self.now, completion);
        debug_assert!(known.is_ok(), "the flights and the fence disagree: {known:?}");
    }

    /// The next I/O that could not be started.
    pub(crate) fn refused(&mut self) -> Option<Finished> {
        self.refused.pop()
    }
}

/// Which states of a partition are told when they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stands {
    failing: bool,
    read_only: bool,
}

/// Writes lines, few of them whatever devices do.
#[derive(Debug)]
pub(super) struct Notes {
    devices: Journal,
    caches: Journal,
    stood: Vec<Stands>,
}

impl Default for Notes {
    fn default() -> Self {
        let [devices, caches] = ["a device fails", "cache"].map(|about| Journal::new(about.into()));
        Self { devices, caches, stood: Vec::new() }
    }
}

impl Notes {
    /// An I/O of a device has failed.
    pub(super) fn failed(&self, io: &DeviceIo, error: IoError, figures: &Metrics) {
        let device = match io.device {
            Device::Slow => "slow",
            Device::Fast => "fast",
        };
        let disk = figures.disk_name(io.disk.index());
        let DeviceIo { offset_bytes, len_bytes, .. } = io;
        let what = match io.op {
            DeviceOp::Flush => "a flush".to_owned(),
            DeviceOp::Read => format!("a read of {len_bytes} bytes at {offset_bytes}"),
            DeviceOp::Write => format!("a write of {len_bytes} bytes at {offset_bytes}"),
            DeviceOp::Discard => format!("a discard of {len_bytes} bytes at {offset_bytes}"),
        };
        let why = match error {
            IoError::Device(code) => std::io::Error::from_raw_os_error(code).to_string(),
            error => error.to_string(),
        };
        self.devices.note(format_args!("[{device}], {what} for disk {disk}: {why}"));
    }

    /// How the partitions of the cache stand; what has changed is told.
    pub(super) fn caches(&mut self, counts: impl Iterator<Item = CacheCounts>, figures: &Metrics) {
        for (place, counts) in counts.enumerate().filter(|(_, counts)| !counts.sealed) {
            let now = Stands { failing: counts.failing, read_only: counts.read_only };
            if self.stood.len() <= place {
                self.stood.resize(place + 1, Stands::default());
            }
            let before = std::mem::replace(&mut self.stood[place], now);
            if now == before {
                continue;
            }
            let whose = match figures.caches() {
                1 => "the cache of all disks".to_owned(),
                _ => format!("the cache of disk {}", figures.disk_name(place)),
            };
            let says = match now {
                Stands { read_only: true, failing: true } => {
                    "refuses writes and flushes until a device that fails works again"
                }
                Stands { read_only: true, failing: false } => {
                    "refuses writes and flushes until the daemon is started again: after a failed flush of the fast device \
                     it is unknown what that has kept"
                }
                Stands { read_only: false, failing: true } => {
                    "keeps what a device that fails does not take, and tries it again; writes wait once there is no room"
                }
                Stands { read_only: false, failing: false } => "works again: nothing of it was lost",
            };
            self.caches.note(format_args!("{whose} {says} ({} failures so far)", counts.errors));
        }
    }
}

/// Why there is no rest: the disk that is to go has a client.
pub(crate) const HAS_CLIENT: &str = "a client uses it: end that first";

/// A wish, and who hears how it went.
pub(crate) struct Asked {
    pub(crate) wish: Wish,
    pub(crate) answer: SyncSender<Result<(), String>>,
}

/// What is wished for.
pub(crate) enum Wish {
    /// Finish what is under way, make it stable, and take nothing more until told to. Not if this disk has a client.
    Rest {
        /// A disk that is to go.
        leaves: Option<DiskId>,
    },
    /// Take requests again.
    GoOn,
    /// Take requests again, by another fence.
    Change(Box<Change>),
    /// End: this cannot go on.
    End,
}

/// Other disks.
pub(crate) struct Change {
    pub(crate) fence: Fence,
    /// For each disk, whether every write is stable before it is answered.
    pub(crate) write_through: Vec<bool>,
    /// Where each disk of before is now; nowhere if it is gone.
    pub(crate) moved: Vec<Option<DiskId>>,
    /// A disk that was not there before.
    pub(crate) added: Option<Added>,
    pub(crate) figures: Arc<Metrics>,
}

/// A disk that is served from now on.
pub(crate) struct Added {
    pub(crate) served: Served,
    /// Of a vhost-user client.
    pub(crate) listener: Option<Listener>,
}
