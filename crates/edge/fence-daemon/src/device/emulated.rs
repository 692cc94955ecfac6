//! A hard disk's or a solid-state drive's behaviour over a file, in real time.
//!
//! The simulator's own [`Station`] says how long each command takes and which comes next; here its time is the
//! daemon's. The file's part of a command is begun at once and has as long as the model takes. The model's time goes on
//! from where a command ended, not from when that was noticed, so that late timers do not add up.
//!
//! Survivable: whatever the file survives. A flush syncs the file, unless `sync=off` was asked for: then a command is
//! on the medium when it completes, as in the models, which the daemon's death does not change but the host's does.

use std::collections::VecDeque;

use virtbench_fence::{DeviceOp, IoError, Time};
use virtbench_fence_sim::disk::{Command, Hdd, Model, Order, Ssd, Station};

use super::{Backend, Facts, FileBackend, Finished, Io};
use crate::config::{Emulated, EmulatedKind};
use crate::ring::Ring;

/// A model that has the last word on when a file's I/O is over.
pub struct EmulatedBackend {
    file: FileBackend,
    station: Station<u32>,
    sync: bool,
    /// When the command that is served is done, in the model's time.
    due: Option<Time>,
    /// Served by the model, in that order.
    served: VecDeque<u32>,
    /// By slot: how the file's part of it went, once it has.
    moved: Vec<Option<Result<(), IoError>>>,
    finished: VecDeque<Finished>,
}

impl EmulatedBackend {
    /// The disk that `emulated` describes over `file`; idle, its head at the outer edge.
    #[must_use]
    pub fn new(file: FileBackend, emulated: &Emulated) -> Self {
        let (model, order) = match emulated.kind {
            EmulatedKind::Hdd { model, order, .. } => {
                let model = emulated.hdd(file.facts().size_bytes).unwrap_or(model);
                (Model::Hdd(Hdd::new(model, emulated.seed)), order)
            }
            EmulatedKind::Ssd(model) => (Model::Ssd(Ssd::new(model, emulated.seed)), Order::Arrival),
        };
        Self {
            file,
            station: Station::new(model, order),
            sync: emulated.sync,
            due: None,
            served: VecDeque::new(),
            moved: Vec::new(),
            finished: VecDeque::new(),
        }
    }

    /// Lets the model serve until `now`.
    fn serve(&mut self, now: Time) {
        while let Some(due) = self.due.filter(|due| *due <= now) {
            let Some((slot, next)) = self.station.done() else { break };
            self.served.push_back(slot);
            self.due = next.map(|ns| due.after(ns));
        }
        self.release();
    }

    /// What the model has served is over once the file has done its part, one after the other.
    fn release(&mut self) {
        while let Some(&slot) = self.served.front()
            && let Some(result) = self.moved.get_mut(slot as usize).and_then(Option::take)
        {
            self.served.pop_front();
            self.finished.push_back(Finished { slot, result });
        }
    }

    fn moved(&mut self, Finished { slot, result }: Finished) {
        let index = slot as usize;
        if self.moved.len() <= index {
            self.moved.resize(index + 1, None);
        }
        self.moved[index] = Some(result);
    }

    fn take_moved(&mut self) {
        while let Some(finished) = self.file.finished() {
            self.moved(finished);
        }
    }
}

impl Backend for EmulatedBackend {
    fn facts(&self) -> Facts {
        self.file.facts()
    }

    fn start(&mut self, now: Time, io: &Io<'_>, ring: &mut Ring) {
        // Before it comes in: what is over by now leaves the device idle.
        self.serve(now);
        if io.op == DeviceOp::Flush && !self.sync {
            self.moved(Finished { slot: io.slot, result: Ok(()) });
        } else {
            self.file.start(now, io, ring);
            self.take_moved();
        }
        let command = Command { tag: io.slot, offset: io.offset_bytes, len: io.len_bytes, op: io.op };
        if let Some(ns) = self.station.take_in(command) {
            self.due = Some(now.after(ns));
        }
    }

    fn on_ring(&mut self, now: Time, slot: u32, result: i32, ring: &mut Ring) {
        self.file.on_ring(now, slot, result, ring);
        self.take_moved();
        self.release();
    }

    fn finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    fn on_timer(&mut self, now: Time, _ring: &mut Ring) {
        self.serve(now);
    }
}

#[cfg(test)]
#[path = "emulated_tests.rs"]
mod tests;
