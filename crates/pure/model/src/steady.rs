//! When a load has settled.
//!
//! The rule is that of SNIA's Solid State Storage Performance Test Specification (version 2.0.2,
//! October 2020, section 2.1.24 "Steady State"): over the measurement window (2.1.13: five rounds) the
//! range of the observed values is at most 20 % of their mean, and the least-squares line through
//! them rises or falls by at most 10 % of that mean from the window's one end to its other.
//!
//! Here a value is the I/O rate of one interval, the window is a time (30 s) instead of five rounds
//! of a minute, and one percentage sets both limits in the specification's proportion: `X%/T` is a
//! range of X % and a slope of X/2 % over T. `20%/T` is the specification's own pair of limits.

use std::collections::VecDeque;

use thiserror::Error;
use virtbench_units::{DurationError, parse_duration_ns};

/// The most intervals a window may hold; a shorter interval than that asks for is useless.
pub const MAX_WINDOW_INTERVALS: usize = 3_600;
/// The fewest values from which a line says anything: the specification's five rounds.
pub const LEAST_WINDOW_INTERVALS: usize = 5;

/// What counts as steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRule {
    /// The most that the highest and the lowest value may lie apart, as a share of the mean.
    pub range: f64,
    /// The most that the least-squares line may move over the window, as a share of the mean.
    pub slope: f64,
    /// Length of the window, in nanoseconds.
    pub window_ns: u64,
}

/// A rule of steadiness that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SteadyError {
    /// It has not the form of one.
    #[error("{0:?} is no rule of steadiness: write a range and a window, such as 5%/30s")]
    Syntax(String),
    /// The percentage makes no sense.
    #[error("rule of steadiness {0:?}: the range lies above 0 % and at most at 100 %, such as 5%/30s")]
    Range(String),
    /// The window is no duration.
    #[error("rule of steadiness: {0}")]
    Duration(#[from] DurationError),
    /// The window is shorter than a rate can be taken over.
    #[error("rule of steadiness {0:?}: the window must be 50 ms or longer, such as 5%/30s")]
    Window(String),
}

/// Reads `5%/30s`: a range of 5 % and a slope of 2.5 % over 30 seconds.
///
/// # Errors
/// The text has another form or a value outside its limits; the message quotes it.
pub fn parse_steady(text: &str) -> Result<SteadyRule, SteadyError> {
    let (percent, window) = text.split_once('/').ok_or_else(|| SteadyError::Syntax(text.to_owned()))?;
    let percent: f64 = percent
        .trim()
        .trim_end_matches('%')
        .trim_end()
        .parse()
        .map_err(|_| SteadyError::Syntax(text.to_owned()))?;
    if !(percent > 0.0 && percent <= 100.0) {
        return Err(SteadyError::Range(text.to_owned()));
    }
    let window_ns = parse_duration_ns(window.trim())?;
    if window_ns < 50_000_000 {
        return Err(SteadyError::Window(text.to_owned()));
    }
    Ok(SteadyRule { range: percent / 100.0, slope: percent / 200.0, window_ns })
}

/// How a window looks beside its rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// Mean of the values, in their unit.
    pub mean: f64,
    /// Highest less lowest value, as a share of the mean.
    pub range: f64,
    /// How far the least-squares line moves from the first value to the last, as a share of the mean.
    pub slope: f64,
}

impl Steadiness {
    /// Of equidistant values. `None` for fewer than two, or where their mean is not above zero: a
    /// target that does nothing is not steady but stalled.
    #[must_use]
    pub fn measure(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() < 2 || !(mean.is_finite() && mean > 0.0) {
            return None;
        }
        let (low, high) =
            values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        let middle = (n - 1.0) / 2.0;
        let (mut products, mut squares) = (0.0, 0.0);
        for (index, value) in values.iter().enumerate() {
            let x = index as f64 - middle;
            products += x * (value - mean);
            squares += x * x;
        }
        let moved = products / squares * (n - 1.0);
        Some(Self { mean, range: (high - low) / mean, slope: moved.abs() / mean })
    }

    /// Whether both limits hold.
    #[must_use]
    pub fn keeps(&self, rule: &SteadyRule) -> bool {
        self.range <= rule.range && self.slope <= rule.slope
    }
}

/// Whether these values, one for each interval of a window, are steady.
#[must_use]
pub fn is_steady(values: &[f64], rule: &SteadyRule) -> bool {
    Steadiness::measure(values).is_some_and(|found| found.keeps(rule))
}

/// Watches a running count of operations until its rate is steady. Its memory is one window.
#[derive(Debug, Clone)]
pub struct SteadyDetector {
    rule: SteadyRule,
    interval_ns: u64,
    length: usize,
    window: VecDeque<f64>,
    last: Option<(u64, u64)>,
}

impl SteadyDetector {
    /// A detector that takes the rate over intervals of about `interval_ns`: shortened so that the
    /// window holds at least [`LEAST_WINDOW_INTERVALS`], lengthened so that it holds at most
    /// [`MAX_WINDOW_INTERVALS`].
    #[must_use]
    pub fn new(rule: SteadyRule, interval_ns: u64) -> Self {
        let wanted = usize::try_from(rule.window_ns / interval_ns.max(1)).unwrap_or(MAX_WINDOW_INTERVALS);
        let length = wanted.clamp(LEAST_WINDOW_INTERVALS, MAX_WINDOW_INTERVALS);
        let interval_ns = (rule.window_ns / length as u64).max(1);
        Self { rule, interval_ns, length, window: VecDeque::with_capacity(length), last: None }
    }

