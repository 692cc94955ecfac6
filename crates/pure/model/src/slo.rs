//! A service level: a limit on one figure of the latency.

use serde::{Serialize, Serializer};
use thiserror::Error;
use virtbench_units::{DurationError, LatencySummary, parse_duration_ns};

/// A figure of the latency that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LatencyMetric {
    Mean,
    P50,
    P90,
    P95,
    P99,
    P99_9,
    Max,
}

impl Serialize for LatencyMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl LatencyMetric {
    const ALL: [(&str, Self); 7] = [
        ("mean", Self::Mean),
        ("p50", Self::P50),
        ("p90", Self::P90),
        ("p95", Self::P95),
        ("p99", Self::P99),
        ("p99.9", Self::P99_9),
        ("max", Self::Max),
    ];

    /// Its name in a service level.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, figure)| *figure == self).map_or("", |(name, _)| name)
    }

    /// Its value, in nanoseconds.
    #[must_use]
    pub fn value_in(self, latency: &LatencySummary) -> f64 {
        match self {
            Self::Mean => latency.mean,
            Self::P50 => latency.p50 as f64,
            Self::P90 => latency.p90 as f64,
            Self::P95 => latency.p95 as f64,
            Self::P99 => latency.p99 as f64,
            Self::P99_9 => latency.p99_9 as f64,
            Self::Max => latency.max as f64,
        }
    }
}

/// A service level such as "p99 below 10 ms".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slo {
    /// What is limited.
    pub figure: LatencyMetric,
    /// The limit, in nanoseconds.
    pub limit_ns: u64,
}

/// A service level that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SloError {
    /// It has not the form of one.
    #[error(
        "{0:?} is no service level: write mean, p50, p90, p95, p99, p99.9 or max, and a limit, such as p99<10ms"
    )]
    Syntax(String),
    /// The limit is no duration.
    #[error("service level: {0}")]
    Duration(#[from] DurationError),
}

/// Reads `p99<10ms`.
///
/// # Errors
/// An unknown figure, or a limit that is no duration or zero; the message quotes it.
pub fn parse_slo(text: &str) -> Result<Slo, SloError> {
    let syntax = || SloError::Syntax(text.to_owned());
    let (name, limit) = text.split_once('<').ok_or_else(syntax)?;
    let (_, figure) =
        LatencyMetric::ALL.into_iter().find(|(known, _)| *known == name.trim()).ok_or_else(syntax)?;
    let limit_ns = parse_duration_ns(limit.trim_start_matches('=').trim())?;
    if limit_ns == 0 { Err(syntax()) } else { Ok(Slo { figure, limit_ns }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn service_levels_are_read() {
        assert_eq!(parse_slo("p99<10ms"), Ok(Slo { figure: LatencyMetric::P99, limit_ns: 10_000_000 }));
        assert_eq!(parse_slo("p99.9 <= 1s").map(|slo| slo.figure.name()), Ok("p99.9"));
    }

    #[test]
    fn errors_quote_the_text() {
        for text in ["", "p99", "p98<10ms", "p99<10", "p99<0ms", "p99>10ms"] {
            assert!(parse_slo(text).unwrap_err().to_string().contains("service level"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_slo(&text);
        }
    }
}
