//! What ends a job among others before its time: figures that are steady, or too low.

use std::cell::RefCell;
use std::collections::VecDeque;

use virtbench_engine::{Control, LiveSample, monotonic_ns};
use virtbench_formats::{Schedule, SteadyEnd, SteadyMetric};
use virtbench_units::format_duration_ns;

/// Over how long the least rate must be reached, in nanoseconds.
const RATE_WINDOW_NS: u64 = 1_000_000_000;

/// Watches one job.
pub struct Ends {
    began_ns: u64,
    steady: Option<RefCell<Steady>>,
    least: Option<RefCell<Least>>,
}

struct Steady {
    rule: SteadyEnd,
    figures: VecDeque<f64>,
    last: (u64, LiveSample),
    reached_after_ns: Option<u64>,
}

struct Least {
    bytes_per_second: u64,
    last: (u64, LiveSample),
    fell_to: Option<u64>,
}

impl Ends {
    /// What the schedule asks for, from now on.
    pub fn new(schedule: &Schedule) -> Self {
        let began_ns = monotonic_ns();
        let last = (began_ns, LiveSample::default());
        let steady = schedule.steady.map(|rule| {
            RefCell::new(Steady {
                rule,
                figures: VecDeque::new(),
                last: last.clone(),
                reached_after_ns: None,
            })
        });
        let least = schedule
            .least_bytes_per_second
            .map(|bytes_per_second| RefCell::new(Least { bytes_per_second, last, fell_to: None }));
        Self { began_ns, steady, least }
    }

    /// A control that can be asked for what is watched.
    pub fn control(&self, workers: u32) -> Control {
        let watches = self.steady.is_some() || self.least.is_some();
        if watches { Control::with_live(workers) } else { Control::new(workers) }
    }

    /// Looks at the job, and ends it if it is to.
    pub fn look(&self, control: &Control) {
        let now_ns = monotonic_ns();
        let steady = self
            .steady
            .as_ref()
            .is_some_and(|steady| steady.borrow_mut().look(self.began_ns, now_ns, control));
        let too_slow = self.least.as_ref().is_some_and(|least| least.borrow_mut().look(now_ns, control));
        if steady || too_slow {
            control.finish();
        }
    }

    /// What is to be said of the job: how it ended, and why it failed if it has.
    pub fn say(&self) -> (Option<String>, Option<String>) {
        let steady = self.steady.as_ref().map(|steady| {
            let steady = steady.borrow();
            steady.reached_after_ns.map_or_else(
                || "its figures were not steady within its time".to_owned(),
                |after_ns| {
                    format!("its figures were steady after {}, which ended it", format_duration_ns(after_ns))
                },
            )
        });
        let failed = self.least.as_ref().and_then(|least| {
            let least = least.borrow();
            let fell_to = least.fell_to?;
            Some(format!(
                "reached {fell_to} B/s over a second; it asks for {} at least",
                least.bytes_per_second
            ))
        });
        (steady, failed)
    }
}

impl Steady {
    fn look(&mut self, began_ns: u64, now_ns: u64, control: &Control) -> bool {
        let (last_ns, last) = &self.last;
        if now_ns < began_ns + self.rule.ramp_ns {
            self.last = (now_ns, control.live());
            return false;
        }
        if now_ns < last_ns + self.rule.check_ns || self.reached_after_ns.is_some() {
            return false;
        }
        let sample = control.live();
        let (added, seconds) = (sample.since(last), (now_ns - last_ns) as f64 / 1e9);
        self.figures.push_back(match self.rule.figure {
            SteadyMetric::Iops => added.operations as f64 / seconds,
            SteadyMetric::Bandwidth => added.bytes as f64 / seconds,
            SteadyMetric::Latency => added.latency_sum_ns as f64 / added.operations.max(1) as f64,
        });
        self.last = (now_ns, sample);
        while self.figures.len() > self.rule.checks() {
            self.figures.pop_front();
        }
        let reached = self.rule.is_steady(self.figures.make_contiguous());
        self.reached_after_ns = reached.then(|| now_ns - began_ns);
        reached
    }
}

impl Least {
    /// As fio, the rate is looked at when something has completed, and over a second at least.
    fn look(&mut self, now_ns: u64, control: &Control) -> bool {
        let (last_ns, last) = &self.last;
        let sample = control.live();
        let added = sample.since(last);
        if added.operations == 0 || now_ns < last_ns + RATE_WINDOW_NS {
            return false;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = (added.bytes as f64 * 1e9 / (now_ns - last_ns) as f64) as u64;
        self.last = (now_ns, sample);
        if rate < self.bytes_per_second {
            self.fell_to.get_or_insert(rate);
            return true;
        }
        false
    }
}
