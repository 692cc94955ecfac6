//! Durations in nanoseconds.

use std::time::Duration;

use thiserror::Error;

/// A duration that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not a duration: write a number with a unit, such as 500us, 20ms, 5s or 3m")]
pub struct DurationError {
    text: String,
}

/// Reads a duration such as `0ms`, `1s`, `1m 30s`; the result is in nanoseconds.
///
/// # Errors
/// The text has no unit, an unknown unit, or exceeds 2^63 ns (292 years).
pub fn parse_duration_ns(text: &str) -> Result<u64, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    let duration = humantime::parse_duration(text).map_err(|_| error())?;
    i64::try_from(duration.as_nanos()).map(i64::unsigned_abs).map_err(|_| error())
}

/// Reads a duration longer than nothing, such as `1s`; the result is in nanoseconds.
///
/// # Errors
/// As [`parse_duration_ns`]; or the duration is zero.
pub fn parse_positive_duration_ns(text: &str) -> Result<u64, String> {
    match parse_duration_ns(text) {
        Ok(0) => Err(format!("{text:?} is no time at all: write a longer one")),
        read => read.map_err(|error| error.to_string()),
    }
}

/// Writes a duration so that [`parse_duration_ns`] gives it back.
#[must_use]
pub fn format_duration_ns(nanoseconds: u64) -> String {
    humantime::format_duration(Duration::from_nanos(nanoseconds)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_forms() {
        assert_eq!(parse_duration_ns("0ms"), Ok(0));
        assert!(parse_positive_duration_ns("0ms").unwrap_err().contains("no time"));
        assert_eq!(parse_positive_duration_ns("1ns"), Ok(1));
        assert_eq!(parse_duration_ns("1s"), Ok(1_000_000_000));
        assert_eq!(parse_duration_ns("250us"), Ok(250_000));
        assert_eq!(parse_duration_ns("3m"), Ok(180_000_000_000));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "5", "-1s", "5 parsecs", "99999999999y"] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(ns in 0..u64::MAX / 2) {
            prop_assert_eq!(parse_duration_ns(&format_duration_ns(ns)), Ok(ns));
        }
    }
}
