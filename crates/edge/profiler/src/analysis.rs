//! Events to figures: whose operations they were, how large, where, how long, how many at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{EventKind, SECTOR_BYTES, TraceEvent};

/// The most operations in flight that are kept track of; those beyond have no response time.
const MOST_PENDING: usize = 1 << 20;
/// The most threads that are told apart.
const MOST_THREADS: usize = 1 << 16;
/// The most sizes that are told apart; those beyond are counted under the nearest below.
const MOST_SIZES: usize = 1 << 12;
/// The depth that a worker does not exceed for this share of the time in which it has I/O in flight: a
/// read-ahead now and then makes no asynchronous application.
const DEPTH_QUANTILE: f64 = 0.95;

/// Whose a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The application's.
    Ours,
    /// The kernel's own: write-back and journals.
    Kernel,
    /// Somebody else's.
    Other,
}

/// What events leave open, to be asked of the machine.
pub(crate) trait Machine {
    /// Whose a thread is that was not seen to be made.
    fn whose(&mut self, thread: u32) -> Whose;
    /// The whole disk under a device; none where it lies on other devices, whose events are seen too.
    fn disk(&mut self, device: (u32, u32)) -> Option<(u32, u32)>;
}

/// Operations counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counted {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Operations by size, in bytes.
    pub sizes: BTreeMap<u64, u64>,
    /// Operations that went on where the same thread's last one on the disk ended, and others.
    pub sequential: u64,
    pub random: u64,
}

impl Counted {
    fn add(&mut self, read: bool, bytes: u64, sequential: Option<bool>) {
        if read {
            self.reads += 1;
            self.read_bytes += bytes;
        } else {
            self.writes += 1;
            self.written_bytes += bytes;
        }
        let size = if self.sizes.len() < MOST_SIZES || self.sizes.contains_key(&bytes) {
            bytes
        } else {
            self.sizes.range(..=bytes).next_back().map_or(bytes, |(size, _)| *size)
        };
        *self.sizes.entry(size).or_default() += 1;
        match sequential {
            Some(true) => self.sequential += 1,
            Some(false) => self.random += 1,
            None => {}
        }
    }

    pub(crate) fn operations(&self) -> u64 {
        self.reads + self.writes
    }
}

#[derive(Debug, Default)]
struct Thread {
    ends: BTreeMap<(u32, u32), u64>,
    outstanding: u32,
    changed_s: f64,
    operations: u64,
    /// Seconds spent with so many operations in flight.
    at_depth: BTreeMap<u32, f64>,
    idle_s: f64,
    idles: u64,
}

impl Thread {
    /// Takes note of the time until now, and of one operation more or less.
    fn change(&mut self, now_s: f64, counting: bool, begins: bool) {
        let spent = (now_s - self.changed_s).max(0.0);
        if counting && self.changed_s > 0.0 {
            if self.outstanding > 0 {
                *self.at_depth.entry(self.outstanding).or_default() += spent;
            } else if begins {
                self.idle_s += spent;
                self.idles += 1;
            }
        }
        self.changed_s = now_s;
        self.outstanding = if begins { self.outstanding + 1 } else { self.outstanding.saturating_sub(1) };
    }
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    at_s: f64,
    thread: u32,
    sectors: u64,
}

/// What the events come to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    /// Operations that the application's own threads asked for.
    pub own: Counted,
    /// Those of the kernel's threads, whomever they are for.
    pub kernel: Counted,
    /// Threads that asked for more than a hundredth of the operations.
    pub workers: u32,
    /// Mean response time, in seconds, and over how many operations.
    pub response_s: Option<f64>,
    pub responses: u64,
    /// Sum of all response times, in seconds: divided by the time it is the mean number in flight.
    pub busy_s: f64,
    /// Operations that a worker has in flight, at most for 95 % of the time in which it has any.
    pub depth_per_worker: Option<u32>,
    /// Mean time that a worker had none in flight between two, in seconds.
    pub think_s: Option<f64>,
    /// Disks that were used.
    pub disks: BTreeSet<(u32, u32)>,
    /// Events that nobody read in time.
    pub lost: u64,
}

/// Takes in events one after the other.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    members: BTreeSet<u32>,
    others: BTreeMap<u32, Whose>,
    threads: BTreeMap<u32, Thread>,
    pending: BTreeMap<((u32, u32), u64), Pending>,
    /// Only what begins at this time or later counts, in seconds.
    pub from_s: f64,
    /// And what begins before this.
    pub until_s: Option<f64>,
    summary: Summary,
    response_s: f64,
}

impl Analysis {
    /// These threads are the application's.
    pub(crate) fn include(&mut self, threads: impl IntoIterator<Item = u32>) {
        for thread in threads {
            if self.members.len() < MOST_THREADS {
                self.members.insert(thread);
                self.others.remove(&thread);
            }
        }
    }

