//! A device that does nothing, at once: what the daemon itself costs.

use std::collections::VecDeque;

use virtbench_fence::Time;

use super::{Backend, Facts, Finished, Io};
use crate::ring::Ring;

/// Reads leave memory as it is ([`Backend::leaves_memory`]), writes go nowhere.
#[derive(Debug)]
pub struct NullBackend {
    size_bytes: u64,
    finished: VecDeque<Finished>,
}

impl NullBackend {
    /// A device of so many bytes.
    #[must_use]
    pub const fn new(size_bytes: u64) -> Self {
        Self { size_bytes, finished: VecDeque::new() }
    }
}

impl Backend for NullBackend {
    fn facts(&self) -> Facts {
        Facts { size_bytes: self.size_bytes, block_bytes: 512, memory_alignment: 1 }
    }

    fn start(&mut self, _now: Time, io: &Io<'_>, _ring: &mut Ring) {
        self.finished.push_back(Finished { slot: io.slot, result: Ok(()) });
    }

    fn on_ring(&mut self, _now: Time, _slot: u32, _result: i32, _ring: &mut Ring) {}

    fn leaves_memory(&self) -> bool {
        true
    }

    fn finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }
}
