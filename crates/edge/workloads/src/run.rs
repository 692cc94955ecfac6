//! Runs a workload, from an agreed moment on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use virtbench_counters::{LeaveOut, Look};
use virtbench_engine::{Control, monotonic_ns, process_cpu_ns};
use virtbench_record::WorkloadOutcome;

use crate::caches::drop_caches;
use crate::machine::{copied_bytes, steal_ns};
use crate::prepare::Prepared;
use crate::runner::{RunError, Watch};
use crate::series;
use crate::sheet::Sheet;

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
        let mut notes = self.notes.clone();
        let look = Look::new(self.spec.sample, LeaveOut::Nobody);
        if let Some(why) = look.trouble().filter(|_| self.spec.sample) {
            notes.push(format!("the kernel's functions are not sampled: {why}"));
        }
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
                .spawn_scoped(scope, move || series::record(counters, begun, agreed_ns, interval_ns, &over))
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

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