    /// Takes in an event.
    pub(crate) fn take(&mut self, event: TraceEvent, machine: &mut impl Machine) {
        match event.kind {
            EventKind::Lost { events } => self.summary.lost = self.summary.lost.saturating_add(events),
            EventKind::Forked { parent, child } => {
                if self.members.contains(&parent) {
                    self.include([child]);
                } else {
                    // The number may have been somebody else's before.
                    self.others.remove(&child);
                }
            }
            EventKind::Queued { device, read, sector, sectors } => {
                self.queued(event, device, (read, sector, sectors), machine);
            }
            EventKind::Completed { device, sector, sectors } => {
                if let Some(disk) = machine.disk(device) {
                    self.completed(event.at_s, disk, sector, sectors);
                }
            }
        }
    }

    fn whose(&mut self, thread: u32, machine: &mut impl Machine) -> Whose {
        if self.members.contains(&thread) {
            return Whose::Ours;
        }
        if let Some(known) = self.others.get(&thread) {
            return *known;
        }
        let whose = machine.whose(thread);
        if whose == Whose::Ours {
            self.include([thread]);
        } else if self.others.len() < MOST_THREADS {
            self.others.insert(thread, whose);
        }
        whose
    }

    fn counts(&self, at_s: f64) -> bool {
        at_s >= self.from_s && self.until_s.is_none_or(|until_s| at_s < until_s)
    }

    fn queued(
        &mut self,
        event: TraceEvent,
        device: (u32, u32),
        (read, sector, sectors): (bool, u64, u64),
        machine: &mut impl Machine,
    ) {
        let whose = self.whose(event.thread, machine);
        if whose == Whose::Other {
            return;
        }
        let Some(disk) = machine.disk(device) else { return };
        let counting = self.counts(event.at_s);
        let thread = self.threads.entry(event.thread).or_default();
        let end = thread.ends.insert(disk, sector.saturating_add(sectors));
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        let sequential = end.map(|end| end == sector);
        if whose == Whose::Kernel {
            if counting {
                self.summary.kernel.add(read, bytes, sequential);
            }
            return;
        }
        thread.change(event.at_s, counting, true);
        if counting {
            thread.operations += 1;
            self.summary.own.add(read, bytes, sequential);
            self.summary.disks.insert(disk);
        }
        if self.pending.len() < MOST_PENDING {
            let pending = Pending { at_s: event.at_s, thread: event.thread, sectors };
            if let Some(replaced) = self.pending.insert((disk, sector), pending) {
                self.ended(event.at_s, replaced, false);
            }
        }
    }

    /// A request may hold several operations, and an operation may be completed by several requests: its
    /// end counts.
    fn completed(&mut self, at_s: f64, disk: (u32, u32), sector: u64, sectors: u64) {
        let end = sector.saturating_add(sectors);
        let within: Vec<u64> = self
            .pending
            .range((disk, 0)..(disk, end))
            .rev()
            // Operations do not overlap, so that the first that ends before this request ends the search.
            .take_while(|((_, start), pending)| start + pending.sectors > sector)
            .filter(|((_, start), pending)| start + pending.sectors <= end)
            .map(|((_, start), _)| *start)
            .collect();
        for start in within {
            if let Some(pending) = self.pending.remove(&(disk, start)) {
                self.ended(at_s, pending, true);
            }
        }
    }

    fn ended(&mut self, at_s: f64, pending: Pending, measured: bool) {
        let counting = self.counts(pending.at_s);
        if let Some(thread) = self.threads.get_mut(&pending.thread) {
            thread.change(at_s, counting, false);
        }
        if counting && measured {
            self.response_s += (at_s - pending.at_s).max(0.0);
            self.summary.responses += 1;
        }
    }

    /// What it comes to.
    pub(crate) fn finish(mut self) -> Summary {
        let operations = self.summary.own.operations();
        let workers = || {
            self.threads
                .iter()
                .filter(|(id, thread)| self.members.contains(id) && thread.operations * 100 > operations)
                .map(|(_, thread)| thread)
        };
        self.summary.workers = u32::try_from(workers().count()).unwrap_or(u32::MAX);
        let mut at_depth: BTreeMap<u32, f64> = BTreeMap::new();
        for (depth, seconds) in workers().flat_map(|thread| &thread.at_depth) {
            *at_depth.entry(*depth).or_default() += seconds;
        }
        self.summary.depth_per_worker = quantile(&at_depth, DEPTH_QUANTILE);
        let (idle_s, idles) = workers()
            .fold((0.0, 0), |(seconds, count), thread| (seconds + thread.idle_s, count + thread.idles));
        self.summary.think_s = (idles > 0).then(|| idle_s / idles as f64);
        let responses = self.summary.responses;
        self.summary.response_s = (responses > 0).then(|| self.response_s / responses as f64);
        self.summary.busy_s = self.summary.response_s.unwrap_or(0.0) * operations as f64;
        self.summary
    }
}

/// The depth that is not exceeded for a share of the time.
fn quantile(at_depth: &BTreeMap<u32, f64>, share: f64) -> Option<u32> {
    let all: f64 = at_depth.values().sum();
    let mut so_far = 0.0;
    at_depth
        .iter()
        .find(|(_, seconds)| {
            so_far += **seconds;
            so_far >= share * all
        })
        .map(|(depth, _)| *depth)
}

#[cfg(test)]
#[path = "analysis_tests.rs"]
mod tests;
