//! A device at work: its model, what it holds, and the one command that it serves.

use virtbench_fence::{DeviceIo, DeviceOp, IoId};

use crate::disk::{Command, Hdd, Order, Queue, Ssd};

/// Time of a flush or discard, nanoseconds. The models' writes are on the medium when they complete,
/// so that nothing is left to flush; it costs the command alone.
const CONTROL_NS: u64 = 1_000;

/// Which model serves.
#[derive(Debug)]
pub(crate) enum Model {
    /// A hard disk.
    Hdd(Hdd),
    /// A solid-state drive.
    Ssd(Ssd),
}

/// A device that serves one command at a time.
#[derive(Debug)]
pub(crate) struct Station {
    model: Model,
    queue: Queue,
    /// By the I/O's slot: its name and whether it moves data.
    ios: Vec<Option<(IoId, bool)>>,
    serving: Option<IoId>,
    busy_ns: u64,
    /// Every command takes [`CONTROL_NS`].
    pub(crate) hurried: bool,
}

impl Station {
    pub(crate) fn new(model: Model, order: Order) -> Self {
        Self { model, queue: Queue::new(order), ios: Vec::new(), serving: None, busy_ns: 0, hurried: false }
    }

    /// Nanoseconds of service begun so far.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// What it does counts from now.
    pub(crate) fn begin_time(&mut self) {
        self.hurried = false;
        self.busy_ns = 0;
    }

    /// Takes an I/O in. Gives the time after which it is done, if the device was idle.
    #[inline]
    pub(crate) fn take_in(&mut self, io: &DeviceIo) -> Option<u64> {
        let slot = io.id.slot();
        let index = slot as usize;
        if self.ios.len() <= index {
            self.ios.resize(index + 1, None);
        }
        let moves = matches!(io.op, DeviceOp::Read | DeviceOp::Write);
        self.ios[index] = Some((io.id, moves));
        let write = io.op == DeviceOp::Write;
        self.queue.push(Command { tag: u64::from(slot), offset: io.offset_bytes, len: io.len_bytes, write });
        if self.serving.is_some() { None } else { self.begin() }
    }

    /// The command served is done: its name, and the time after which the next one is.
    #[inline]
    pub(crate) fn done(&mut self) -> Option<(IoId, Option<u64>)> {
        let io = self.serving.take()?;
        Some((io, self.begin()))
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // a tag is a slot
    fn begin(&mut self) -> Option<u64> {
        let head = match &self.model {
            Model::Hdd(hdd) => hdd.head(),
            Model::Ssd(_) => 0,
        };
        let command = self.queue.pop(head)?;
        let (io, moves) = self.ios[command.tag as usize].take()?;
        self.serving = Some(io);
        let ns = match &mut self.model {
            _ if !moves || self.hurried => CONTROL_NS,
            Model::Hdd(hdd) => hdd.service_ns(command.offset, u64::from(command.len)),
            Model::Ssd(ssd) => ssd.service_ns(command.write, u64::from(command.len)),
        };
        self.busy_ns += ns;
        Some(ns)
    }
}
