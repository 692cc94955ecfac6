//! Numbers as a reader wants them, and the cost of a path to an appliance in words.

use virtbench_model::Span;
use virtbench_model::together::Overload;
use virtbench_record::{PathCost, SetStart};
use virtbench_units::with_commas;

/// Bytes in a megabyte, as in all rates of the report (decimal, as on a disk's label).
pub(crate) const MEGABYTE: f64 = 1e6;

/// Bytes in a kilobyte.
pub(crate) const KILOBYTE: f64 = 1e3;

/// How a unit is shown: by what its values are multiplied, and its name then.
pub(crate) fn scaled(unit: &str) -> (f64, &str) {
    match unit {
        "B/s" => (1.0 / MEGABYTE, "MB/s"),
        "ns" => (1.0 / MILLISECOND_NS, "ms"),
        unit => (1.0, unit),
    }
}

/// A value with its unit, as `120 MB/s`; `unit` is as records have it, and empty for a ratio.
#[must_use]
pub fn with_unit(value: f64, unit: &str) -> String {
    let (factor, unit) = scaled(unit);
    let space = if unit.is_empty() { "" } else { " " };
    format!("{}{space}{unit}", significant(value * factor))
}

/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND_NS: f64 = 1e6;

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: f64 = 1e9;

/// Three significant digits, or all of an integer part of more, with commas between thousands.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.1 => 3,
        size if size >= 0.01 => 4,
        size if size >= 0.001 => 5,
        _ => return format!("{value:.1e}"),
    };
    with_commas(&rounded(value, decimals))
}

/// So many decimals, less the zeros they end with; never a zero with a sign.
pub(crate) fn trimmed(value: f64, decimals: usize) -> String {
    let text = rounded(value, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// So many decimals; never a zero with a sign. Every number of a page is written by this.
pub(crate) fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| c == '0' || c == '.') => zero.to_owned(),
        _ => text,
    }
}

/// No decimals, with commas between thousands.
pub(crate) fn whole(value: f64) -> String {
    with_commas(&rounded(value, 0))
}

/// A ratio: two decimals, more only where it is very small.
pub(crate) fn ratio(value: f64) -> String {
    if value >= 99.95 {
        significant(value)
    } else if value.abs() >= 0.1 || value == 0.0 {
        rounded(value, 2)
    } else if value.abs() >= 0.001 {
        rounded(value, 3)
    } else {
        format!("{value:.1e}")
    }
}

/// Both ends of a range of ratios.
pub(crate) fn ratio_span(span: Span) -> String {
    format!("{} to {}", ratio(span.low), ratio(span.high))
}

/// `1 point`, `2 points`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", with_commas(&number.to_string())),
    }
}

/// What stands behind a set whose figures are no finding, and one whose machines did not begin together exactly.
#[must_use]
pub fn set_marks(overload: Option<Overload>, loose_start: Option<SetStart>) -> &'static str {
    match (overload, loose_start) {
        (Some(_), Some(_)) => " * †",
        (Some(_), None) => " *",
        (None, Some(_)) => " †",
        (None, None) => "",
    }
}

/// A command line that a shell would read back.
pub(crate) fn shell_line(arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted: Vec<String> = arguments
        .iter()
        .map(|argument| {
            if !argument.is_empty() && argument.chars().all(plain) {
                argument.clone()
            } else {
                format!("'{}'", argument.replace('\'', r"'\''"))
            }
        })
        .collect();
    quoted.join(" ")
}

/// Round trips and rates of a path.
pub(crate) fn path_cost(cost: &PathCost) -> String {
    format!(
        "{} ms median round trip ({} ms for 99 %), {} MB/s to it, {} MB/s from it",
        significant(cost.round_trip_median_ns as f64 / MILLISECOND_NS),
        significant(cost.round_trip_p99_ns as f64 / MILLISECOND_NS),
        significant(cost.to_bytes_per_s / MEGABYTE),
        significant(cost.from_bytes_per_s / MEGABYTE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_significant() {
        for (value, text) in [
            (0.0, "0"),
            (0.01234, "0.0123"),
            (0.5, "0.500"),
            (1.0, "1.00"),
            (12.34, "12.3"),
            (99.96, "100"),
            (123.4, "123"),
            (1_234_567.0, "1,234,567"),
            (-1_234.0, "-1,234"),
            (0.000_12, "1.2e-4"),
            (-0.0, "0"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(significant(value), text);
        }
        assert_eq!(
            (rounded(-0.04, 1), rounded(-0.06, 1), whole(-0.3)),
            ("0.0".into(), "-0.1".into(), "0".into())
        );
        assert_eq!(
            (trimmed(5.0, 2), trimmed(2.5, 2), trimmed(100.0, 0)),
            ("5".into(), "2.5".into(), "100".into())
        );
    }

    #[test]
    fn ratios_keep_two_decimals_unless_tiny() {
        for (value, text) in [(0.623, "0.62"), (12.345, "12.35"), (0.0421, "0.042"), (1234.0, "1,234")] {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn a_shell_would_read_the_line_back() {
        let line = shell_line(&["a".into(), "b c".into(), "it's".into(), String::new(), "k=v,w".into()]);
        assert_eq!(line, r"a 'b c' 'it'\''s' '' k=v,w");
    }
}
