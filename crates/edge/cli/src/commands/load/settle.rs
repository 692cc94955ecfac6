//! Loading a target until it is steady.

use std::fmt;

use serde::Serialize;
use virtbench_engine::{Target, monotonic_ns};
use virtbench_model::{Steadiness, SteadyDetector, SteadyRule};
use virtbench_units::format_duration_ns;
use virtbench_workload::LoadSpec;

use super::measure::measure_watched;
use crate::exit::{Failure, Kind};
use crate::interrupt;

/// How the target settled.
#[derive(Debug, Serialize)]
pub struct Settled {
    /// Whether it was steady in the end.
    reached: bool,
    /// How long it was loaded for that, in nanoseconds.
    elapsed_ns: u64,
    /// The window, in nanoseconds.
    window_ns: u64,
    /// The most that IOPS may range over, in percent of their mean.
    range_limit_percent: f64,
    /// The most that their trend may move over the window, in percent of their mean.
    slope_limit_percent: f64,
    /// What they ranged over in the last window; null if there was none.
    range_percent: Option<f64>,
    /// How far their trend moved.
    slope_percent: Option<f64>,
}

/// Loads the target until its IOPS are steady by `rule`, or `limit_ns` have passed.
///
/// This is a run of its own before the ramp-up of the measuring one: the few milliseconds between
/// them are nothing to what makes storage unsteady (caches, garbage collection), and the ramp-up
/// fills the queue again. It draws other operations, so that measuring does not find its own in a
/// cache.
///
/// # Errors
/// The limit is shorter than the window, or the load cannot be applied.
pub fn settle(
    spec: &LoadSpec,
    target: &Target,
    rule: SteadyRule,
    limit_ns: u64,
    live: bool,
) -> Result<Settled, Failure> {
    if limit_ns < rule.window_ns {
        let (limit, window) = (format_duration_ns(limit_ns), format_duration_ns(rule.window_ns));
        let message = format!("--steady-limit {limit} is shorter than the window of {window}: raise it");
        return Err(Failure::message(Kind::Usage, message));
    }
    let mut detector = SteadyDetector::new(rule, spec.interval_ns);
    let mut reached = false;
    let began_ns = monotonic_ns();
    let settling = LoadSpec { ramp_ns: 0, time_ns: limit_ns, seed: !spec.seed, ..spec.clone() };
    measure_watched(&settling, target, live, |control| {
        if !reached && detector.look(monotonic_ns(), control.completed()) {
            reached = true;
            control.stop();
        }
    })?;
    if interrupt::requested() {
        return Err(interrupt::failure("nothing was measured yet"));
    }
    let found = detector.steadiness();
    let percent = |of: fn(&Steadiness) -> f64| found.as_ref().map(|found| 100.0 * of(found));
    Ok(Settled {
        reached,
        elapsed_ns: monotonic_ns() - began_ns,
        window_ns: rule.window_ns,
        range_limit_percent: 100.0 * rule.range,
        slope_limit_percent: 100.0 * rule.slope,
        range_percent: percent(|found| found.range),
        slope_percent: percent(|found| found.slope),
    })
}

impl Settled {
    /// What a reader of the results must know: that they are not of a steady target.
    pub fn note(&self) -> Option<String> {
        (!self.reached).then(|| self.to_string())
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.reached { "steady" } else { "not steady" };
        write!(f, "{state} after {:.1} s", self.elapsed_ns as f64 / 1e9)?;
        if let (Some(range), Some(slope)) = (self.range_percent, self.slope_percent) {
            write!(
                f,
                ": IOPS over {} ranged over {range:.1} % (limit {:.1} %), trend {slope:.1} % (limit {:.1} %)",
                format_duration_ns(self.window_ns),
                self.range_limit_percent,
                self.slope_limit_percent
            )?;
        }
        Ok(())
    }
}
