//! What is made of events whose meaning is known.

use super::*;

const DISK: (u32, u32) = (254, 0);

/// Thread 50 is a late worker of the application's, 90 the kernel's; device 253 lies on others.
struct Known;

impl Machine for Known {
    fn whose(&mut self, thread: u32) -> Whose {
        match thread {
            50 => Whose::Ours,
            90 => Whose::Kernel,
            _ => Whose::Other,
        }
    }

    fn disk(&mut self, device: (u32, u32)) -> Option<(u32, u32)> {
        (device.0 != 253).then_some(DISK)
    }
}

fn queued(at_s: f64, thread: u32, read: bool, sector: u64, sectors: u64) -> TraceEvent {
    TraceEvent { at_s, thread, kind: EventKind::Queued { device: DISK, read, sector, sectors } }
}

fn completed(at_s: f64, sector: u64, sectors: u64) -> TraceEvent {
    TraceEvent { at_s, thread: 0, kind: EventKind::Completed { device: DISK, sector, sectors } }
}

fn summary(events: &[TraceEvent]) -> Summary {
    let mut analysis = Analysis::default();
    analysis.include([10]);
    for event in events {
        analysis.take(*event, &mut Known);
    }
    analysis.finish()
}

#[test]
fn sizes_order_and_response_times_of_a_worker_are_seen() {
    let found = summary(&[
        queued(1.000, 10, true, 0, 8),
        completed(1.002, 0, 8),
        queued(1.005, 10, true, 8, 8),
        completed(1.007, 8, 8),
        queued(1.010, 10, false, 800, 16),
        completed(1.012, 800, 16),
    ]);
    assert_eq!((found.own.reads, found.own.writes, found.own.sequential, found.own.random), (2, 1, 1, 1));
    assert_eq!(found.own.sizes, BTreeMap::from([(4096, 2), (8192, 1)]));
    assert!(
        (found.response_s.unwrap() - 0.002).abs() < 1e-9 && (found.think_s.unwrap() - 0.003).abs() < 1e-9
    );
    assert_eq!((found.workers, found.depth_per_worker), (1, Some(1)));
}

#[test]
fn forks_and_late_threads_belong_others_and_stacked_devices_do_not() {
    let mut stacked = queued(1.6, 10, true, 0, 8);
    stacked.kind = EventKind::Queued { device: (253, 1), read: true, sector: 0, sectors: 8 };
    let found = summary(&[
        TraceEvent { at_s: 1.0, thread: 10, kind: EventKind::Forked { parent: 10, child: 11 } },
        TraceEvent { at_s: 1.1, thread: 11, kind: EventKind::Forked { parent: 11, child: 12 } },
        TraceEvent { at_s: 1.2, thread: 70, kind: EventKind::Forked { parent: 70, child: 71 } },
        queued(1.3, 12, true, 0, 8),
        queued(1.4, 50, true, 100, 8),
        queued(1.5, 71, true, 200, 8),
        stacked,
        queued(1.7, 90, false, 300, 64),
        TraceEvent { at_s: 0.0, thread: 0, kind: EventKind::Lost { events: 3 } },
    ]);
    assert_eq!((found.own.reads, found.own.writes, found.workers, found.lost), (2, 0, 2, 3));
    assert_eq!((found.kernel.writes, found.kernel.written_bytes), (1, 32_768));
}

#[test]
fn merged_and_split_requests_end_their_operations() {
    let found = summary(&[
        queued(1.0, 10, true, 0, 8),
        queued(1.0, 10, true, 8, 8),
        completed(1.5, 0, 16),
        queued(2.0, 10, true, 100, 16),
        completed(2.2, 100, 8),
        completed(2.5, 108, 8),
    ]);
    assert_eq!(found.responses, 3);
    assert!((found.response_s.unwrap() - 0.5).abs() < 1e-9, "{found:?}");
}

#[test]
fn overlapping_operations_make_a_depth_and_a_rare_one_does_not() {
    let mut events = Vec::new();
    for round in 0..100u64 {
        let at = 1.0 + 0.01 * round as f64;
        for slot in 0..4 {
            events.push(queued(at + 1e-5 * slot as f64, 10, true, round * 1000 + slot * 100, 8));
        }
        events.extend((0..4).map(|slot| completed(at + 0.009, round * 1000 + slot * 100, 8)));
    }
    assert_eq!(summary(&events).depth_per_worker, Some(4));
    let mut single: Vec<TraceEvent> = (0..100u64)
        .flat_map(|i| {
            [
                queued(1.0 + 0.01 * i as f64, 10, true, i * 100, 8),
                completed(1.005 + 0.01 * i as f64, i * 100, 8),
            ]
        })
        .collect();
    single.insert(1, queued(1.001, 10, true, 50_000, 8));
    single.insert(2, completed(1.002, 50_000, 8));
    assert_eq!(summary(&single).depth_per_worker, Some(1));
}

#[test]
fn only_the_time_asked_for_counts() {
    let mut analysis = Analysis { from_s: 2.0, until_s: Some(3.0), ..Analysis::default() };
    analysis.include([10]);
    for event in [queued(1.0, 10, true, 0, 8), queued(2.0, 10, true, 8, 8), queued(3.0, 10, true, 16, 8)] {
        analysis.take(event, &mut Known);
    }
    let found = analysis.finish();
    assert_eq!((found.own.reads, found.own.sequential), (1, 1));
}
