//! Latencies of all operations: exact moments beside an HdrHistogram.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest latency the histogram resolves; a longer one is counted as this (one hour, in ns).
pub const LATENCY_CEILING_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits kept by the histogram: percentiles are within 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latency statistics of a set of operations, every field in nanoseconds.
///
/// `min`, `mean`, `stddev` and `max` are exact; the percentiles come from an HdrHistogram of all
/// operations with three significant digits. `stddev` is that of the population.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct LatencySummary {
    pub min: u64,
    pub mean: f64,
    pub stddev: f64,
    pub max: u64,
    pub p50: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    #[serde(rename = "p99_9")]
    pub p99_9: u64,
    /// Absent from records older than this field.
    #[serde(rename = "p99_99", default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<u64>,
}

impl LatencySummary {
    /// Of a histogram that is not empty, in nanoseconds: min, mean, stddev and max are as exact as its buckets.
    #[must_use]
    pub fn of_histogram(histogram: &Histogram<u64>) -> Self {
        Self {
            min: histogram.min(),
            mean: histogram.mean(),
            stddev: histogram.stdev(),
            max: histogram.max(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            p99_99: Some(histogram.value_at_quantile(0.9999)),
        }
    }
}

/// A histogram that cannot be read back.
#[derive(Debug, Error)]
#[error("a stored latency histogram cannot be read: {0}")]
pub struct CodecError(String);

/// Records every latency of one kind of operation.
///
/// The exact sums are kept beside the histogram because HdrHistogram's own mean is that of bucket
/// midpoints, up to 0.1 % off; comparing tools by mean latency should not depend on that.
#[derive(Debug, Clone)]
pub struct LatencyRecorder {
    histogram: Histogram<u64>,
    sum_ns: u128,
    sum_squares_ns2: u128,
    /// Squares that are not yet in the sum: adding up in one word is quicker.
    recent_squares_ns2: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyRecorder {
    /// A recorder that has seen nothing.
    #[must_use]
    #[allow(clippy::expect_used)]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_CEILING_NS, SIGNIFICANT_DIGITS)
            .expect("constant bounds are valid");
        Self { histogram, sum_ns: 0, sum_squares_ns2: 0, recent_squares_ns2: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Records one operation that took `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        match ns.checked_mul(ns).and_then(|square| square.checked_add(self.recent_squares_ns2)) {
            Some(squares) => self.recent_squares_ns2 = squares,
            None => self.add_wide_square(ns),
        }
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    #[cold]
    fn add_wide_square(&mut self, ns: u64) {
        let wide = u128::from(ns);
        self.sum_squares_ns2 = self.squares_ns2().saturating_add(wide * wide);
        self.recent_squares_ns2 = 0;
    }

    fn squares_ns2(&self) -> u128 {
        self.sum_squares_ns2.saturating_add(self.recent_squares_ns2.into())
    }

    /// Adds everything `other` has seen.
    #[allow(clippy::expect_used)]
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all recorders have the same bounds");
        self.sum_ns += other.sum_ns;
        self.sum_squares_ns2 = self.sum_squares_ns2.saturating_add(other.squares_ns2());
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Operations recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The statistics, or `None` where nothing was recorded: a latency of zero would be a lie.
    #[must_use]
    pub fn summary(&self) -> Option<LatencySummary> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let n = count as f64;
        let mean = self.sum_ns as f64 / n;
        let percentile = |p: f64| self.histogram.value_at_quantile(p / 100.0).min(self.max_ns);
        Some(LatencySummary {
            min: self.min_ns,
            mean,
            stddev: self.variance_ns2(count).sqrt(),
            max: self.max_ns,
            p50: percentile(50.0),
            p90: percentile(90.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
            p99_9: percentile(99.9),
            p99_99: Some(percentile(99.99)),
        })
    }

    /// Variance of the population of `count` latencies, in square nanoseconds. The difference of two large
    /// sums is taken in whole numbers, around the whole part of the mean: in floating point nothing would
    /// be left of it where latencies differ little beside their length.
    fn variance_ns2(&self, count: u64) -> f64 {
        let (whole, rest) = (self.sum_ns / u128::from(count), self.sum_ns % u128::from(count));
        let squares = self.squares_ns2().saturating_sub(whole.saturating_mul(self.sum_ns + rest));
        let (n, rest) = (count as f64, rest as f64);
        (squares as f64 / n - (rest / n).powi(2)).max(0.0)
    }

    /// The histogram itself, in nanoseconds.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The histogram in HdrHistogram's compressed V2 format, in base64, as its log files hold it.
    ///
    /// # Errors
    /// The serializer failed, which only an exhausted memory can cause.
    pub fn encode_histogram(&self) -> Result<String, CodecError> {
        encode_histogram(&self.histogram)
    }
}

/// A histogram in HdrHistogram's compressed V2 format, in base64.
///
/// # Errors
/// The serializer failed, which only an exhausted memory can cause.
pub fn encode_histogram(histogram: &Histogram<u64>) -> Result<String, CodecError> {
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    written.map_err(|error| CodecError(error.to_string()))?;
    Ok(BASE64.encode(bytes))
}

/// Reads what [`LatencyRecorder::encode_histogram`] wrote.
///
/// # Errors
/// The text is not base64 or not a histogram.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, CodecError> {
    let bytes = BASE64.decode(text).map_err(|error| CodecError(error.to_string()))?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| CodecError(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_recorded_is_no_summary() {
        assert_eq!(LatencyRecorder::new().summary(), None);
    }

    #[test]
    fn moments_are_exact() {
        let mut recorder = LatencyRecorder::new();
        for ns in [1_000_001, 2_000_003, 3_000_005] {
            recorder.record(ns);
        }
        let summary = recorder.summary().unwrap();
        assert_eq!((summary.min, summary.max), (1_000_001, 3_000_005));
        assert!((summary.mean - 2_000_003.0).abs() < 1e-6);
        assert!((summary.stddev - 816_498.2).abs() < 1.0, "{}", summary.stddev);
    }

    #[test]
    fn a_latency_beyond_the_ceiling_is_kept_in_the_maximum() {
        let mut recorder = LatencyRecorder::new();
        recorder.record(LATENCY_CEILING_NS * 3);
        assert_eq!(recorder.summary().unwrap().max, LATENCY_CEILING_NS * 3);
        assert_eq!(recorder.count(), 1);
    }

    proptest! {
        /// Latencies that differ little beside their length, on which the textbook sum of squares fails.
        #[test]
        fn the_deviation_of_long_latencies_that_differ_little_is_exact(
            base in 1u64..LATENCY_CEILING_NS, offsets in prop::collection::vec(0u64..1_000, 1..300),
        ) {
            let mut recorder = LatencyRecorder::new();
            offsets.iter().for_each(|offset| recorder.record(base + offset));
            let n = offsets.len() as f64;
            let mean = offsets.iter().sum::<u64>() as f64 / n;
            let squares: f64 = offsets.iter().map(|offset| (*offset as f64 - mean).powi(2)).sum();
            let (exact, found) = ((squares / n).sqrt(), recorder.summary().unwrap().stddev);
            prop_assert!((found - exact).abs() <= 1e-9 * exact.max(1.0), "{found} instead of {exact}");
        }

        #[test]
        fn percentiles_agree_with_sorting(mut values in prop::collection::vec(1u64..10_000_000_000, 1..400)) {
            let mut recorder = LatencyRecorder::new();
            values.iter().for_each(|v| recorder.record(*v));
            values.sort_unstable();
            let summary = recorder.summary().unwrap();
            for (p, got) in [(0.5, summary.p50), (0.9, summary.p90), (0.95, summary.p95), (0.99, summary.p99), (0.999, summary.p99_9)] {
                let rank = ((p * values.len() as f64).ceil() as usize).max(1);
                let want = values[rank - 1] as f64;
                prop_assert!((got as f64 - want).abs() <= want * 0.001 + 1.0, "p{p}: {got} for {want}");
            }
        }

        #[test]
        fn merging_equals_recording_together(a in prop::collection::vec(1u64..1_000_000, 0..50), b in prop::collection::vec(1u64..1_000_000, 1..50)) {
            let (mut left, mut right, mut both) = (LatencyRecorder::new(), LatencyRecorder::new(), LatencyRecorder::new());
            a.iter().for_each(|v| { left.record(*v); both.record(*v); });
            b.iter().for_each(|v| { right.record(*v); both.record(*v); });
            left.merge(&right);
            let (left, both) = (left.summary().unwrap(), both.summary().unwrap());
            prop_assert_eq!((left.min, left.max, left.p50, left.p99), (both.min, both.max, both.p50, both.p99));
            prop_assert!((left.mean - both.mean).abs() < 1e-3);
        }

        #[test]
        fn histograms_survive_their_text_form(values in prop::collection::vec(1u64..1_000_000_000, 0..100)) {
            let mut recorder = LatencyRecorder::new();
            values.iter().for_each(|v| recorder.record(*v));
            let decoded = decode_histogram(&recorder.encode_histogram().unwrap()).unwrap();
            prop_assert_eq!(&decoded, recorder.histogram());
        }

        #[test]
        fn no_text_panics_the_decoder(text in ".{0,80}") {
            let _ = decode_histogram(&text);
        }
    }
}
