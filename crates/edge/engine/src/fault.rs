//! The layer of faults between a worker and its backend.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use virtbench_units::Random;
use virtbench_workload::{Direction, FaultSpec, Op, Verdict};

use crate::backend::{Backend, Completion};
use crate::clock::{monotonic_ns, sleep_until};
use crate::system::{NO_SPACE, injected};

/// The longest sleep before the worker looks at its stop flag, in nanoseconds.
const HEARTBEAT_NS: u64 = 50_000_000;

/// A backend whose operations suffer faults.
pub(crate) struct Faulty<B> {
    inner: B,
    spec: FaultSpec,
    random: Random,
    /// What is to happen when the inner backend completes a slot's operation.
    marks: Vec<Option<Verdict>>,
    /// Operations that the inner backend has.
    under_way: usize,
    /// Completions that are held back: when they are due, slot, result.
    held: BinaryHeap<Reverse<(u64, u32, i32)>>,
    failed: Vec<Completion>,
    inner_completions: Vec<Completion>,
}

impl<B: Backend> Faulty<B> {
    /// Puts the faults, drawn from `seed`, before a backend of `slots` operations.
    pub(crate) fn new(inner: B, spec: FaultSpec, slots: u32, seed: u64) -> Self {
        Self {
            inner,
            spec,
            random: Random::new(seed),
            marks: vec![None; slots as usize],
            under_way: 0,
            held: BinaryHeap::new(),
            failed: Vec::new(),
            inner_completions: Vec::new(),
        }
    }

    /// Takes what the inner backend completed.
    fn take(&mut self, completions: &mut Vec<Completion>) {
        self.under_way -= self.inner_completions.len();
        for Completion { slot, result } in self.inner_completions.drain(..) {
            match self.marks[slot as usize].take() {
                Some(Verdict::Halve) => completions.push(Completion { slot, result: result / 2 }),
                Some(Verdict::Delay(ns)) => self.held.push(Reverse((monotonic_ns() + ns, slot, result))),
                _ => completions.push(Completion { slot, result }),
            }
        }
    }

    /// Lets go what is due.
    fn release(&mut self, completions: &mut Vec<Completion>) {
        let now_ns = if self.held.is_empty() { 0 } else { monotonic_ns() };
        while let Some(Reverse((due_ns, slot, result))) = self.held.peek().copied() {
            if due_ns > now_ns {
                break;
            }
            self.held.pop();
            completions.push(Completion { slot, result });
        }
    }
}

impl<B: Backend> Backend for Faulty<B> {
    const BLOCKS: bool = B::BLOCKS;

    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        let verdict = self.spec.strike(&mut self.random);
        match verdict {
            Some(Verdict::Fail(errno)) => self.failed.push(Completion { slot, result: -injected(errno) }),
            Some(Verdict::Full) if op.direction == Direction::Write => {
                self.failed.push(Completion { slot, result: -NO_SPACE });
            }
            Some(Verdict::Swallow) => {}
            Some(Verdict::Halve | Verdict::Delay(_) | Verdict::Full) | None => {
                self.marks[slot as usize] = verdict;
                self.under_way += 1;
                self.inner.queue(slot, op, buffer);
            }
        }
    }

    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        completions.append(&mut self.failed);
        self.release(completions);
        let due_ns = self.held.peek().map(|Reverse((due_ns, ..))| *due_ns);
        let until_ns = match completions.is_empty() {
            true => due_ns.into_iter().chain(until_ns).min(),
            false => Some(monotonic_ns()),
        };
        if self.under_way > 0 {
            self.inner.drive(until_ns, &mut self.inner_completions)?;
            self.take(completions);
        } else if completions.is_empty() {
            let heartbeat_ns = monotonic_ns() + HEARTBEAT_NS;
            sleep_until(until_ns.map_or(heartbeat_ns, |until_ns| until_ns.min(heartbeat_ns)));
        }
        self.release(completions);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Null;

    const OP: Op = Op { direction: Direction::Read, offset: 0, len: 4096, line: 0 };

    fn layer(text: &str) -> Faulty<Null> {
        Faulty::new(Null::default(), text.parse().unwrap(), 8, 1)
    }

    fn results(layer: &mut Faulty<Null>, until_ns: Option<u64>) -> Vec<i32> {
        let mut completions = Vec::new();
        layer.drive(until_ns, &mut completions).unwrap();
        completions.iter().map(|completion| completion.result).collect()
    }

    #[test]
    fn each_fault_does_its_own() {
        for (text, expected) in [("eio=100%", -libc::EIO), ("short=100%", 2048), ("eio=0%", 4096)] {
            let mut layer = layer(text);
            (0..3).for_each(|slot| layer.queue(slot, OP, std::ptr::null_mut()));
            assert_eq!(results(&mut layer, None), [expected; 3], "{text}");
        }
        let mut layer = layer("full=100%");
        layer.queue(0, OP, std::ptr::null_mut());
        assert_eq!(results(&mut layer, None), [4096]);
        layer.queue(1, Op { direction: Direction::Write, ..OP }, std::ptr::null_mut());
        assert_eq!(results(&mut layer, None), [-libc::ENOSPC]);
    }

    #[test]
    fn a_delay_holds_the_completion_back_and_no_longer() {
        let mut layer = layer("delay=30ms@100%");
        let began_ns = monotonic_ns();
        layer.queue(0, OP, std::ptr::null_mut());
        assert_eq!(results(&mut layer, Some(began_ns + 1_000_000)), [0; 0]);
        while results(&mut layer, None).is_empty() {}
        assert!(monotonic_ns() - began_ns >= 30_000_000);
        assert!(layer.held.is_empty());
    }

    #[test]
    fn a_stall_never_completes_and_never_blocks() {
        let mut layer = layer("stall@100%");
        layer.queue(0, OP, std::ptr::null_mut());
        (0..3).for_each(|_| assert_eq!(results(&mut layer, None), [0; 0]));
    }
}
