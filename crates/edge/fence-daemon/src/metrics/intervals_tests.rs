use super::*;

const LOOK_NS: u64 = 100_000_000;

/// A disk that is looked at ten times a second.
struct Watched {
    intervals: Intervals,
    now: Time,
    seen: Seen,
}

impl Watched {
    fn new(alone: Alone) -> Self {
        Self { intervals: Intervals::new(alone), now: Time::ZERO, seen: Seen::default() }
    }

    /// So many tenths of a second, in each of which so many requests are answered after so long.
    fn tenths(&mut self, tenths: u32, requests: u64, response_ms: u64) {
        for _ in 0..tenths {
            self.now = self.now.after(LOOK_NS);
            self.seen.requests += requests;
            self.seen.response_ns += requests * response_ms * 1_000_000;
            self.intervals.look(self.now, self.seen);
        }
    }

    /// Nobody looks.
    fn sleep(&mut self, seconds: u64) {
        self.now = self.now.after(seconds * 1_000_000_000);
        self.intervals.look(self.now, self.seen);
    }
}

fn near(found: Option<f64>, expected: f64) {
    assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?}, not {expected}");
}

#[test]
fn seconds_that_differ_have_the_variation_and_the_range_reckoned_by_hand() {
    let mut disk = Watched::new(Alone { iops: Some(250.0), response_s: Some(0.002) });
    for (requests, response_ms) in [(10, 1), (20, 3), (30, 5), (7, 9)] {
        disk.tenths(10, requests, response_ms);
    }
    // The fourth waits for what follows it. Rates 100, 200, 300; responses 1, 3, 5 ms.
    let [minute, all] = disk.intervals.so_far();
    assert_eq!((minute[0].intervals, minute[1].intervals), (3, 3));
    near(minute[0].variation, 0.5);
    near(minute[0].spread, 1.0);
    near(minute[0].deviation, 0.2);
    near(minute[1].variation, 2.0 / 3.0);
    near(minute[1].spread, 4.0 / 3.0);
    // Of requests: (100 x 1 + 200 x 3 + 300 x 5) / 600 = 3.667 ms.
    near(minute[1].deviation, 5.0 / 6.0);
    near(all[0].variation, 0.5);
    near(all[1].deviation, 5.0 / 6.0);
}

#[test]
fn a_steady_disk_does_not_vary_whenever_its_loads_begin_and_end() {
    let mut disk = Watched::new(Alone::default());
    for pause in [13, 41, 27, 35] {
        disk.tenths(pause, 0, 0);
        disk.tenths(37, 10, 2);
        disk.tenths(20, 0, 0);
    }
    disk.sleep(3600);
    disk.tenths(35, 10, 2);
    disk.sleep(3600);
    let [minute, all] = disk.intervals.so_far();
    // Three whole seconds of each load, and the beginning of a fourth that has responses and no rate.
    assert_eq!((all[0].intervals, all[1].intervals), (15, 20));
    for of in minute.into_iter().chain(all) {
        near(of.variation, 0.0);
        near(of.spread, 0.0);
    }
}

#[test]
fn a_stall_counts_with_all_its_seconds_and_idleness_with_none() {
    let mut disk = Watched::new(Alone::default());
    disk.tenths(20, 10, 1);
    disk.seen.under_way = 1;
    disk.sleep(0);
    disk.sleep(3);
    disk.seen.under_way = 0;
    disk.tenths(20, 10, 1);
    disk.sleep(1000);
    disk.tenths(20, 10, 1);
    disk.sleep(1_000_000);
    // 100, 100, 0, 0, 0, 100 and 100 a second; the last seconds of both loads have no rate.
    let [_, all] = disk.intervals.so_far();
    assert_eq!((all[0].intervals, all[1].intervals), (7, 6));
    near(all[0].spread, 1.75);
    near(all[1].spread, 0.0);
}

#[test]
fn the_minute_forgets_what_all_remembers() {
    let mut disk = Watched::new(Alone::default());
    disk.tenths(10, 90, 9);
    disk.tenths(700, 10, 1);
    let [minute, all] = disk.intervals.so_far();
    assert_eq!((minute[0].intervals, all[0].intervals), (60, 70));
    near(minute[0].variation, 0.0);
    near(all[0].spread, 800.0 / (100.0 + 800.0 / 70.0));
    assert_eq!(disk.intervals.kept.capacity(), KEPT);
}
