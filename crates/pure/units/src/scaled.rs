//! Measured values for people: a few digits and the unit that fits.

/// A figure to seven significant digits, which is more than any measurement knows; whole numbers, which may be counts,
/// as they are.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// Writes a time in nanoseconds with three or more significant digits in the unit that fits, such as
/// `850 ns`, `12.3 us`, `4.57 ms` or `31.2 s`.
#[must_use]
pub fn format_latency_ns(ns: f64) -> String {
    scaled(ns, 1e3, &["ns", "us", "ms", "s"])
}

/// Writes a measured number of bytes with three or more significant digits in the binary unit that fits,
/// such as `96.2 MiB`.
#[must_use]
pub fn format_about_bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // What would be rounded up to a whole step is written in the larger unit.
    while unit + 1 < units.len() && value.abs() >= step - 0.5 {
        value /= step;
        unit += 1;
    }
    let decimals = match value.abs() {
        _ if unit == 0 => 0,
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", units[unit])
}

/// A number in digits with commas between its thousands.
#[must_use]
pub fn with_commas(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let whole = number.split('.').next().unwrap_or(number).len();
    let mut text = String::from(sign);
    for (index, digit) in number.char_indices() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_fits_and_three_digits_stay() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 us"),
            (12_345.0, "12.3 us"),
            (600_309.8, "600 us"),
            (999_960.0, "1.00 ms"),
            (4_567_000.0, "4.57 ms"),
            (600_309_800.0, "600 ms"),
            (31_234_000_000.0, "31.2 s"),
            (7_200e9, "7200 s"),
        ] {
            assert_eq!(format_latency_ns(ns), text, "{ns}");
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        let whole = |value: f64| with_commas(&format!("{value:.0}"));
        assert_eq!([7.4, 1_000.0, 54_321.0, 1_234_567.0].map(whole), ["7", "1,000", "54,321", "1,234,567"]);
        assert_eq!(["-1234.5678", "999"].map(with_commas), ["-1,234.5678", "999"]);
    }

    #[test]
    fn what_is_no_whole_number_keeps_seven_digits() {
        for (value, expected) in [
            (0.1 + 0.2, 0.3),
            (-2.0 / 3.0, -0.666_666_7),
            (1e-9 / 3.0, 3.333_333e-10),
            (123_456_789.25, 123_456_800.0),
            (123_456_789.0, 123_456_789.0),
            (0.0, 0.0),
            (f64::INFINITY, f64::INFINITY),
        ] {
            assert_eq!(rounded(value), expected, "{value}");
            assert_eq!(rounded(rounded(value)), expected, "rounded twice: {value}");
        }
        assert!(rounded(f64::NAN).is_nan());
    }

    #[test]
    fn bytes_have_binary_units() {
        assert_eq!(format_about_bytes(512.0), "512 B");
        assert_eq!(format_about_bytes(1_048_576.0), "1.00 MiB");
        assert_eq!(format_about_bytes(1e9), "954 MiB");
        assert_eq!(format_about_bytes(3e12), "2.73 TiB");
    }
}
