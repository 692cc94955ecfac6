//! Faults before a device: of all I/Os, or of one virtual disk's alone.
//!
//! They strike what is served. What is read and written before serving begins, labels and the cache's metadata, is as
//! the device has it.

use std::collections::{BTreeMap, VecDeque};

use virtbench_fence::{Device, DeviceOp, IoError, Time};
use virtbench_units::Random;
use virtbench_workload::{FaultSpec, Verdict};

use super::{Backend, Facts, Finished, Io};
use crate::config::DiskTable;
use crate::ring::Ring;

/// Of the faults' chance, different for the two devices.
const SEED: u64 = 0x6661_756c_7479;

/// A device whose I/Os suffer faults.
pub struct FaultyBackend {
    inner: Box<dyn Backend>,
    device: Option<FaultSpec>,
    disks: Vec<Option<FaultSpec>>,
    random: Random,
    /// By slot: what is to happen when the device is done with it.
    marks: Vec<Option<Verdict>>,
    /// I/Os that are over and come late.
    held: BTreeMap<(Time, u32), Finished>,
    finished: VecDeque<Finished>,
    now: Time,
}

impl FaultyBackend {
    /// Puts the configured faults before a device; without any it stays as it is.
    #[must_use]
    pub fn before(
        inner: Box<dyn Backend>,
        device: Device,
        faults: Option<&FaultSpec>,
        disks: &[DiskTable],
    ) -> Box<dyn Backend> {
        let disks: Vec<Option<FaultSpec>> = disks.iter().map(|disk| disk.fault.clone()).collect();
        if faults.is_none() && disks.iter().all(Option::is_none) {
            return inner;
        }
        Box::new(Self {
            inner,
            device: faults.cloned(),
            disks,
            random: Random::new(SEED + device.index() as u64),
            marks: Vec::new(),
            held: BTreeMap::new(),
            finished: VecDeque::new(),
            now: Time::ZERO,
        })
    }

    fn strike(&mut self, io: &Io<'_>) -> Option<Verdict> {
        let own = self.disks.get(io.disk.index()).and_then(Option::as_ref);
        let specs = own.into_iter().chain(&self.device);
        let random = &mut self.random;
        let verdict = specs.map(|spec| spec.strike(random)).find(Option::is_some).flatten()?;
        (verdict != Verdict::Full || io.op == DeviceOp::Write).then_some(verdict)
    }

    fn take(&mut self) {
        while let Some(finished) = self.inner.finished() {
            let slot = finished.slot;
            match self.marks.get_mut(slot as usize).and_then(Option::take) {
                // It moved less than it should, which is an error of the device.
                Some(Verdict::Halve) => {
                    let result = finished.result.and(Err(IoError::Device(libc::EIO)));
                    self.finished.push_back(Finished { slot, result });
                }
                Some(Verdict::Delay(ns)) => drop(self.held.insert((self.now.after(ns), slot), finished)),
                _ => self.finished.push_back(finished),
            }
        }
    }

    fn release(&mut self) {
        while let Some(first) = self.held.first_entry().filter(|entry| entry.key().0 <= self.now) {
            self.finished.push_back(first.remove());
        }
    }
}

impl Backend for FaultyBackend {
    fn facts(&self) -> Facts {
        self.inner.facts()
    }

    fn start(&mut self, now: Time, io: &Io<'_>, ring: &mut Ring) {
        self.now = now;
        let verdict = self.strike(io);
        let fails = |errno| Finished { slot: io.slot, result: Err(IoError::Device(errno)) };
        match verdict {
            Some(Verdict::Fail(errno)) => self.finished.push_back(fails(errno)),
            Some(Verdict::Full) => self.finished.push_back(fails(libc::ENOSPC)),
            Some(Verdict::Swallow) => {}
            Some(Verdict::Halve | Verdict::Delay(_)) | None => {
                let index = io.slot as usize;
                if self.marks.len() <= index {
                    self.marks.resize(index + 1, None);
                }
                self.marks[index] = verdict;
                self.inner.start(now, io, ring);
            }
        }
    }

    fn on_ring(&mut self, now: Time, slot: u32, result: i32, ring: &mut Ring) {
        self.now = now;
        self.inner.on_ring(now, slot, result, ring);
    }

    fn finished(&mut self) -> Option<Finished> {
        self.take();
        self.finished.pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        let held = self.held.first_key_value().map(|(&(due, _), _)| due);
        held.into_iter().chain(self.inner.next_deadline()).min()
    }

    fn on_timer(&mut self, now: Time, ring: &mut Ring) {
        self.now = now;
        if self.inner.next_deadline().is_some_and(|due| due <= now) {
            self.inner.on_timer(now, ring);
        }
        self.release();
    }
}
