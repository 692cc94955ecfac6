//! The worker against targets that are slow, silent or broken in a known way.

use super::*;
use crate::clock::monotonic_ns;
use crate::recorder::Recorder;
use virtbench_workload::{AccessLine, AccessSpec, ArrivalTimes, Arrivals, Rate};

const MS: u64 = 1_000_000;

/// Completes an operation at a time, each after a fixed service time, as a single server does.
struct Slow {
    service_ns: u64,
    queued: std::collections::VecDeque<(u32, Op)>,
    free_at_ns: u64,
    /// What every operation fails with; 0 lets them succeed.
    errno: i32,
}

impl Backend for Slow {
    fn queue(&mut self, slot: u32, op: Op, _buffer: *mut u8) {
        self.queued.push_back((slot, op));
    }

    #[allow(clippy::cast_possible_wrap)]
    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        let Some((slot, op)) = self.queued.front().copied() else { return Ok(()) };
        let done_ns = self.free_at_ns.max(monotonic_ns() - 1) + self.service_ns;
        if until_ns.is_some_and(|until_ns| until_ns < done_ns) {
            sleep_until(until_ns.unwrap_or(0));
            return Ok(());
        }
        sleep_until(done_ns);
        self.free_at_ns = done_ns;
        self.queued.pop_front();
        let moves = if op.direction.moves_data() { op.len as i32 } else { 0 };
        completions.push(Completion { slot, result: if self.errno == 0 { moves } else { -self.errno } });
        Ok(())
    }
}

/// Never completes anything.
struct Silent;

impl Backend for Silent {
    fn queue(&mut self, _slot: u32, _op: Op, _buffer: *mut u8) {}

    fn drive(&mut self, until_ns: Option<u64>, _completions: &mut Vec<Completion>) -> io::Result<()> {
        sleep_until(until_ns.unwrap_or(0).min(monotonic_ns() + 5 * MS));
        Ok(())
    }
}

struct Setup {
    time_ns: u64,
    timeout_ns: u64,
    outstanding: u32,
    rate: Option<f64>,
    line: AccessLine,
    flush_every: Option<u32>,
    reads_each: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            time_ns: 300 * MS,
            timeout_ns: 10_000 * MS,
            outstanding: 4,
            rate: None,
            line: AccessLine::new(4096, 100.0, 100.0),
            flush_every: None,
            reads_each: false,
        }
    }
}

fn run(setup: Setup, backend: &mut impl Backend) -> WorkerReport {
    let start_ns = monotonic_ns();
    let moments = Moments { start_ns, begin_ns: start_ns, end_ns: start_ns + setup.time_ns };
    let rate = |per_second| Rate { per_second, arrivals: Arrivals::Constant };
    let arrivals = setup.rate.map(|per_second| ArrivalTimes::new(rate(per_second), 1, 0, 1));
    let worker = Worker {
        stream: Stream::new(&AccessSpec::single(setup.line), 1 << 20, 1, 0, 1)
            .with_flush_every(setup.flush_every),
        replay: None,
        buffers: Buffers::new(setup.outstanding as usize, 4096, 1).unwrap(),
        outstanding: setup.outstanding,
        moments,
        interval_ns: setup.time_ns,
        timeout_ns: setup.timeout_ns,
        open_loop: arrivals.map(|times| Box::new(OpenLoop::new(times, moments))),
        verifier: None,
        flow: None,
        stop: &AtomicBool::new(false),
        completed: &AtomicU64::new(0),
        live: None,
        parking: &Parking::default(),
        clock: WorkerClock::Kernel,
        reads_each: setup.reads_each,
    };
    worker.run(backend).unwrap()
}

fn slow(service_ns: u64) -> Slow {
    Slow { service_ns, queued: std::collections::VecDeque::new(), free_at_ns: 0, errno: 0 }
}

fn mean_ns(recorder: &Recorder) -> f64 {
    recorder.stats(1)[0].latency_ns.unwrap().mean
}

