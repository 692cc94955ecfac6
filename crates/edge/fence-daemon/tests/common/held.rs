//! A device in memory whose I/Os stay in flight until they are released.

#![allow(clippy::cast_possible_truncation, missing_docs)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use virtbench_fence::{DeviceOp, Time};
use virtbench_fence_daemon::device::{Backend, Facts, Finished, Io};
use virtbench_fence_daemon::memory::{Segment, gather, scatter};
use virtbench_fence_daemon::ring::Ring;

struct Held {
    slot: u32,
    op: DeviceOp,
    at: usize,
    len: usize,
    segments: Vec<Segment>,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    held: Vec<Held>,
    finished: VecDeque<Finished>,
}

/// Clones are the same device.
#[derive(Clone)]
pub struct HeldBackend(Rc<RefCell<State>>);

impl HeldBackend {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Rc::new(RefCell::new(State { bytes, ..State::default() })))
    }

    pub fn in_flight(&self) -> usize {
        self.0.borrow().held.len()
    }

    /// Carries out the I/O at `index` of those in flight. Its data moves only now, whatever others have made of the memory.
    pub fn release(&self, index: usize) {
        let state = &mut *self.0.borrow_mut();
        let Held { slot, op, at, len, segments } = state.held.remove(index);
        match op {
            DeviceOp::Read => scatter(&state.bytes[at..at + len], &segments),
            DeviceOp::Write => gather(&segments, &mut state.bytes[at..at + len]),
            DeviceOp::Flush | DeviceOp::Discard => {}
        }
        state.finished.push_back(Finished { slot, result: Ok(()) });
    }

    /// What it holds.
    pub fn read(&self, at: u64, len: usize) -> Vec<u8> {
        self.0.borrow().bytes[at as usize..at as usize + len].to_vec()
    }
}

impl Backend for HeldBackend {
    fn facts(&self) -> Facts {
        Facts { size_bytes: self.0.borrow().bytes.len() as u64, block_bytes: 512, memory_alignment: 1 }
    }

    fn start(&mut self, _now: Time, io: &Io<'_>, _ring: &mut Ring) {
        let (slot, op, at, len) = (io.slot, io.op, io.offset_bytes as usize, io.len_bytes as usize);
        self.0.borrow_mut().held.push(Held { slot, op, at, len, segments: io.segments.to_vec() });
    }

    fn on_ring(&mut self, _now: Time, _slot: u32, _result: i32, _ring: &mut Ring) {}

    fn finished(&mut self) -> Option<Finished> {
        self.0.borrow_mut().finished.pop_front()
    }
}
