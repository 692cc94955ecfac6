//! What the parts of the core share: the scheduler, the I/Os and requests outstanding, the effects to carry out.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};

use crate::scheduler::{QueuedIo, Scheduler};
use crate::slab::Slab;
use crate::types::{
    Account, Completion, Data, Device, DeviceIo, DeviceOp, DiskId, Effect, IoError, IoId, RequestId, Time,
    UnknownIo,
};

/// Who waits for an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A request, by its index.
    Request(u32),
    /// A block operation of the cache, by its index.
    Block {
        partition: u32,
        /// Its index there.
        op: u32,
    },
    /// A step of a cache partition's metadata commit.
    Commit { partition: u32 },
    /// The sync of a cache partition's write-backs.
    WriteBackSync { partition: u32 },
}

/// An I/O to be queued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewIo {
    pub(crate) owner: Owner,
    pub(crate) disk: DiskId,
    pub(crate) device: Device,
    pub(crate) op: DeviceOp,
    pub(crate) offset_bytes: u64,
    pub(crate) len_bytes: u32,
    pub(crate) data: Data,
    pub(crate) wants_crc: bool,
}

/// An I/O from [`Ports::enqueue`] to its completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutstandingIo {
    /// As a scheduler sees it.
    pub(crate) queued: QueuedIo,
    pub(crate) owner: Owner,
    pub(crate) data: Data,
    wants_crc: bool,
}

impl NewIo {
    const fn named(self, io: IoId) -> OutstandingIo {
        let Self { owner, disk, device, op, offset_bytes, len_bytes, data, wants_crc } = self;
        let queued = QueuedIo { io, disk, device, op, offset_bytes, len_bytes };
        OutstandingIo { queued, owner, data, wants_crc }
    }
}

#[derive(Debug)]
struct Outstanding {
    owed: Owed,
    /// Parts not yet done.
    parts: u32,
    result: Result<(), IoError>,
}

/// The shared state, with an operation for each thing that can be done to it.
pub(crate) struct Ports {
    scheduler: Box<dyn Scheduler>,
    requests: Slab<Outstanding>,
    ios: Slab<OutstandingIo>,
    generation: u32,
    /// Completions by the time they become known, equal times in their order.
    held: BTreeMap<(Time, u64), (Completion, Owner)>,
    completions: u64,
    /// When something is to be tried again.
    wake: Option<Time>,
    /// Counts what an event does; see [`Fence::steps`](crate::Fence::steps).
    pub(crate) steps: u64,
    pub(crate) effects: VecDeque<Effect>,
}

