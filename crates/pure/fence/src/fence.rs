//! One owner of all state: event, apply, dispatch what the scheduler allows.

use std::collections::VecDeque;

use thiserror::Error;

use crate::config::{Backing, Config, ConfigError, SchedulerConfig};
use crate::owed::Owed;
use crate::peers::Fifo;
use crate::scheduler::{QueuedIo, Scheduler};
use crate::slab::Slab;
use crate::slots::Slots;
use crate::types::{Completion, Data, Device, DeviceIo, DeviceOp, Effect, IoError, IoId, Op, Request, Time};

/// A completion of an I/O that is not outstanding: a driver reported it twice or invented it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no outstanding I/O {0:?}: report each dispatched I/O once")]
pub struct UnknownIo(pub IoId);

/// The storage core.
pub struct Fence {
    config: Config,
    scheduler: Box<dyn Scheduler>,
    requests: Slab<Outstanding>,
    ios: Slab<Io>,
    next_generation: u32,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
struct Outstanding {
    owed: Owed,
}

#[derive(Debug, Clone, Copy)]
struct Io {
    queued: QueuedIo,
    data: Data,
    request: u32,
}

impl Fence {
    /// A fence over empty devices.
    ///
    /// # Errors
    /// The configuration does not fit together.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let depth = [config.slow.depth, config.fast.depth];
        config.validate()?;
        let scheduler: Box<dyn Scheduler> = match &config.scheduler {
            SchedulerConfig::Fifo => Box::new(Fifo::new(depth)),
            SchedulerConfig::Slots(slots) => Box::new(Slots::new(slots.clone(), config.disks.len())),
        };
        Self::with_scheduler(config, scheduler)
    }

    /// A fence with a scheduler of the caller's in place of [`Config::scheduler`].
    ///
    /// # Errors
    /// The configuration does not fit together.
    pub fn with_scheduler(config: Config, scheduler: Box<dyn Scheduler>) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            scheduler,
            requests: Slab::new(),
            ios: Slab::new(),
            next_generation: 0,
            effects: VecDeque::new(),
        })
    }

    /// A guest asks. The answer comes as [`Effect::Complete`], exactly one a request.
    pub fn submit(&mut self, now: Time, request: Request) {
        let owed = Owed::new(request.id);
        if let Err(error) = self.check(&request) {
            owed.answer(&mut self.effects, Err(error));
            return;
        }
        let index = self.requests.insert(Outstanding { owed });
        let device = match self.config.backing {
            Backing::Slow => Device::Slow,
            Backing::Fast => Device::Fast,
        };
        let data = match request.op {
            Op::Read | Op::Write => Data::Guest { buffer: request.buffer, at_bytes: 0 },
            Op::Flush | Op::Discard => Data::None,
        };
        let op = match request.op {
            Op::Read => DeviceOp::Read,
            Op::Write => DeviceOp::Write,
            Op::Flush => DeviceOp::Flush,
            Op::Discard => DeviceOp::Discard,
        };
        let (offset_bytes, len_bytes) = match request.op {
            Op::Flush => (0, 0),
            _ => (
                self.config.disks[request.disk.index()].offset_bytes + request.offset_bytes,
                request.len_bytes,
            ),
        };
        let queued = QueuedIo { io: IoId(0), disk: request.disk, device, op, offset_bytes, len_bytes };
        self.enqueue(now, Io { queued, data, request: index });
        self.dispatch(now);
    }

    /// A device has finished an I/O.
    ///
    /// # Errors
    /// The I/O is not outstanding; nothing has changed.
    pub fn on_device(&mut self, now: Time, completion: Completion) -> Result<(), UnknownIo> {
        let index = completion.io.slot();
        match self.ios.get(index) {
            Some(io) if io.queued.io == completion.io => {}
            _ => return Err(UnknownIo(completion.io)),
        }
        if let Some(io) = self.ios.remove(index) {
            self.scheduler.completed(now, io.queued);
            if let Some(outstanding) = self.requests.remove(io.request) {
                outstanding.owed.answer(&mut self.effects, completion.result);
            }
        }
        self.dispatch(now);
        Ok(())
    }

    /// A deadline may have passed. Harmless when none has.
    pub fn on_timer(&mut self, now: Time) {
        self.dispatch(now);
    }

    /// When [`Fence::on_timer`] wants to be called, if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.scheduler.next_deadline()
    }

    /// The next thing to do, in order; `None` when all is said.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// How many scratch blocks of 4 KiB the driver must keep for [`Data::Scratch`].
    #[must_use]
    pub fn scratch_blocks(&self) -> u32 {
        0
    }

    /// The bytes of an I/O whose data is [`Data::Core`], from dispatch to completion.
    #[must_use]
    pub fn bytes(&self, _io: IoId) -> Option<&[u8]> {
        None
    }

    /// Requests submitted and not yet answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    fn check(&self, request: &Request) -> Result<(), IoError> {
        let disk = self.config.disks.get(request.disk.index()).ok_or(IoError::OutOfRange)?;
        if request.op == Op::Flush {
            return Ok(());
        }
        let end =
            request.offset_bytes.checked_add(u64::from(request.len_bytes)).ok_or(IoError::OutOfRange)?;
        let unaligned = !request.offset_bytes.is_multiple_of(512) || !request.len_bytes.is_multiple_of(512);
        if request.len_bytes == 0 || unaligned || end > disk.size_bytes {
            return Err(IoError::OutOfRange);
        }
        if request.op != Op::Discard && request.len_bytes > self.config.max_request_bytes {
            return Err(IoError::TooLong);
        }
        Ok(())
    }

    fn enqueue(&mut self, now: Time, io: Io) {
        let index = self.ios.insert(io);
        self.next_generation = self.next_generation.wrapping_add(1);
        let id = IoId(u64::from(self.next_generation) << 32 | u64::from(index));
        if let Some(io) = self.ios.get_mut(index) {
            io.queued.io = id;
            self.scheduler.enqueue(now, io.queued);
        }
    }

    fn dispatch(&mut self, now: Time) {
        while let Some(queued) = self.scheduler.pick(now) {
            let QueuedIo { io: id, disk, device, op, offset_bytes, len_bytes } = queued;
            let Some(io) = self.ios.get(id.slot()) else { continue };
            let data = io.data;
            let io = DeviceIo { id, disk, device, op, offset_bytes, len_bytes, data, wants_crc: false };
            self.effects.push_back(Effect::Dispatch(io));
        }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        for outstanding in self.requests.drain() {
            outstanding.owed.abandon();
        }
    }
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
