use virtbench_record::{OltpEvent, OltpHostSecond};

use super::*;
use crate::oltp::synthetic;

fn run(seconds: [u64; 10]) -> OltpMeasured {
    let mut run = synthetic::measured(4, seconds, 1.0);
    let second = |start: u64| OltpHostSecond {
        start_ns: start * 1_000_000_000,
        cpu_percent: 100.0,
        steal_percent: if start == 8 { 20.0 } else { 0.0 },
        others_percent: None,
        busy: false,
        iops: None,
        context_switches: None,
    };
    let event = OltpEvent { cause: OltpCause::Checkpoint, begin_ns: 6_200_000_000, end_ns: 7_500_000_000 };
    let seconds = (1..10).map(second).collect();
    run.timeline = Some(OltpTimeline { seconds, events: vec![event], unavailable: vec!["x: why".into()] });
    run
}

#[test]
fn variance_is_found_in_the_seconds_of_its_cause() {
    // Seconds 6 and 7 have the checkpoint and all that is lost to it; 8 has stolen time.
    let causes = causes(&[run([100, 100, 100, 100, 100, 100, 40, 60, 100, 100])]).unwrap();
    assert_eq!(causes.seconds, 10);
    let of = |cause| causes.by_cause.iter().find(|(one, _)| *one == cause).unwrap().1;
    let checkpoint = of(OltpCause::Checkpoint);
    assert_eq!(checkpoint.seconds, 2);
    // The mean is 90; squares are 50² + 30² of 50² + 30² + 8 x 10².
    assert!((checkpoint.variance_share - 3400.0 / 4200.0).abs() < 1e-9, "{checkpoint:?}");
    assert!((checkpoint.throughput_ratio - 50.0 / 90.0).abs() < 1e-9);
    assert_eq!((of(OltpCause::StolenTime).seconds, of(OltpCause::ColdCache).seconds), (1, 5));
    assert_eq!(causes.marked.seconds, 8);
    assert_eq!(causes.unavailable, ["x: why"]);
}

#[test]
fn runs_without_a_timeline_or_spread_have_no_shares() {
    assert_eq!(causes(&[synthetic::measured(1, [1; 10], 1.0)]), None);
    let steady = causes(&[run([7; 10])]).unwrap();
    assert!(steady.by_cause.iter().all(|(_, marked)| marked.variance_share == 0.0));
}