impl Ports {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            requests: Slab::new(),
            ios: Slab::new(),
            generation: 0,
            held: BTreeMap::new(),
            completions: 0,
            wake: None,
            steps: 0,
            effects: VecDeque::new(),
        }
    }

    /// A request that is answered when [`part_done`](Self::part_done) has been called `parts` times.
    pub(crate) fn begin_request(&mut self, id: RequestId, parts: u32) -> u32 {
        self.requests.insert(Outstanding { owed: Owed::new(id), parts, result: Ok(()) })
    }

    /// Answers a request that never began.
    pub(crate) fn refuse(&mut self, id: RequestId, error: IoError) {
        Owed::new(id).answer(&mut self.effects, Err(error));
    }

    /// One part less. The first error is the request's.
    pub(crate) fn part_done(&mut self, request: u32, result: Result<(), IoError>) {
        self.parts_done(request, 1, result);
    }

    /// `count` parts less.
    #[inline]
    pub(crate) fn parts_done(&mut self, request: u32, count: u32, result: Result<(), IoError>) {
        let Some(outstanding) = self.requests.get_mut(request) else {
            debug_assert!(false, "part of a request that is not outstanding");
            return;
        };
        self.steps += 1;
        outstanding.result = outstanding.result.and(result);
        outstanding.parts -= count;
        if outstanding.parts == 0
            && let Some(done) = self.requests.remove(request)
        {
            done.owed.answer(&mut self.effects, done.result);
        }
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// Whether no request waits, and no I/O is queued, under way or held back.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.requests.len() == 0 && self.ios.len() == 0 && self.held.is_empty()
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, now: Time, new: NewIo) -> IoId {
        self.steps += 1;
        self.generation = self.generation.wrapping_add(1);
        let id = IoId(u64::from(self.generation) << 32 | u64::from(self.ios.next()));
        let io = new.named(id);
        self.ios.insert(io);
        self.scheduler.enqueue(now, io.queued);
        id
    }

    /// An I/O has completed. Gives who waits for it if it may become known at once; else [`release`](Self::release) gives
    /// both when its time comes.
    ///
    /// # Errors
    /// There is none of that name.
    #[inline]
    pub(crate) fn completed(
        &mut self,
        now: Time,
        completion: &Completion,
    ) -> Result<Option<Owner>, UnknownIo> {
        let unknown = UnknownIo(completion.io);
        let index = completion.io.slot();
        let io = self.ios.get(index).filter(|io| io.queued.io == completion.io).ok_or(unknown)?;
        self.scheduler.completed(now, &io.queued);
        let when = self.scheduler.release_at(now, &io.queued);
        let owner = io.owner;
        self.ios.discard(index);
        // What was held until now comes before it.
        if when <= now && self.held.first_key_value().is_none_or(|(&(first, _), _)| first > now) {
            self.steps += 1;
            return Ok(Some(owner));
        }
        self.completions += 1;
        self.held.insert((when, self.completions), (*completion, owner));
        Ok(None)
    }

    /// The next completion whose time has come, with who waits for it.
    #[inline]
    pub(crate) fn release(&mut self, now: Time) -> Option<(Completion, Owner)> {
        // Most schedulers hold nothing, and this is asked after every I/O.
        if self.held.is_empty() { None } else { self.release_held(now) }
    }

    fn release_held(&mut self, now: Time) -> Option<(Completion, Owner)> {
        let first = self.held.first_entry().filter(|entry| entry.key().0 <= now)?;
        self.steps += 1;
        Some(first.remove())
    }

    /// Dispatches all that the scheduler allows now. `prepare` gives an I/O whose data is [`Data::Pieces`] its memory, and
    /// says how many steps it took.
    pub(crate) fn dispatch(&mut self, now: Time, mut prepare: impl FnMut(Owner) -> u64) {
        while let Some(picked) = self.scheduler.pick(now) {
            self.steps += 1;
            let Some(io) = self.ios.get(picked.io.slot()) else {
                debug_assert!(false, "the scheduler picked an I/O that is not queued");
                continue;
            };
            let OutstandingIo { queued, owner, data, wants_crc } = *io;
            let QueuedIo { io: id, disk, device, op, offset_bytes, len_bytes } = queued;
            if matches!(data, Data::Pieces) {
                self.steps += prepare(owner);
            }
            self.effects.push_back(Effect::Dispatch(DeviceIo {
                id,
                disk,
                device,
                op,
                offset_bytes,
                len_bytes,
                data,
                wants_crc,
            }));
        }
    }

    /// Has the scheduler go by another configuration of its kind. False if it cannot.
    pub(crate) fn reconfigure(&mut self, config: &dyn Any) -> bool {
        self.scheduler.reconfigure(config)
    }

    /// What the scheduler has kept of a disk.
    pub(crate) fn account(&self, now: Time, disk: DiskId) -> Option<Account> {
        self.scheduler.account(now, disk)
    }

    /// An outstanding I/O.
    pub(crate) fn io(&self, io: IoId) -> Option<&OutstandingIo> {
        self.ios.get(io.slot()).filter(|outstanding| outstanding.queued.io == io)
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let released = self.held.first_key_value().map(|(&(when, _), _)| when);
        [self.scheduler.next_deadline(), released, self.wake].into_iter().flatten().min()
    }

    /// Something is to be tried again then.
    pub(crate) fn wake_at(&mut self, when: Time) {
        self.wake = Some(self.wake.map_or(when, |wake| wake.min(when)));
    }

    /// Whether that time has come, once.
    pub(crate) fn wakes(&mut self, now: Time) -> bool {
        let due = self.wake.is_some_and(|wake| wake <= now);
        if due {
            self.wake = None;
        }
        due
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        for outstanding in self.requests.drain() {
            outstanding.owed.abandon();
        }
    }
}

/// The duty to answer one request. Dropping it unanswered is a bug, caught where debug assertions are on.
#[derive(Debug)]
#[must_use]
pub(crate) struct Owed(Option<RequestId>);

impl Owed {
    pub(crate) const fn new(request: RequestId) -> Self {
        Self(Some(request))
    }

    pub(crate) fn answer(mut self, effects: &mut VecDeque<Effect>, result: Result<(), IoError>) {
        if let Some(request) = self.0.take() {
            effects.push_back(Effect::Complete { request, result });
        }
    }

    /// The whole fence goes away, as in a power failure: no guest is left to answer.
    pub(crate) fn abandon(mut self) {
        self.0 = None;
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        debug_assert!(
            self.0.is_none() || std::thread::panicking(),
            "request {:?} was dropped unanswered",
            self.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "dropped unanswered")]
    fn a_request_dropped_unanswered_is_caught() {
        drop(Owed::new(RequestId(1)));
    }

    #[test]
    fn an_answer_is_given_once() {
        let mut effects = VecDeque::new();
        Owed::new(RequestId(1)).answer(&mut effects, Ok(()));
        assert_eq!(effects, [Effect::Complete { request: RequestId(1), result: Ok(()) }]);
    }
}
