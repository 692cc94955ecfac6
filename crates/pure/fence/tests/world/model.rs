//! What a disk may hold: every write of every sector, and which of them an observer may still see.

use std::collections::{BTreeMap, BTreeSet};

/// One write of one sector. It took effect somewhere between `start` and `end`.
#[derive(Debug, Clone, Copy)]
struct Written {
    /// The request.
    id: u64,
    value: u64,
    start: u64,
    end: u64,
    /// It failed, or another value may be stored in place of this: it may have taken effect, or not.
    failed: bool,
}

impl Written {
    /// The only past of a sector.
    const fn settled(value: u64) -> Self {
        Self { id: 0, value, start: 0, end: 0, failed: false }
    }
}

/// One disk, sector by sector.
#[derive(Debug, Clone, Default)]
pub struct Model {
    sectors: BTreeMap<u64, Vec<Written>>,
    /// All that was ever written to it and has only one past by now.
    ever: BTreeMap<u64, BTreeSet<u64>>,
    /// The start of the latest flush that was answered.
    flushed: u64,
    /// When the process was killed last: what was answered before is there.
    killed: u64,
    /// Sectors that a failed sync of the slow device has lost, with the write, until a flush or the write itself fails.
    untold: Vec<(u64, u64)>,
}

const NEVER: u64 = u64::MAX;

impl Model {
    pub fn begin_write(&mut self, sector: u64, id: u64, value: u64, now: u64) {
        let writes = self.sectors.entry(sector).or_insert_with(|| vec![Written::settled(0)]);
        writes.push(Written { id, value, start: now, end: NEVER, failed: false });
    }

    /// A trim begins: until the next write the sector may hold zeroes, or whatever it held before.
    pub fn begin_trim(&mut self, sector: u64, id: u64, now: u64) {
        let writes = self.sectors.entry(sector).or_insert_with(|| vec![Written::settled(0)]);
        let ever = self.ever.entry(sector).or_default();
        ever.extend(writes.iter().map(|written| written.value).chain([0]));
        writes.extend(ever.iter().copied().map(|value| Written {
            id,
            value,
            start: now,
            end: NEVER,
            failed: true,
        }));
    }

    /// The memory of the write changed while it was in flight: it stores what was there before, or `value`.
    pub fn may_write(&mut self, sector: u64, id: u64, value: u64) {
        let writes = self.sectors.get_mut(&sector).unwrap();
        let Some(first) = writes.iter().find(|written| written.id == id).copied() else { return };
        if !writes.iter().any(|written| written.id == id && written.value == value) {
            writes.push(Written { value, failed: true, ..first });
        }
    }

    pub fn end_write(&mut self, sector: u64, id: u64, now: u64, failed: bool) {
        for written in self.sectors.get_mut(&sector).unwrap().iter_mut().filter(|written| written.id == id) {
            written.end = now;
            written.failed |= failed;
        }
        self.untold.retain(|(_, lost)| !failed || *lost != id);
    }

    /// A sync of the slow device has lost what no cache has.
    pub fn lose(&mut self, sector: u64, value: u64) {
        let writes = self.sectors.get_mut(&sector).into_iter().flatten();
        for written in writes.filter(|written| written.value == value && written.id > 0) {
            written.failed = true;
            self.untold.push((sector, written.id));
        }
    }

    /// Sectors that are lost though their write was answered before `began`.
    fn is_untold(&self, (sector, id): (u64, u64), began: u64) -> bool {
        let writes = self.sectors.get(&sector).into_iter().flatten();
        writes.filter(|written| written.id == id).any(|written| written.end < began)
    }

    /// A flush that came at `began` was answered well: nothing that was written before is lost.
    pub fn flushed(&mut self, began: u64) {
        self.flushed = self.flushed.max(began);
        let lost = self.untold.iter().find(|lost| self.is_untold(**lost, began));
        assert!(lost.is_none(), "sector and write {lost:?} are lost, and a flush says they are stable");
    }

    /// A flush that came at `began` has failed: the guest knows of what it wrote before.
    pub fn flush_failed(&mut self, began: u64) {
        let mut untold = std::mem::take(&mut self.untold);
        untold.retain(|lost| !self.is_untold(*lost, began));
        self.untold = untold;
    }

    /// A read that began at `began` found `value`.
    pub fn check_read(&self, sector: u64, value: u64, began: u64) -> Result<(), String> {
        self.check(sector, value, began)
    }

    /// After a crash `value` was found: it is the sector's only past from now on.
    pub fn check_crash(&mut self, sector: u64, value: u64) -> Result<(), String> {
        self.check(sector, value, self.flushed.max(self.killed))?;
        self.pin(sector, value);
        Ok(())
    }

    /// All is stable and no write is in flight: the sector holds `value` until another is written.
    pub fn check_settled(&mut self, sector: u64, value: u64, began: u64) -> Result<(), String> {
        self.check(sector, value, began)?;
        self.pin(sector, value);
        Ok(())
    }

    fn pin(&mut self, sector: u64, value: u64) {
        if let Some(writes) = self.sectors.get_mut(&sector) {
            self.ever.entry(sector).or_default().extend(writes.iter().map(|written| written.value));
            *writes = vec![Written::settled(value)];
        }
    }

    /// Power has failed: what no flush made sure may have taken effect, or not.
    pub fn fail_power(&mut self, now: u64) {
        self.killed = 0;
        self.untold.clear();
        for written in self.sectors.values_mut().flatten() {
            if written.end >= self.flushed && written.end > 0 {
                (written.end, written.failed) = (written.end.min(now), true);
            }
        }
    }

    /// The process was killed: what was not answered may have taken effect, or not.
    pub fn kill(&mut self, now: u64) {
        let mut unanswered = BTreeSet::new();
        for written in self.sectors.values_mut().flatten().filter(|written| written.end == NEVER) {
            (written.end, written.failed) = (now, true);
            unanswered.insert(written.id);
        }
        self.untold.retain(|(_, id)| !unanswered.contains(id));
        self.killed = now + 1;
    }

    pub fn after_crash(&mut self) {
        (self.flushed, self.killed) = (0, 0);
    }

    /// `value` must have been written, and not replaced for certain by a write that ended before `bound`.
    fn check(&self, sector: u64, value: u64, bound: u64) -> Result<(), String> {
        let Some(writes) = self.sectors.get(&sector) else {
            return if value == 0 {
                Ok(())
            } else {
                Err(format!("sector {sector}: {value:#x} was never written"))
            };
        };
        let mut refused = format!("sector {sector}: {value:#x} was never written there: {writes:x?}");
        for found in writes.iter().filter(|written| written.value == value) {
            match writes.iter().find(|other| !other.failed && other.start > found.end && other.end < bound) {
                None => return Ok(()),
                Some(newer) => {
                    refused = format!("sector {sector}: {found:x?} though {newer:x?} was sure by {bound}");
                }
            }
        }
        Err(refused)
    }
}
