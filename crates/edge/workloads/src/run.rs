//! Runs a workload, from an agreed moment on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use memmap2::MmapMut;
use virtbench_counters::{Disk, Instruments, LeaveOut, Look};
use virtbench_engine::{Control, monotonic_ns, process_cpu_ns};
use virtbench_record::{Interval, WorkloadOutcome};
use virtbench_workload::{Workload, WorkloadSpec};

use crate::ballast;
use crate::caches::{self, drop_caches};
use crate::command::Program;
use crate::cpu::Cpu;
use crate::file_workload::Files;
use crate::machine::{copied_bytes, steal_ns};
use crate::memory::Memory;
use crate::runner::{RunError, Runner, Sheet, Storage, Watch};
use crate::system::System;

/// How often a wish to stop is looked for while the start is awaited.
const STOP_INTERVAL_NS: u64 = 50_000_000;

impl Prepared {
    /// Runs the workload. Ramp-up begins when the monotonic clock shows `start_at_ns`, or now if that
    /// has passed; `on_measuring` is called with the clock when it is over. `control` is one for a
    /// single worker; a stop ends the workload within the time of an operation, and what was measured
    /// is kept.
    ///
    /// # Errors
    /// The workload cannot go on, or a thread cannot be started.
    pub fn run(
        &mut self,
        control: &Control,
        start_at_ns: u64,
        on_measuring: impl FnOnce(u64),
    ) -> Result<WorkloadOutcome, RunError> {
        let agreed_ns = start_at_ns.max(monotonic_ns()) + self.spec.ramp_ns;
        wait_until(agreed_ns - self.spec.ramp_ns, control);
        self.ramp_up(control, agreed_ns)?;
        let agreed_ns = self.warm_up(control, agreed_ns)?;
        let mut notes = self.notes.clone();
        let instruments = Instruments { functions: self.spec.sample, crossings: self.spec.count };
        let look = Look::new(instruments, LeaveOut::Nobody).of_disk(self.disk.clone());
        notes.extend(look.trouble());
        let (operations, bytes) = (control.counter(0), AtomicU64::new(0));
        let operations_before = operations.load(Ordering::Relaxed);
        let (cpu_before, steal_before) = (process_cpu_ns(), steal_ns());
        let seen_before = look.take(copied_bytes().unwrap_or(0));
        let begin_ns = monotonic_ns();
        on_measuring(begin_ns);
        let deadline_ns = begin_ns + self.spec.longest_ns();
        let watch = Watch::new(control, &operations, &bytes, deadline_ns);
        let mut sheet = Sheet::default();
        let (end, over) = mpsc::channel();
        let interval_ns = self.spec.interval_ns;
        let begun = ([operations_before, 0], begin_ns);
        let (runs, intervals) = thread::scope(|scope| {
            let counters = [&*operations, &bytes];
            let series = thread::Builder::new()
                .spawn_scoped(scope, move || record(counters, begun, agreed_ns, interval_ns, &over))
                .map_err(|source| RunError::resource("starting a thread", source))?;
            let runs = self.rounds(&watch, &mut sheet);
            drop(end);
            let intervals = series.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, RunError>((runs?, intervals))
        })?;
        let elapsed_ns = monotonic_ns() - begin_ns;
        let seen = look.take(copied_bytes().unwrap_or(0));
        let cpu = process_cpu_ns();
        let wanted = self.spec.time_ns.map_or(runs < self.spec.runs, |_| control.is_stopped());
        notes.extend_from_slice(sheet.notes());
        Ok(WorkloadOutcome {
            metrics: sheet.metrics(),
            runs,
            operations: operations.load(Ordering::Relaxed) - operations_before,
            bytes: bytes.into_inner(),
            latency_ns: sheet.latency().summary(),
            histogram: (sheet.latency().count() > 0)
                .then(|| sheet.latency().encode_histogram().ok())
                .flatten(),
            errors: sheet.error_kinds().values().sum(),
            error_kinds: sheet.error_kinds().clone(),
            elapsed_ns,
            interrupted: wanted,
            threads: self.runner.threads(),
            own_cpu_ns: [0, 1].map(|mode| cpu[mode].saturating_sub(cpu_before[mode])),
            steal_ns: steal_before.zip(steal_ns()).map(|(before, after)| after.saturating_sub(before)),
            footprint: seen_before.zip(seen).map(|(before, after)| look.between(&before, &after)),
            command: sheet.take_command(),
            intervals,
            spec: self.spec.recorded(),
            notes,
        })
    }

    /// Runs the workload for nothing until measuring begins.
    fn ramp_up(&mut self, control: &Control, until_ns: u64) -> Result<(), RunError> {
        let (operations, bytes) = (control.counter(0), AtomicU64::new(0));
        let watch = Watch::new(control, &operations, &bytes, until_ns);
        while !watch.is_over() {
            self.runner.round(&watch, &mut Sheet::default())?;
        }
        Ok(())
    }

    /// Runs the workload for nothing as often as it is to be; returns when measuring is to begin.
    fn warm_up(&mut self, control: &Control, agreed_ns: u64) -> Result<u64, RunError> {
        let (operations, bytes) = (control.counter(0), AtomicU64::new(0));
        for _ in 0..self.spec.warm_ups {
            let watch = Watch::new(control, &operations, &bytes, monotonic_ns() + self.spec.longest_ns());
            self.runner.round(&watch, &mut Sheet::default())?;
        }
        Ok(if self.spec.warm_ups == 0 { agreed_ns } else { monotonic_ns() })
    }

