//! Where an axis begins and ends, and its ticks: round numbers around the values.

/// Ticks at most, however much room there is: more are no easier to read.
const TICKS_MOST: usize = 7;

/// A value that an axis names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) text: String,
}

/// An axis from its least to its greatest value.
#[derive(Debug, PartialEq)]
pub(crate) struct Steps {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) ticks: Vec<Tick>,
}

/// Whether ticks have room beside each other.
pub(crate) type Fits<'a> = &'a dyn Fn(&[Tick]) -> bool;

/// How a linear axis is divided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    /// Ticks are whole numbers.
    pub(crate) whole: bool,
    /// The axis ends where it is told to, not at a tick.
    pub(crate) fixed: bool,
}

/// As many steps of 1, 2 or 5 times a power of ten as fit. `high` lies above `low`.
pub(crate) fn linear(low: f64, high: f64, division: Division, fits: Fits<'_>) -> Steps {
    let divided = |most: usize| divide(low, high, division, most as f64);
    (2..TICKS_MOST).rev().map(divided).find(|steps| fits(&steps.ticks)).unwrap_or_else(|| divided(1))
}

fn divide(low: f64, high: f64, division: Division, most: f64) -> Steps {
    /// Of a step: what rounding may have added or taken away.
    const SLACK: f64 = 1e-6;
    let step = round_step((high - low) / most);
    let step = if division.whole { step.max(1.0) } else { step };
    let (first, last) = if division.fixed {
        ((low / step - SLACK).ceil(), (high / step + SLACK).floor())
    } else {
        let first = (low / step + SLACK).floor();
        (first, (high / step - SLACK).ceil().max(first + 1.0))
    };
    let most = low.abs().max(high.abs());
    let places = (0..=2 * TICKS_MOST).map(|place| first + place as f64).take_while(|place| *place <= last);
    let ticks = places.map(|place| place * step);
    let ticks = ticks.map(|value| Tick { value, text: label(value, step, most, 1e4) }).collect();
    if division.fixed {
        Steps { low, high, ticks }
    } else {
        Steps { low: first * step, high: last * step, ticks }
    }
}

/// The least round number that is no smaller.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powi(decade(step));
    let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    round.into_iter().find(|round| *round >= step * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// Ticks at 1, 2 and 5 times powers of ten if they fit, else at 1 and 3 times, else at powers of ten. Both ends are positive.
pub(crate) fn logarithmic(low: f64, high: f64, fits: Fits<'_>) -> Steps {
    let (mut first, mut last) = (3 * decade(low), 3 * decade(high) + 3);
    while round(first + 1) <= low * (1.0 + 1e-9) {
        first += 1;
    }
    while last > first + 1 && round(last - 1) >= high * (1.0 - 1e-9) {
        last -= 1;
    }
    let (low, high) = (round(first), round(last));
    let named = |value: f64| Tick { value, text: label(value, value, value, 1e3) };
    let every = |places: i32| -> Vec<Tick> {
        (first..=last).filter(|place| place.rem_euclid(places) == 0).map(round).map(named).collect()
    };
    let threes =
        (decade(low)..=decade(high)).flat_map(|power| [1.0, 3.0].map(|factor| factor * 10f64.powi(power)));
    let threes = threes.filter(|value| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value)).map(named);
    let wider = [3, 6, 9, 15, 30, 60, 150, 300].into_iter().map(every);
    let found = [every(1), threes.collect()].into_iter().chain(wider).find(|ticks| fits(ticks));
    Steps { low, high, ticks: found.unwrap_or_default() }
}

/// The numbers 1, 2, 5, 10, 20 and so on, by their place from 1 on.
fn round(place: i32) -> f64 {
    let factor = match place.rem_euclid(3) {
        0 => 1.0,
        1 => 2.0,
        _ => 5.0,
    };
    factor * 10f64.powi(place.div_euclid(3))
}

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
    use proptest::prelude::*;

    use super::*;

    const FREE: Division = Division { whole: false, fixed: false };

    fn texts(steps: &Steps) -> Vec<&str> {
        steps.ticks.iter().map(|tick| tick.text.as_str()).collect()
    }

    #[test]
    fn an_axis_ends_at_round_numbers_around_its_values() {
        let steps = linear(0.0, 347.0, FREE, &|ticks| ticks.len() < 6);
        assert_eq!(
            (steps.low, steps.high, texts(&steps)),
            (0.0, 400.0, vec!["0", "100", "200", "300", "400"])
        );
        let steps = linear(-0.12, 0.31, FREE, &|ticks| ticks.len() < 6);
        assert_eq!(texts(&steps), ["-0.2", "0", "0.2", "0.4"]);
    }

    #[test]
    fn a_range_that_was_asked_for_is_kept() {
        let steps = linear(0.5, 3.5, Division { whole: true, fixed: true }, &|_| true);
        assert_eq!((steps.low, steps.high, texts(&steps)), (0.5, 3.5, vec!["1", "2", "3"]));
    }

    #[test]
    fn logarithms_have_1_2_and_5_where_they_fit() {
        assert_eq!(texts(&logarithmic(0.3, 4.0, &|_| true)), ["0.2", "0.5", "1", "2", "5"]);
        let wide = logarithmic(0.004, 70_000.0, &|ticks| ticks.len() < 10);
        assert_eq!((wide.low, wide.high), (0.002, 100_000.0));
        assert_eq!(texts(&wide), ["0.01", "0.1", "1", "10", "100", "1k", "10k", "100k"]);
        assert_eq!(texts(&logarithmic(5.0, 5.0, &|_| true)), ["5", "10"]);
    }

    proptest! {
        #[test]
        fn ticks_ascend_within_an_axis_that_holds_its_values(
            low in -1e9..1e9f64,
            span in 1e-3..1e9f64,
            whole in any::<bool>(),
            fixed in any::<bool>(),
            room in 2..9usize,
        ) {
            let high = low + span;
            let steps = linear(low, high, Division { whole, fixed }, &|ticks| ticks.len() < room);
            prop_assert!(steps.low <= low + 1e-6 * span && steps.high >= high - 1e-6 * span);
            assert_ascending(&steps);
            prop_assert!(fixed || whole || steps.ticks.len() >= 2, "{steps:?}");
        }

        #[test]
        fn logarithmic_ticks_ascend_within_an_axis_that_holds_its_values(
            low in -12.0..12.0f64,
            span in 0.0..12.0f64,
            room in 2..9usize,
        ) {
            let (low, high) = (10f64.powf(low), 10f64.powf(low + span));
            let steps = logarithmic(low, high, &|ticks| ticks.len() < room);
            prop_assert!(steps.low <= low * 1.000_001 && steps.high >= high * 0.999_999, "{steps:?}");
            assert_ascending(&steps);
        }
    }

    /// Values and texts are different from tick to tick, and inside.
    fn assert_ascending(steps: &Steps) {
        assert!(steps.ticks.is_sorted_by(|one, next| one.value < next.value), "{steps:?}");
        assert!(steps.ticks.windows(2).all(|pair| pair[0].text != pair[1].text), "{steps:?}");
        let slack = 1e-9 * (steps.high - steps.low);
        assert!(
            steps.ticks.iter().all(|tick| (steps.low - slack..=steps.high + slack).contains(&tick.value)),
            "{steps:?}"
        );
    }

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
