//! One owner of all state: event, apply, dispatch what the scheduler allows.
//!
//! # Work of one event
//!
//! [`Fence::submit`], [`Fence::on_device`] and [`Fence::on_timer`] take, in [steps](Fence::steps), at most
//!
//! ```text
//! 5 W + W (2 + S/2)  each block of a request outstanding goes on, or is looked at for each block that is unlocked
//! 2 D                as many I/Os are dispatched as the scheduler allows at once, and as many handed out
//! 18 F + 32          blocks that are missing from the free list are sought, 16 looked at for each
//! 6 C + 128          a commit writes the entries of what has changed, and repeats as many others
//! ```
//!
//! where W are the cache blocks that requests outstanding touch, S the scratch blocks of a partition, D the devices'
//! depths or twice the largest batch, F the partition's target of free blocks, and C its blocks written or evicted since
//! the last commit began, about 63 + 3 (W + D + F). Neither the size of the cache nor the time that has passed is in it.
//! What is held until it is due (`paced`) is handed out when its time comes: at most the I/Os outstanding. When slots are
//! given anew, what is queued is looked at once.

use thiserror::Error;

use crate::cache::{self, CacheCounts, Image, Partition, Recovered, RecoveryError, Write};
use crate::config::{Backing, Config};
use crate::config_error::ConfigError;
use crate::ports::{NewIo, OutstandingIo, Owner, Ports};
use crate::scheduler::Scheduler;
use crate::schedulers::SchedulerConfig;
use crate::types::{
    Account, Completion, Data, Device, DeviceOp, DiskId, Effect, IoError, IoId, Op, Request, Time, UnknownIo,
};

/// Why a fence over a cache that has been used before cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StartError {
    /// The configuration does not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The cache does not fit the configuration.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// There is no cache to be recovered.
    #[error("the configuration has no cache: start it afresh")]
    NoCache,
}

/// The storage core.
pub struct Fence {
    config: Config,
    ports: Ports,
    cache: Vec<Partition>,
    damage: Vec<cache::Fault>,
}

