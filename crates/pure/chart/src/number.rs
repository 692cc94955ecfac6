//! Numbers on axes.

/// Greatest magnitude that is drawn, and least one that is not zero: beyond, sums and powers of ten would overflow.
const GREATEST: f64 = 1e300;

/// A number that can be calculated with, if it is one.
pub(crate) fn sane(value: f64) -> Option<f64> {
    let value = value.is_finite().then(|| value.clamp(-GREATEST, GREATEST))?;
    Some(if value.abs() < 1.0 / GREATEST { 0.0 } else { value })
}

/// The power of ten that a number begins with; zero has none, and gets the least.
#[expect(
    clippy::cast_possible_truncation,
    reason = "logarithms of numbers that are sane lie between -300 and 300"
)]
pub(crate) fn decade(value: f64) -> i32 {
    if value == 0.0 { -300 } else { (value.abs().log10() + 1e-9).floor() as i32 }
}

/// A tick's text: with as many decimals as `step` has, in thousands, millions or powers of ten as `most`, the greatest on the
/// axis, asks for.
pub(crate) fn label(value: f64, step: f64, most: f64, thousands_from: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e15).contains(&most) {
        let digits = usize::try_from(decade(value) - decade(step)).unwrap_or(0);
        return format!("{value:.digits$e}");
    }
    let (unit, name) = match most {
        most if most >= 1e12 => (1e12, "T"),
        most if most >= 1e9 => (1e9, "G"),
        most if most >= 1e6 => (1e6, "M"),
        most if most >= thousands_from => (1e3, "k"),
        _ => (1.0, ""),
    };
    let decimals = usize::try_from(-decade(step / unit)).unwrap_or(0);
    let text = format!("{:.decimals$}", value / unit);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{}{name}", with_comma(text))
}

/// A comma before the last three digits of whole thousands; axes have no more digits.
fn with_comma(text: &str) -> String {
    let digits = text.trim_start_matches('-').len();
    if text.contains('.') || digits < 4 {
        return text.to_owned();
    }
    let (thousands, rest) = text.split_at(text.len() - 3);
    format!("{thousands},{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short() {
        for (value, step, most, text) in [
            (0.0, 0.2, 1.0, "0"),
            (0.6000000000000001, 0.2, 1.0, "0.6"),
            (1500.0, 500.0, 2000.0, "1,500"),
            (-1500.0, 500.0, 2000.0, "-1,500"),
            (5000.0, 5000.0, 20_000.0, "5k"),
            (1.5e6, 5e5, 2e6, "1.5M"),
            (2e9, 1e9, 2e9, "2G"),
            (3.0000000000000004e-5, 1e-5, 5e-5, "3e-5"),
            (1.5e20, 5e19, 2e20, "1.5e20"),
        ] {
            assert_eq!(label(value, step, most, 1e4), text);
        }
    }
}
