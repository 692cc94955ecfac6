//! What all workers saw, as one outcome.

use virtbench_record::{LoadOutcome, OpenLoop, Verification};
use virtbench_workload::LoadSpec;

use crate::open_loop::OpenLoopCounts;
use crate::recorder::Recorder;
use crate::target::Target;
use crate::worker::{Moments, WorkerReport};

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
    for reason in reports.iter().filter_map(|report| report.gave_up.as_ref()) {
        if !notes.contains(reason) {
            notes.push(reason.clone());
        }
    }
    let mut all = Recorder::new(moments.begin_ns, moments.end_ns, interval_ns);
    reports.iter().for_each(|report| all.merge(&report.recorder));
    let [total, read, write, trim, flush] = all.stats(elapsed_ns);
    let error_kinds = all.error_kinds();
    let open_loop = spec.rate.map(|_| open_loop(spec, &all, reports));
    notes.extend(open_loop.as_ref().and_then(saturation_note));
    LoadOutcome {
        total,
        read,
        write,
        trim: spec.access.lines.iter().any(|line| line.trim_percent > 0.0).then_some(trim),
        flush: spec.flush_every.map(|_| flush),
        open_loop,
        verify: verification(reports),
        errors: error_kinds.values().sum(),
        error_kinds,
        elapsed_ns,
        interrupted: stopped_ns < moments.end_ns || reports.iter().any(|report| report.gave_up.is_some()),
        own_cpu_ns,
        intervals: all.series(elapsed_ns),
        target: target.facts().clone(),
        spec: spec.clone(),
        seed: spec.seed,
        notes,
    }
}

fn open_loop(spec: &LoadSpec, all: &Recorder, reports: &[WorkerReport]) -> OpenLoop {
    let sum = |field: fn(&OpenLoopCounts) -> u64| {
        reports.iter().filter_map(|report| report.open_loop.as_ref()).map(field).sum::<u64>()
    };
    let (service_ns, service_histogram) = all.service_times();
    let [offered, dropped, backlog_end] = [sum(|c| c.offered), sum(|c| c.dropped), sum(|c| c.backlog_end)];
    let slots = u64::from(spec.outstanding) * u64::from(spec.workers);
    OpenLoop {
        offered,
        dropped,
        backlog_end,
        backlog_max: sum(|counts| counts.backlog_max),
        saturated: dropped > 0 || backlog_end > slots.max(offered / 100),
        service_ns,
        service_histogram,
    }
}

fn saturation_note(open_loop: &OpenLoop) -> Option<String> {
    let OpenLoop { dropped, backlog_end, .. } = open_loop;
    open_loop.saturated.then(|| {
        format!(
            "the target is saturated: it could not keep up with --rate. {backlog_end} operations were waiting at \
             the end and {dropped} were dropped; neither has a latency, so the true latencies are higher and \
             depend on how long the load lasts"
        )
    })
}

fn verification(reports: &[WorkerReport]) -> Option<Verification> {
    let mut parts = reports.iter().filter_map(|report| report.verification.as_ref());
    let mut whole = parts.next()?.clone();
    parts.for_each(|part| whole.merge(part));
    Some(whole)
}