    /// Takes in that `operations` were completed in all when the clock showed `now_ns`, and answers
    /// whether the last window was steady. May be called at any pace: a rate is taken once an
    /// interval or more has passed, over the time that really passed.
    pub fn look(&mut self, now_ns: u64, operations: u64) -> bool {
        let Some((then_ns, before)) = self.last else {
            self.last = Some((now_ns, operations));
            return false;
        };
        let passed_ns = now_ns.saturating_sub(then_ns);
        if passed_ns < self.interval_ns {
            return false;
        }
        self.last = Some((now_ns, operations));
        if self.window.len() == self.length {
            self.window.pop_front();
        }
        self.window.push_back(operations.saturating_sub(before) as f64 * 1e9 / passed_ns as f64);
        self.window.len() == self.length && is_steady(self.window.make_contiguous(), &self.rule)
    }

    /// How often to look, in nanoseconds.
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// The window as it looks now, to say why it is not steady.
    #[must_use]
    pub fn steadiness(&self) -> Option<Steadiness> {
        Steadiness::measure(&self.window.iter().copied().collect::<Vec<f64>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use virtbench_units::Random;

    const SNIA: SteadyRule = SteadyRule { range: 0.2, slope: 0.1, window_ns: 5_000_000_000 };

    #[test]
    fn the_specification_s_limits() {
        assert!(is_steady(&[100.0, 101.0, 99.0, 100.0, 100.0], &SNIA));
        // Range 25 %, no slope.
        assert!(!is_steady(&[100.0, 112.0, 100.0, 87.0, 100.0], &SNIA));
        // A line from 94 to 106: range 12 %, slope 12 %.
        assert!(!is_steady(&[94.0, 97.0, 100.0, 103.0, 106.0], &SNIA));
        assert!(is_steady(&[96.0, 98.0, 100.0, 102.0, 104.0], &SNIA));
    }

    #[test]
    fn slope_and_range_of_a_line_are_equal() {
        let found = Steadiness::measure(&[90.0, 95.0, 100.0, 105.0, 110.0]).unwrap();
        assert!((found.slope - 0.2).abs() < 1e-12 && (found.range - 0.2).abs() < 1e-12);
        assert_eq!(Steadiness::measure(&[5.0]), None);
        assert_eq!(Steadiness::measure(&[0.0, 0.0, 0.0]), None, "a stalled target is not steady");
    }

    /// Feeds a rate over time, one look each 100 ms; returns when steady, in seconds.
    fn settle(rule: &str, seed: u64, rate: impl Fn(f64) -> f64) -> Option<f64> {
        let mut detector = SteadyDetector::new(parse_steady(rule).unwrap(), 1_000_000_000);
        let (mut random, mut operations) = (Random::new(seed), 0.0);
        for tick in 0..6_000u64 {
            let seconds = tick as f64 / 10.0;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            if detector.look(tick * 100_000_000, operations as u64) {
                return Some(seconds);
            }
            operations += rate(seconds) / 10.0 * (1.0 + 0.01 * (random.unit() - 0.5));
        }
        None
    }

    #[test]
    fn a_cache_that_fills_is_waited_out() {
        // Fast for 20 s, then a decay to a tenth: steady only once the decay has left the window.
        let filling =
            |t: f64| if t < 20.0 { 50_000.0 } else { 5_000.0 + 45_000.0 * (-(t - 20.0) / 15.0).exp() };
        let settled = settle("5%/30s", 1, filling).unwrap();
        assert!((90.0..180.0).contains(&settled), "{settled}");
        assert_eq!(settle("5%/10s", 1, |_| 1_000.0).map(f64::round), Some(10.0));
    }

    #[test]
    fn what_swings_is_never_steady() {
        assert_eq!(settle("5%/30s", 1, |t| 1_000.0 * (1.0 + 0.2 * (t / 5.0).sin())), None);
        assert_eq!(settle("5%/30s", 1, |_| 0.0), None);
    }

    #[test]
    fn a_detector_keeps_one_window() {
        let mut detector = SteadyDetector::new(parse_steady("5%/100h").unwrap(), 1_000_000);
        assert!(detector.interval_ns() >= 100 * 3_600 * 1_000_000_000 / 3_600);
        for tick in 0..10_000 {
            detector.look(tick * detector.interval_ns(), tick * 100);
        }
        assert_eq!(detector.window.len(), MAX_WINDOW_INTERVALS);
    }

    #[test]
    fn the_flag_is_read_and_errors_quote_it() {
        assert_eq!(
            parse_steady("5%/30s"),
            Ok(SteadyRule { range: 0.05, slope: 0.025, window_ns: 30_000_000_000 })
        );
        assert_eq!(parse_steady("20 / 5m").map(|rule| rule.slope), Ok(0.1));
        for text in ["", "5%", "5%/", "/30s", "0%/30s", "101%/30s", "nan/30s", "-5%/30s", "5%/1ms", "5%/30"] {
            let message = parse_steady(text).unwrap_err().to_string();
            assert!(message.contains("rule of steadiness"), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_steady(&text);
        }

        #[test]
        fn the_unit_does_not_matter(values in prop::collection::vec(1.0f64..1e6, 5..40), factor in 1e-3f64..1e3) {
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            let (one, other) = (Steadiness::measure(&values).unwrap(), Steadiness::measure(&scaled).unwrap());
            prop_assert!((one.range - other.range).abs() < 1e-6 && (one.slope - other.slope).abs() < 1e-6);
            prop_assert!(one.slope <= 1.5 * one.range + 1e-9, "no line moves much further than its values");
        }

        #[test]
        fn no_count_panics_the_detector(looks in prop::collection::vec((any::<u64>(), any::<u64>()), 0..50)) {
            let mut detector = SteadyDetector::new(SNIA, 1_000_000_000);
            for (now_ns, operations) in looks {
                detector.look(now_ns, operations);
            }
        }
    }
}