#[test]
fn a_target_slower_than_the_rate_shows_in_the_latency_and_not_in_the_service_time() {
    // 1000 operations a second are meant to start, a server of 4 ms completes 250 at the most.
    let setup = Setup { rate: Some(1000.0), outstanding: 1, ..Setup::default() };
    let report = run(setup, &mut slow(4 * MS));
    let counts = report.open_loop.unwrap();
    assert_eq!(counts.offered, 300);
    let done = report.recorder.stats(1)[0].operations;
    assert!((10..=75).contains(&done), "{done}");
    // Each of those in flight or done has started; all others wait, and none is forgotten.
    assert_eq!(counts.backlog_end, 300 - done - 1, "{counts:?}");
    assert_eq!(counts.backlog_max, counts.backlog_end);
    // The k-th operation completes after 4k ms and was meant to start after k ms: 3k ms late.
    let latency = mean_ns(&report.recorder);
    let service = report.recorder.service_times().0.unwrap().mean;
    assert!(latency > 20.0 * MS as f64, "latency {latency}");
    assert!(latency > 3.0 * service, "latency {latency}, service {service}");
}

#[test]
fn what_becomes_due_while_a_load_thinks_starts_afterwards() {
    // Ten operations, then a delay of 60 ms, at a rate that gives sixty operations in that time: the delay decides, and nothing is lost.
    let line = AccessLine { delay_ns: 60 * MS, burst: 10, ..AccessLine::new(4096, 100.0, 100.0) };
    let report = run(Setup { rate: Some(1000.0), line, ..Setup::default() }, &mut slow(0));
    let counts = report.open_loop.unwrap();
    assert_eq!(counts.offered, 300);
    let done = report.recorder.stats(1)[0].operations;
    assert!((10..=50).contains(&done), "{done}");
    assert_eq!(counts.backlog_end, 300 - done, "{counts:?}");
}

#[test]
fn a_target_that_keeps_up_has_no_backlog() {
    let setup = Setup { rate: Some(200.0), ..Setup::default() };
    let report = run(setup, &mut slow(10_000));
    let counts = report.open_loop.unwrap();
    let done = report.recorder.stats(1)[0].operations;
    assert_eq!((counts.offered, counts.dropped), (60, 0));
    assert!(done + counts.backlog_end + 4 >= 60, "{done} done, {counts:?}");
}

#[test]
fn a_silent_target_ends_the_load_and_is_named() {
    let setup = Setup { time_ns: 3_600_000 * MS, timeout_ns: 60 * MS, ..Setup::default() };
    let report = run(setup, &mut Silent);
    let note = report.gave_up.unwrap();
    assert!(note.contains("stalled") && note.contains("--timeout 60ms"), "{note}");
    let kinds = report.recorder.error_kinds();
    assert_eq!(kinds.get("no completion within --timeout"), Some(&4), "{kinds:?}");
}

#[test]
fn a_target_that_goes_silent_at_the_end_is_not_waited_for_for_ever() {
    let setup = Setup { time_ns: 20 * MS, timeout_ns: 100 * MS, ..Setup::default() };
    let report = run(setup, &mut Silent);
    assert!(report.gave_up.is_some());
    assert_eq!(report.recorder.error_kinds().values().sum::<u64>(), 4);
}

#[test]
fn what_is_in_flight_at_the_end_counts_with_how_long_it_had_waited() {
    // The first operation completes after 40 ms, 20 ms beyond the end; the other behind it.
    let setup = || Setup { time_ns: 20 * MS, outstanding: 2, ..Setup::default() };
    let report = run(setup(), &mut slow(40 * MS));
    assert_eq!(report.recorder.stats(1)[0].operations, 0);
    let found = report.recorder.in_flight_at_end();
    assert_eq!((found.operations, found.completed, found.failed), (2, 2, 0), "{found:?}");
    let [waited, counted_in] = [found.waited_ns.unwrap(), found.counted_in_ns.unwrap()];
    assert!(waited.max <= 20 * MS, "{waited:?}");
    assert!(counted_in.min >= 20 * MS && counted_in.max >= counted_in.min + 39 * MS, "{counted_in:?}");
    assert_eq!(report.recorder.error_kinds().len(), 0);
    // Errors among them are errors.
    let report = run(setup(), &mut Slow { errno: libc::EIO, ..slow(40 * MS) });
    let found = report.recorder.in_flight_at_end();
    assert_eq!((found.operations, found.completed, found.failed), (2, 0, 2), "{found:?}");
    assert_eq!(report.recorder.error_kinds().values().sum::<u64>(), 2);
}