impl Fence {
    /// A fence over devices as they are; a cache must have been [formatted](cache::format) and is empty.
    ///
    /// # Errors
    /// The configuration does not fit together.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let scheduler = Self::scheduler(&config);
        Self::with_scheduler(config, scheduler)
    }

    fn scheduler(config: &Config) -> Box<dyn Scheduler> {
        config.scheduler.scheduler([config.slow.depth, config.fast.depth], config.disks.len())
    }

    /// A fence with a scheduler of the caller's in place of [`Config::scheduler`].
    ///
    /// # Errors
    /// The configuration does not fit together.
    pub fn with_scheduler(config: Config, scheduler: Box<dyn Scheduler>) -> Result<Self, ConfigError> {
        config.validate()?;
        let cache = match &config.backing {
            Backing::Cached(cache) => Partition::all(&config, cache),
            Backing::Slow | Backing::Fast => Vec::new(),
        };
        Ok(Self { config, ports: Ports::new(scheduler), cache, damage: Vec::new() })
    }

    /// A fence over a cache that has been used before. The writes must be carried out in their order, each followed by a sync
    /// of the fast device, before anything is submitted; and the slow device must be synced, of which a process that was
    /// killed may have discarded what a power failure would bring back.
    ///
    /// # Errors
    /// The configuration does not fit together, or the cache does not fit it: nothing that is not yet on the slow device
    /// is given up.
    pub fn recover<L: AsRef<[u8]>>(
        config: Config,
        image: &Image<'_, L>,
    ) -> Result<(Self, Vec<Write>), StartError> {
        config.validate()?;
        let Backing::Cached(cache) = &config.backing else { return Err(StartError::NoCache) };
        let Recovered { partitions, writes, faults } = cache::recover(&config, cache, image)?;
        let ports = Ports::new(Self::scheduler(&config));
        Ok((Self { ports, cache: partitions, config, damage: faults }, writes))
    }

    /// Why some disks are not served: what was found in the partitions of the cache that have them. Every request to one of
    /// these fails, and nothing of it is changed.
    #[must_use]
    pub fn damage(&self) -> &[cache::Fault] {
        &self.damage
    }

    /// Whether a disk is among those.
    #[must_use]
    pub fn is_sealed(&self, disk: DiskId) -> bool {
        self.cache.len() > 1 && self.cache.get(disk.index()).is_some_and(Partition::is_sealed)
    }

    /// A guest asks. The answer comes as [`Effect::Complete`], exactly one a request.
    pub fn submit(&mut self, now: Time, request: Request) {
        match self.check(&request) {
            Err(error) => self.ports.refuse(request.id, error),
            Ok(()) => match self.partition(request.disk) {
                Some(partition) => self.cache[partition].submit(now, request, &mut self.ports),
                None => self.submit_direct(now, &request),
            },
        }
        self.dispatch(now);
    }

    /// A device has finished an I/O.
    ///
    /// # Errors
    /// The I/O is not outstanding; nothing has changed.
    pub fn on_device(&mut self, now: Time, completion: Completion) -> Result<(), UnknownIo> {
        let io = self.ports.io(completion.io).map(|io| (io.queued.device, io.queued.op));
        let owner = self.ports.completed(now, &completion)?;
        if let (Err(error), Some((Device::Slow, DeviceOp::Flush))) = (completion.result, io) {
            let ports = &mut self.ports;
            self.cache.iter_mut().for_each(|partition| partition.slow_sync_failed(now, error, ports));
        }
        if let Some(owner) = owner {
            self.hand_out(now, &completion, owner);
        }
        self.advance(now);
        Ok(())
    }

    /// A deadline may have passed. Harmless when none has.
    pub fn on_timer(&mut self, now: Time) {
        self.advance(now);
    }

    /// Hands out the completions whose time has come, and dispatches what the scheduler then allows.
    fn advance(&mut self, now: Time) {
        while let Some((completion, owner)) = self.ports.release(now) {
            self.hand_out(now, &completion, owner);
        }
        if self.ports.wakes(now) {
            self.cache.iter_mut().for_each(|partition| partition.retry(now, &mut self.ports));
        }
        self.dispatch(now);
    }

    fn dispatch(&mut self, now: Time) {
        let cache = &mut self.cache;
        self.ports.dispatch(now, |owner| match owner {
            Owner::Block { partition, op } => cache[partition as usize].prepare(op),
            Owner::Request(_) | Owner::Commit { .. } | Owner::WriteBackSync { .. } => 0,
        });
    }

    fn hand_out(&mut self, now: Time, completion: &Completion, owner: Owner) {
        match owner {
            Owner::Request(request) => self.ports.part_done(request, completion.result),
            Owner::Block { partition, .. }
            | Owner::Commit { partition }
            | Owner::WriteBackSync { partition } => {
                let Completion { result, data_crc, .. } = *completion;
                self.cache[partition as usize].on_io(now, owner, result, data_crc, &mut self.ports);
            }
        }
    }

    /// When [`Fence::on_timer`] wants to be called, if nothing happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.ports.next_deadline()
    }

    /// The next thing to do, in order; `None` when all is said.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.ports.effects.pop_front()
    }

    /// How many scratch blocks of 4 KiB the driver must keep for [`Data::Scratch`].
    #[must_use]
    pub fn scratch_blocks(&self) -> usize {
        match &self.config.backing {
            Backing::Cached(cache) => cache.scratch_blocks as usize * self.cache.len(),
            Backing::Slow | Backing::Fast => 0,
        }
    }

    /// The bytes of an I/O whose data is [`Data::Core`], from dispatch to completion.
    #[must_use]
    pub fn bytes(&self, io: IoId) -> Option<&[u8]> {
        match self.ports.io(io)? {
            OutstandingIo { owner: Owner::Commit { partition }, data: Data::Core, queued, .. } => {
                self.cache.get(*partition as usize)?.log_bytes(queued.offset_bytes, queued.len_bytes)
            }
            _ => None,
        }
    }

    /// Tells `each` the places, and how many bytes each has, of an I/O whose data is [`Data::Pieces`], in their order, from
    /// dispatch to completion. Places are [`Data::Guest`], [`Data::Scratch`], or [`Data::None`] for bytes that go nowhere.
    pub fn pieces(&self, io: IoId, each: impl FnMut(Data, u32)) {
        if let Some(OutstandingIo { owner: Owner::Block { partition, op }, data: Data::Pieces, .. }) =
            self.ports.io(io)
            && let Some(partition) = self.cache.get(*partition as usize)
        {
            partition.pieces(*op, each);
        }
    }

    /// Requests submitted and not yet answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.ports.outstanding()
    }

    /// Whether nothing is under way: no request, and nothing of the cache's own. Unless something is submitted, only a device
    /// that fails, and is tried again, changes that.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.ports.is_at_rest()
    }

    /// Steps taken so far: device I/Os queued, dispatched and handed out, parts of requests answered, operations that
    /// go on or are looked at because a block is free again, cache blocks looked at or moved, metadata entries written.
    /// Each costs a bounded time, so that what one event adds is its work; how much that is at most stands above.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.ports.steps
    }

    /// What the scheduler has kept of a disk so far: slots, credit, overruns and errors of predictions, or tokens. None from
    /// schedulers that keep nothing.
    #[must_use]
    pub fn account(&self, now: Time, disk: DiskId) -> Option<Account> {
        self.ports.account(now, disk)
    }

    /// How the blocks of each cache partition stand.
    pub fn cache_counts(&self) -> impl Iterator<Item = CacheCounts> {
        self.cache.iter().map(Partition::counts)
    }

    /// Bytes that a disk has written past the cache.
    #[must_use]
    pub fn bypassed_bytes(&self, disk: DiskId) -> u64 {
        self.partition(disk).map_or(0, |partition| self.cache[partition].bypassed_bytes(disk))
    }

    /// Whether a sync of the slow device has lost what some disk had written past the cache, and no flush has told yet.
    #[must_use]
    pub fn is_loss_untold(&self) -> bool {
        self.cache.iter().any(Partition::is_loss_untold)
    }

    /// A flush that failed was the driver's own, of which no guest hears: the next flush of the disk fails too, if it writes
    /// past the cache.
    pub fn flush_untold(&mut self, disk: DiskId, error: IoError) {
        if let Some(partition) = self.partition(disk) {
            self.cache[partition].flush_untold(disk, error);
        }
    }

    /// The partition that caches a disk.
    fn partition(&self, disk: DiskId) -> Option<usize> {
        let partition = if self.cache.len() > 1 { disk.index() } else { 0 };
        (partition < self.cache.len()).then_some(partition)
    }

    /// Memory of what is known of all cache blocks, in bytes.
    #[must_use]
    pub fn cache_memory_bytes(&self) -> usize {
        self.cache.iter().map(Partition::memory_bytes).sum()
    }

    fn check(&self, request: &Request) -> Result<(), IoError> {
        let disk = self.config.disks.get(request.disk.index()).ok_or(IoError::OutOfRange)?;
        if request.op == Op::Flush {
            return Ok(());
        }
        let end =
            request.offset_bytes.checked_add(u64::from(request.len_bytes)).ok_or(IoError::OutOfRange)?;
        let aligned = request.offset_bytes.is_multiple_of(512) && request.len_bytes.is_multiple_of(512);
        if request.len_bytes == 0 || !aligned || end > disk.size_bytes {
            return Err(IoError::OutOfRange);
        }
        if request.op != Op::Discard && request.len_bytes > self.config.max_request_bytes {
            return Err(IoError::TooLong);
        }
        Ok(())
    }

    /// The disk lives on one device: one I/O a request.
    fn submit_direct(&mut self, now: Time, request: &Request) {
        let index = self.ports.begin_request(request.id, 1);
        let (op, data) = match request.op {
            Op::Read => (DeviceOp::Read, Data::Guest { buffer: request.buffer, at_bytes: 0 }),
            Op::Write => (DeviceOp::Write, Data::Guest { buffer: request.buffer, at_bytes: 0 }),
            Op::Flush => (DeviceOp::Flush, Data::None),
            Op::Discard => (DeviceOp::Discard, Data::None),
        };
        let (offset_bytes, len_bytes) = match request.op {
            Op::Flush => (0, 0),
            _ => (
                self.config.disks[request.disk.index()].offset_bytes + request.offset_bytes,
                request.len_bytes,
            ),
        };
        let device = if self.config.backing == Backing::Fast { Device::Fast } else { Device::Slow };
        let owner = Owner::Request(index);
        let disk = request.disk;
        let io = NewIo { owner, disk, device, op, offset_bytes, len_bytes, data, wants_crc: false };
        self.ports.enqueue(now, io);
    }
}

