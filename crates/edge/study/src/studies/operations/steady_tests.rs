//! Throughput, whether a platform kept up, and the highest rate, on a platform that exists in virtual time alone: no test waits for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use virtbench_model::Probe;
use virtbench_model::operations::{analyse_operations, search_rate};
use virtbench_operations::{Arrivals, Span, judged, steady_window};
use virtbench_record::{
    OperationKind, OperationNumbers, OperationsKey, OperationsLoad, OperationsMeasured, OperationsPlan,
    OperationsRecord,
};
use virtbench_samples::operations as synthetic;
use virtbench_units::LatencyRecorder;

const S: u64 = 1_000_000_000;

/// Operations take as long as this, of which so many go on at once; further ones wait.
#[derive(Clone, Copy)]
struct Slow {
    latency_ns: u64,
    at_once: usize,
    vms: usize,
}

impl Slow {
    /// What a piece of an open loop comes to. Whatever finds all VMs busy is not issued.
    fn open(&self, arrivals: impl Iterator<Item = u64>, length_ns: u64) -> OperationsMeasured {
        let mut ends: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
        let (mut spans, mut not_issued): (Vec<Span>, u64) = (Vec::new(), 0);
        for at in arrivals.take_while(|at| *at < length_ns) {
            if spans.iter().filter(|span| span.ended_ns > at).count() >= self.vms {
                not_issued += 1;
                continue;
            }
            let free = if ends.len() < self.at_once { at } else { ends.pop().map_or(at, |Reverse(end)| end) };
            let ended = at.max(free) + self.latency_ns;
            ends.push(Reverse(ended));
            spans.push(span(at, ended));
        }
        measured(&spans, not_issued, length_ns, false)
    }

    /// The same of clients that never rest.
    fn closed(&self, clients: usize, length_ns: u64) -> OperationsMeasured {
        let starts = (0..).map(|number| number * self.latency_ns).take_while(|at| *at < length_ns);
        let one: Vec<Span> = starts.map(|at| span(at, at + self.latency_ns)).collect();
        let clients = clients.min(self.at_once).min(self.vms);
        let spans: Vec<Span> = one.iter().copied().cycle().take(clients * one.len()).collect();
        measured(&spans, 0, length_ns, true)
    }
}

fn span(intended_ns: u64, ended_ns: u64) -> Span {
    Span { kind: OperationKind::PowerOn, intended_ns, ended_ns, is_done: true }
}

fn measured(spans: &[Span], not_issued: u64, length_ns: u64, is_closed: bool) -> OperationsMeasured {
    let mut recorder = LatencyRecorder::new();
    spans.iter().for_each(|span| recorder.record(span.ended_ns - span.intended_ns));
    let latency_ns = recorder.summary();
    let done = spans.len() as u64;
    let numbers = OperationNumbers { done, latency_ns, ..OperationNumbers::default() };
    OperationsMeasured {
        // With the drain, which is none of the throughput's business.
        elapsed_ns: spans.iter().map(|span| span.ended_ns).fold(length_ns, u64::max),
        intended: done + not_issued,
        not_issued,
        operations: BTreeMap::from([(OperationKind::PowerOn, numbers)]),
        latency_ns,
        steady: Some(steady_window(spans, length_ns, is_closed)),
        ..OperationsMeasured::default()
    }
}

fn record(
    plan: &OperationsPlan,
    piece: u32,
    rate: Option<f64>,
    measured: OperationsMeasured,
) -> OperationsRecord {
    let key = OperationsKey { vms: plan.vms[0], piece, per_minute: rate };
    OperationsRecord::new(key, 0, judged(measured, &plan.load, rate, plan.piece_ns))
}

fn plan(load: OperationsLoad, piece_ns: u64) -> OperationsPlan {
    OperationsPlan { vms: vec![200], load, piece_ns, ..synthetic::plan() }
}

#[test]
fn sixty_a_minute_that_take_six_seconds_each_are_sixty_a_minute() {
    let platform = Slow { latency_ns: 6 * S, at_once: 64, vms: 200 };
    let plan = plan(OperationsLoad::Open(vec![60.0]), 20 * S);
    let even = || (0..).map(|second| second * S + S / 2);
    let records: Vec<OperationsRecord> =
        (0..4).map(|piece| record(&plan, piece, Some(60.0), platform.open(even(), 20 * S))).collect();
    let step = &analyse_operations(&plan, &records).steps[0];
    assert!((step.achieved.unwrap().mean - 60.0).abs() < 1e-9, "{step:?}");
    assert_eq!((step.kept_up, step.is_short), (Some(true), false));
    // At random they are as many as arrive.
    let random = |piece: u32| platform.open(Arrivals::new(60.0, u64::from(piece)), 20 * S);
    let records: Vec<OperationsRecord> =
        (0..40).map(|piece| record(&plan, piece, Some(60.0), random(piece))).collect();
    let step = &analyse_operations(&plan, &records).steps[0];
    let achieved = step.achieved.unwrap().mean;
    assert!((achieved / step.arrived_per_minute - 1.0).abs() < 0.01, "{achieved} {step:?}");
    assert_eq!(step.kept_up, Some(true));
}

#[test]
fn a_platform_that_can_do_half_does_not_keep_up_and_the_drain_is_not_counted() {
    // 4 at once for 6 s: 40 a minute of 80.
    let platform = Slow { latency_ns: 6 * S, at_once: 4, vms: 200 };
    let plan = plan(OperationsLoad::Open(vec![80.0]), 60 * S);
    let of = |piece: u32| platform.open(Arrivals::new(80.0, u64::from(piece)), 60 * S);
    let records: Vec<OperationsRecord> =
        (0..8).map(|piece| record(&plan, piece, Some(80.0), of(piece))).collect();
    let step = &analyse_operations(&plan, &records).steps[0];
    assert_eq!(step.kept_up, Some(false), "{step:?}");
    assert!((step.achieved.unwrap().mean / 40.0 - 1.0).abs() < 0.1, "{step:?}");
}

/// With few at once random arrivals queue long before all are busy; 39 at 6 s are the 386 a minute beside which 193 were once told.
#[test]
fn the_highest_rate_is_within_a_tenth_of_what_clients_that_never_rest_do() {
    for (latency_s, piece_s, at_once) in [(6, 60, 39), (6, 20, 64), (2, 60, 64), (1, 30, 64)] {
        let limit_ns = 2 * latency_s * S;
        let platform = Slow { latency_ns: latency_s * S, at_once, vms: 200 };
        let plan = plan(OperationsLoad::Max { limit_ns }, piece_s * S);
        let mut records = Vec::new();
        let found = loop {
            let (search, piece) = search_rate(&plan, plan.vms[0], &records).unwrap();
            let Some(probe) = search.next_probe() else { break search.result().rate * 60.0 };
            let (rate, measured) = match probe {
                Probe::Closed => (None, platform.closed(at_once, plan.piece_ns)),
                Probe::Offered { per_second } => {
                    let rate = 60.0 * per_second;
                    (Some(rate), platform.open(Arrivals::new(rate, u64::from(piece) + 1), plan.piece_ns))
                }
            };
            records.push(record(&plan, piece, rate, measured));
        };
        let closed = analyse_operations(&plan, &records).steps[0].achieved.unwrap().mean;
        let truth = 60.0 * at_once as f64 / latency_s as f64;
        assert!((closed / truth - 1.0).abs() < 0.01, "{closed} of {truth}");
        assert!((found / closed - 1.0).abs() < 0.1, "{latency_s} s: {found} beside {closed}");
    }
}
