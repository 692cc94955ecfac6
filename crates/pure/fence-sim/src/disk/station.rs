//! A device at work: its model, what it holds, and the one command that it serves.

use virtbench_fence::DeviceOp;

use super::{Command, Hdd, Order, Queue, Ssd};

/// Time of a flush or discard, nanoseconds. The models' writes are on the medium when they complete,
/// so that nothing is left to flush; it costs the command alone.
pub const CONTROL_NS: u64 = 1_000;

/// Which model serves.
#[derive(Debug, Clone)]
pub enum Model {
    /// A hard disk.
    Hdd(Hdd),
    /// A solid-state drive.
    Ssd(Ssd),
}

/// A device that serves one command at a time. It knows no clock: it says how long a command takes, and is told when
/// that time is over.
#[derive(Debug, Clone)]
pub struct Station<T> {
    model: Model,
    queue: Queue<T>,
    /// The tag of the command that is served.
    serving: Option<T>,
    busy_ns: u64,
    /// Every command takes [`CONTROL_NS`].
    pub(crate) hurried: bool,
}

impl<T: Copy> Station<T> {
    /// An idle device.
    #[must_use]
    pub fn new(model: Model, order: Order) -> Self {
        Self { model, queue: Queue::new(order), serving: None, busy_ns: 0, hurried: false }
    }

    /// Nanoseconds of service begun so far.
    #[must_use]
    pub const fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// What it does counts from now.
    pub(crate) fn begin_time(&mut self) {
        self.hurried = false;
        self.busy_ns = 0;
    }

    /// Takes a command in. Gives the time after which it is done, in nanoseconds, if the device was idle.
    #[inline]
    pub fn take_in(&mut self, command: Command<T>) -> Option<u64> {
        self.queue.push(command);
        if self.serving.is_some() { None } else { self.begin() }
    }

    /// The command served is done: its tag, and the time after which the next one is, in nanoseconds.
    #[inline]
    pub fn done(&mut self) -> Option<(T, Option<u64>)> {
        let tag = self.serving.take()?;
        Some((tag, self.begin()))
    }

    #[inline]
    fn begin(&mut self) -> Option<u64> {
        let head = match &self.model {
            Model::Hdd(hdd) => hdd.head(),
            Model::Ssd(_) => 0,
        };
        let Command { tag, op, offset, len } = self.queue.pop(head)?;
        self.serving = Some(tag);
        let moves = matches!(op, DeviceOp::Read | DeviceOp::Write);
        let ns = match &mut self.model {
            _ if !moves || self.hurried => CONTROL_NS,
            Model::Hdd(hdd) => hdd.service_ns(offset, u64::from(len)),
            Model::Ssd(ssd) => ssd.service_ns(op == DeviceOp::Write, u64::from(len)),
        };
        self.busy_ns += ns;
        Some(ns)
    }
}