/// Why a fence at work stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// The whole would not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no such disk.
    #[error("there is no disk {0}")]
    NoDisk(usize),
    /// What is in flight or in the cache may lie behind the new end, which could soon be a neighbour's.
    #[error("disk {disk} has {was} bytes: at work it can only grow")]
    Shrinks {
        /// The disk that would shrink.
        disk: usize,
        /// Its size.
        was: u64,
    },
    /// Another scheduler, or one that knows no such change.
    #[error("the scheduler at work cannot go over to that one")]
    Scheduler,
}

impl Fence {
    /// Gives a disk more room where it is: requests that come after this may use it. The caller has made sure that the
    /// room is on the device and holds nothing of others'.
    ///
    /// # Errors
    /// The room is another disk's or not on the device, or the disk would become smaller: nothing has changed.
    pub fn grow_disk(&mut self, disk: DiskId, size_bytes: u64) -> Result<(), ChangeError> {
        let mut disks = self.config.disks.clone();
        let grown = disks.get_mut(disk.index()).ok_or_else(|| ChangeError::NoDisk(disk.index()))?;
        if size_bytes < grown.size_bytes {
            return Err(ChangeError::Shrinks { disk: disk.index(), was: grown.size_bytes });
        }
        grown.size_bytes = size_bytes;
        let before = std::mem::replace(&mut self.config.disks, disks);
        if let Err(error) = self.config.validate() {
            self.config.disks = before;
            return Err(error.into());
        }
        Ok(())
    }

    /// Gives slots or shares anew, to slots and virtual devices respectively. What is queued stays queued; slots go by it
    /// from the next rotation on, virtual devices for what comes from now on.
    ///
    /// # Errors
    /// It does not fit with the disks, or the scheduler at work is of another kind: nothing has changed.
    pub fn reschedule(&mut self, now: Time, scheduler: &SchedulerConfig) -> Result<(), ChangeError> {
        scheduler.validate(self.config.disks.len())?;
        if *scheduler == self.config.scheduler {
            return Ok(());
        }
        if !self.ports.reconfigure(scheduler.settings()) {
            return Err(ChangeError::Scheduler);
        }
        self.config.scheduler = scheduler.clone();
        self.advance(now);
        Ok(())
    }
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod fence_tests;

#[cfg(test)]
mod change_tests;