    /// Repeats the workload; returns how often it was finished.
    fn rounds(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<u32, RunError> {
        let most = if self.spec.time_ns.is_some() { u32::MAX } else { self.spec.runs };
        for run in 0..most {
            if self.spec.drop_caches {
                sheet.note(drop_caches(&self.runner.files()));
            }
            self.runner.round(watch, sheet)?;
            if watch.is_over() {
                // Whether the last moment fell into this run or behind it makes no difference.
                return Ok(run);
            }
        }
        Ok(most)
    }
}

fn wait_until(at_ns: u64, control: &Control) {
    while !control.is_stopped() {
        match at_ns.saturating_sub(monotonic_ns()) {
            0 => return,
            left_ns => thread::sleep(Duration::from_nanos(left_ns.min(STOP_INTERVAL_NS))),
        }
    }
}

/// A workload with everything it needs.
pub struct Prepared {
    pub(crate) spec: WorkloadSpec,
    pub(crate) runner: Box<dyn Runner>,
    pub(crate) notes: Vec<String>,
    /// The one under its folder, where that is this machine's.
    pub(crate) disk: Option<Disk>,
    /// Held for its weight alone.
    _ballast: Option<MmapMut>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Allocates memory and makes the data that `spec` needs. `place` is for workloads that need storage.
///
/// # Errors
/// The workload makes no sense or does not fit this machine, or the kernel refuses memory.
pub fn prepare(spec: &WorkloadSpec, place: Option<&Storage>) -> Result<Prepared, RunError> {
    prepare_until(spec, place, &|| false)
}

/// As [`prepare`], until `is_over` says that nobody waits for it any more; what was made is removed then.
///
/// # Errors
/// As [`prepare`], or `is_over` said so.
pub fn prepare_until(
    spec: &WorkloadSpec,
    place: Option<&Storage>,
    is_over: &dyn Fn() -> bool,
) -> Result<Prepared, RunError> {
    spec.validate()?;
    if spec.drop_caches && spec.workload.needs_storage() {
        caches::check()?;
    }
    let mut notes = Vec::new();
    // First, so that what sizes itself by the memory that is free sees what is left.
    let ballast = ballast::take(spec.ballast_bytes, &mut notes)?;
    let runner: Box<dyn Runner> = match &spec.workload {
        Workload::Memory(memory) => Box::new(Memory::new(memory, &mut notes)?),
        Workload::Cpu(cpu) => Box::new(Cpu::new(cpu)?),
        Workload::Files(files) => Box::new(Files::new(files, spec.seed, place, is_over, &mut notes)?),
        Workload::System(system) => Box::new(System::new(system, place, &mut notes)?),
        Workload::Command(command) => Box::new(Program::new(command, place, &mut notes)?),
    };
    let disk = match place {
        Some(Storage::Path(path)) => Disk::under(path),
        Some(Storage::Disk(_)) | None => None,
    };
    Ok(Prepared { spec: spec.clone(), runner, notes, disk, _ballast: ballast })
}

/// The most intervals; what does not fit makes the last one longer.
const MAX_INTERVALS: usize = 20_000;

/// Reads the counters at the end of each interval until `over` says so. Intervals count from
/// `origin_ns`; the first begins with what the counters were when. A reader that comes late, as a guest without its
/// processor does, writes down how late.
pub(crate) fn record(
    counters: [&AtomicU64; 2],
    (mut before, mut begun_ns): ([u64; 2], u64),
    origin_ns: u64,
    interval_ns: u64,
    over: &Receiver<()>,
) -> Vec<Interval> {
    let read = || counters.map(|counter| counter.load(Ordering::Relaxed));
    let mut intervals = Vec::new();
    loop {
        // On the common grid, so that the intervals of several machines meet.
        let past = begun_ns.saturating_sub(origin_ns);
        let end_ns = origin_ns + (past / interval_ns + 1) * interval_ns;
        let wait = if intervals.len() + 1 < MAX_INTERVALS {
            Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()))
        } else {
            Duration::MAX
        };
        let last = match over.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => false,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
        };
        let (now_ns, now) = (monotonic_ns(), read());
        if now_ns > begun_ns && (!last || now != before || intervals.is_empty()) {
            intervals.push(Interval {
                start_ns: begun_ns.saturating_sub(origin_ns),
                length_ns: now_ns - begun_ns,
                operations: now[0] - before[0],
                bytes: now[1] - before[1],
                mean_latency_ns: None,
            });
        }
        if last {
            return intervals;
        }
        (before, begun_ns) = (now, now_ns);
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod run_tests;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn intervals_follow_one_another_and_lose_nothing() {
        let (operations, bytes) = (AtomicU64::new(7), AtomicU64::new(0));
        let (end, over) = mpsc::channel();
        let origin_ns = monotonic_ns();
        let intervals = thread::scope(|scope| {
            let counters = [&operations, &bytes];
            // The thread begins when it gets a processor: what was counted by then is in the series all the same.
            let begun = ([5, 0], origin_ns);
            let series = scope.spawn(move || record(counters, begun, origin_ns, 5_000_000, &over));
            thread::sleep(Duration::from_millis(12));
            for _ in 0..50 {
                operations.fetch_add(1, Ordering::Relaxed);
                bytes.fetch_add(10, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
            drop(end);
            series.join().unwrap()
        });
        let sum = |of: fn(&Interval) -> u64| intervals.iter().map(of).sum::<u64>();
        assert_eq!((sum(|interval| interval.operations), sum(|interval| interval.bytes)), (52, 500));
        assert!(intervals.len() > 2);
        for pair in intervals.windows(2) {
            assert_eq!(pair[0].start_ns + pair[0].length_ns, pair[1].start_ns);
        }
    }
}