#[test]
fn what_stalls_at_the_end_of_an_open_loop_has_waited_and_is_an_error() {
    let setup = Setup {
        rate: Some(1_000.0),
        outstanding: 1_000,
        time_ns: 100 * MS,
        timeout_ns: 1_500 * MS,
        ..Setup::default()
    };
    let report = run(setup, &mut Silent);
    let found = report.recorder.in_flight_at_end();
    let counts = report.open_loop.unwrap();
    // A worker that has lost its processor starts the last ones late, or not at all.
    assert_eq!((found.operations + counts.backlog_end, found.overdue), (counts.offered, counts.offered));
    assert!(found.operations > 0 && found.failed == found.operations, "{found:?}");
    assert_eq!(report.recorder.stalls(), found.operations);
    assert!(report.gave_up.unwrap().contains("in flight when measuring ended"));
}

/// Takes a millisecond to take an operation, gives back one batch, and then nothing more.
#[derive(Default)]
struct OneBatch {
    queued: Vec<(u32, Op)>,
    is_over: bool,
}

impl Backend for OneBatch {
    fn queue(&mut self, slot: u32, op: Op, _buffer: *mut u8) {
        self.queued.push((slot, op));
        sleep_until(monotonic_ns() + MS);
    }

    #[allow(clippy::cast_possible_wrap)]
    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.is_over {
            sleep_until(until_ns.unwrap_or(0).min(monotonic_ns() + 5 * MS));
            return Ok(());
        }
        self.is_over = true;
        let back = self.queued.drain(..).map(|(slot, op)| Completion { slot, result: op.len as i32 });
        completions.extend(back);
        Ok(())
    }
}

#[test]
fn one_reading_serves_a_batch_unless_each_operation_has_its_own() {
    for reads_each in [false, true] {
        let setup = Setup { time_ns: 2_000 * MS, timeout_ns: 2_500 * MS, reads_each, ..Setup::default() };
        let report = run(setup, &mut OneBatch::default());
        let total = &report.recorder.stats(1)[0];
        let latency = total.latency_ns.unwrap();
        assert_eq!(total.operations, 4);
        // In a batch all begin before the first was taken and end together.
        assert_eq!(latency.min == latency.max, !reads_each, "{reads_each}: {latency:?}");
        assert!(reads_each || latency.min >= 4 * MS, "{latency:?}");
    }
}

#[test]
fn trims_count_as_operations_of_the_total_and_flushes_beside_it() {
    let line = AccessLine { trim_percent: 50.0, ..AccessLine::new(4096, 0.0, 100.0) };
    let setup = Setup { line, flush_every: Some(5), time_ns: 50 * MS, ..Setup::default() };
    let report = run(setup, &mut crate::backend::Null::default());
    let [total, read, write, trim, flush] = report.recorder.stats(1);
    assert_eq!((total.operations, read.operations), (write.operations + trim.operations, 0));
    assert_eq!(total.bytes, write.bytes, "what moved");
    assert!(trim.operations > 100 && trim.bytes == trim.operations * 4096);
    assert!(
        flush.operations.abs_diff(write.operations / 5) <= 2,
        "{} {}",
        flush.operations,
        write.operations
    );
    assert_eq!(report.recorder.series(50 * MS)[0].operations, total.operations);
    assert!(report.recorder.error_kinds().is_empty(), "{:?}", report.recorder.error_kinds());
}
