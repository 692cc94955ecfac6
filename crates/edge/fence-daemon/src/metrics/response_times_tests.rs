use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn near(found_ns: f64, expected_ns: f64) {
    assert!((found_ns / expected_ns - 1.0).abs() <= 1.0 / 64.0, "{found_ns}, not {expected_ns}");
}

#[test]
fn every_response_time_has_a_bucket_whose_middle_is_near() {
    let mut before = 0;
    for ns in (0..300_000).chain((19..LONGEST_LOG2).flat_map(|power| [(1 << power) - 1, 1 << power])) {
        let bucket = bucket(ns);
        assert!(bucket >= before, "{ns}");
        assert!((middle_ns(bucket) - ns as f64).abs() <= ns as f64 / 64.0, "{ns}: {}", middle_ns(bucket));
        before = bucket;
    }
    assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
}

#[test]
fn one_slow_request_in_fifty_is_the_99th_percentile_and_not_the_mean() {
    let times = ResponseTimes::default();
    assert_eq!(times.so_far(), [None, None]);
    for at in 0..1000 {
        times.record(if at % 50 == 0 { 80_000_000 } else { 250_000 });
    }
    let [minute, all] = times.so_far();
    assert_eq!(minute, all);
    let [p50, p99] = all.unwrap();
    near(p50, 250_000.0);
    near(p99, 80_000_000.0);
}

#[test]
fn the_last_minute_of_work_forgets_what_was_before_and_idleness_counts_for_nothing() {
    let times = ResponseTimes::default();
    let (mut parts, mut requests) = (Parts::default(), 0);
    let mut second = |at: u64, response_ns: Option<u64>| {
        if let Some(ns) = response_ns {
            times.record(ns);
            requests += 1;
        }
        parts.look(Time::from_ns(at * SECOND_NS), requests, [&times]);
    };
    (1..=30).for_each(|at| second(at, Some(50_000_000)));
    (31..=3600).for_each(|at| second(at, None));
    let p99 = |of: usize| times.so_far()[of].unwrap()[1];
    near(p99(0), 50_000_000.0);
    // 30 s of the slow ones, and 20 of others, are still within the minute.
    (3601..=3620).for_each(|at| second(at, Some(1_000_000)));
    near(p99(0), 50_000_000.0);
    (3621..=3690).for_each(|at| second(at, Some(1_000_000)));
    near(p99(0), 1_000_000.0);
    near(p99(1), 50_000_000.0);
}

#[test]
fn a_reader_delays_a_part_and_nobody_waits() {
    let times = ResponseTimes::default();
    times.record(1);
    let mut parts = Parts::default();
    let reading = times.before.lock().unwrap();
    parts.look(Time::from_ns(10 * SECOND_NS), 1, [&times]);
    assert!(reading.is_empty());
    drop(reading);
    parts.look(Time::from_ns(11 * SECOND_NS), 1, [&times]);
    assert_eq!(times.before.lock().unwrap().len(), 1);
}
