//! What all workers saw, as one outcome.

use virtbench_record::{InFlightAtEnd, LoadOutcome, OpenLoop, Replayed, Verification};
use virtbench_units::{LatencySummary, format_latency_ns};
use virtbench_workload::{LoadSpec, Pace, Recording};

use crate::moments::Moments;
use crate::open_loop::OpenLoopCounts;
use crate::recorder::Recorder;
use crate::target::Target;
use crate::unfinished::stopped_keeping_up;
use crate::worker::WorkerReport;

/// Merges the reports of all workers.
pub(crate) fn merge(
    spec: &LoadSpec,
    target: &Target,
    moments: Moments,
    interval_ns: u64,
    reports: &[WorkerReport],
    mut notes: Vec<String>,
) -> LoadOutcome {
    let stopped_ns = reports.iter().map(|report| report.stopped_ns).max().unwrap_or(moments.end_ns);
    let elapsed_ns = stopped_ns.saturating_sub(moments.begin_ns);
    let own_cpu_ns =
        reports.iter().fold([0, 0], |sum, report| [sum[0] + report.cpu_ns[0], sum[1] + report.cpu_ns[1]]);
    for reason in reports.iter().flat_map(|report| report.gave_up.iter().chain(&report.clock_note)) {
        if !notes.contains(reason) {
            notes.push(reason.clone());
        }
    }
    let mut all = Recorder::new(moments.begin_ns, moments.end_ns, interval_ns, spec.access.lines.len());
    reports.iter().for_each(|report| all.merge(&report.recorder));
    let [total, read, write, trim, flush] = all.stats(elapsed_ns);
    let error_kinds = all.error_kinds();
    let paced = spec.rate.is_some() || spec.trace.as_ref().is_some_and(|trace| trace.pace != Pace::Max);
    let in_flight = all.in_flight_at_end();
    let open_loop = paced.then(|| open_loop(spec, &all, reports, in_flight.overdue));
    notes
        .extend(open_loop.as_ref().and_then(|open_loop| saturation_note(spec, open_loop, in_flight.overdue)));
    notes.extend(tail_note(total.latency_ns.as_ref(), &in_flight));
    let replay = spec.trace.as_ref().map(|trace| replayed(trace, reports));
    LoadOutcome {
        total,
        read,
        write,
        trim: spec.access.lines.iter().any(|line| line.trim_percent > 0.0).then_some(trim),
        flush: spec.flushes().then_some(flush),
        lines: all.line_stats(elapsed_ns),
        in_flight_at_end: Some(in_flight),
        open_loop,
        replay,
        verify: verification(reports),
        errors: error_kinds.values().sum(),
        error_kinds,
        elapsed_ns,
        interrupted: reports.iter().any(|report| report.was_cut_short(moments)),
        own_cpu_ns,
        intervals: all.series(elapsed_ns),
        target: target.facts().clone(),
        spec: spec.clone(),
        seed: spec.seed,
        notes,
    }
}

fn replayed(trace: &Recording, reports: &[WorkerReport]) -> Replayed {
    let parts = || reports.iter().map(|report| report.replay.unwrap_or_default());
    Replayed {
        operations: trace.operations,
        started: parts().map(|part| part.started).sum(),
        whole: parts().all(|part| part.whole),
    }
}

fn open_loop(spec: &LoadSpec, all: &Recorder, reports: &[WorkerReport], overdue: u64) -> OpenLoop {
    let sum = |field: fn(&OpenLoopCounts) -> u64| {
        let of_replay = |report: &WorkerReport| report.replay.and_then(|replay| replay.open_loop);
        reports
            .iter()
            .filter_map(|report| report.open_loop.or(of_replay(report)))
            .map(|c| field(&c))
            .sum::<u64>()
    };
    let (service_ns, service_histogram) = all.service_times();
    let [offered, dropped, backlog_end] = [sum(|c| c.offered), sum(|c| c.dropped), sum(|c| c.backlog_end)];
    let slots = u64::from(spec.outstanding) * u64::from(spec.workers);
    OpenLoop {
        offered,
        dropped,
        backlog_end,
        backlog_max: sum(|counts| counts.backlog_max),
        saturated: dropped > 0
            || backlog_end > slots.max(offered / 100)
            || stopped_keeping_up(overdue, offered),
        service_ns,
        service_histogram,
    }
}

fn saturation_note(spec: &LoadSpec, open_loop: &OpenLoop, overdue: u64) -> Option<String> {
    let OpenLoop { dropped, backlog_end, .. } = open_loop;
    if let Some(trace) = spec.trace.as_ref().filter(|_| open_loop.saturated) {
        return Some(format!(
            "the target is saturated: it could not keep up with the trace at --pace {}. {backlog_end} operations \
             were waiting for a free slot when the last one was due; the latencies tell how long the trace is \
             rather than what the target can do",
            trace.pace
        ));
    }
    open_loop.saturated.then(|| {
        format!(
            "the target is saturated: it could not keep up with --rate. At the end {backlog_end} operations were \
             waiting to start, {overdue} of those unfinished had waited longer than 99 % of the others took, and \
             {dropped} were dropped; so the true latencies are higher and depend on how long the load lasts"
        )
    })
}

/// A 99th or 99.9th percentile that rises by more than this share, once unfinished operations are
/// counted in, is said.
const TELLING_RISE: f64 = 0.1;

/// What the reader of the percentiles has to know of the operations that are in none of them.
fn tail_note(in_time: Option<&LatencySummary>, in_flight: &InFlightAtEnd) -> Option<String> {
    let counted_in = in_flight.counted_in_ns.as_ref()?;
    let rises = |of: fn(&LatencySummary) -> u64| {
        in_time.is_none_or(|in_time| of(counted_in) as f64 > of(in_time) as f64 * (1.0 + TELLING_RISE))
    };
    (rises(|latency| latency.p99) || rises(|latency| latency.p99_9)).then(|| {
        let of = |percentile: fn(&LatencySummary) -> u64| {
            let was = in_time.map_or_else(|| "-".to_owned(), |latency| format_latency_ns(percentile(latency) as f64));
            format!("{} instead of {was}", format_latency_ns(percentile(counted_in) as f64))
        };
        format!(
            "operations that were unfinished when measuring ended are the tail: counted in, p99 is {}, p99.9 {}",
            of(|latency| latency.p99),
            of(|latency| latency.p99_9)
        )
    })
}

fn verification(reports: &[WorkerReport]) -> Option<Verification> {
    let mut parts = reports.iter().filter_map(|report| report.verification.as_ref());
    let mut whole = parts.next()?.clone();
    parts.for_each(|part| whole.merge(part));
    Some(whole)
}
