//! What an axis measures.

use crate::ticks::{Division, Fits, Steps, Tick, linear, logarithmic, sane};

/// How values become places.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// In proportion, from round number to round number.
    Linear,
    /// In proportion, zero included.
    FromZero,
    /// Of numbers that are counted, zero included.
    Whole,
    /// By their logarithm; what is not positive is not drawn.
    Logarithmic,
    /// Side by side; a value is the place of its name in the list.
    Categories(Vec<String>),
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub title: String,
    /// How values become places.
    pub scale: Scale,
    /// Where it begins and ends, where that is not for the values to say.
    pub range: Option<[f64; 2]>,
    /// What it names, where that is not round numbers.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis of this scale.
    pub fn new(title: impl Into<String>, scale: Scale) -> Self {
        Self { title: title.into(), scale, range: None, ticks: Vec::new() }
    }

    /// In proportion, zero included.
    pub fn from_zero(title: impl Into<String>) -> Self {
        Self::new(title, Scale::FromZero)
    }

    /// By logarithm.
    pub fn logarithmic(title: impl Into<String>) -> Self {
        Self::new(title, Scale::Logarithmic)
    }

    /// Names side by side.
    pub fn categories(title: impl Into<String>, names: Vec<String>) -> Self {
        Self::new(title, Scale::Categories(names))
    }

    /// The same from `low` to `high`.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { range: Some([low, high]), ..self }
    }

    /// The same with names for values.
    #[must_use]
    pub fn named(self, ticks: Vec<(f64, String)>) -> Self {
        Self { ticks, ..self }
    }
}

/// An axis whose ends are known.
#[derive(Debug)]
pub(crate) struct Placed {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    pub(crate) ticks: Vec<Tick>,
    /// From where to where each category reaches.
    extents: Vec<[f64; 2]>,
}

impl Placed {
    /// `weights` say how much room a category gets beside others.
    pub(crate) fn new(axis: &Axis, values: &[f64], weights: &[f64], fits: Fits<'_>) -> Self {
        if let Scale::Categories(names) = &axis.scale {
            return Self::categories(names, weights);
        }
        let is_logarithmic = axis.scale == Scale::Logarithmic;
        let drawn = |value: &f64| sane(*value).filter(|value| !is_logarithmic || *value > 0.0);
        let asked = axis.range.and_then(|[low, high]| Some([drawn(&low)?, drawn(&high)?]));
        let asked = asked.filter(|[low, high]| low < high);
        let found = values.iter().filter_map(drawn).fold(None, |found: Option<[f64; 2]>, value| {
            let [low, high] = found.unwrap_or([value; 2]);
            Some([low.min(value), high.max(value)])
        });
        let found = found.unwrap_or(if is_logarithmic { [1.0, 10.0] } else { [0.0, 1.0] });
        let steps = if axis.ticks.is_empty() {
            steps(&axis.scale, asked, found, fits)
        } else {
            let [low, high] = asked.unwrap_or_else(|| widened(found));
            let inside = axis.ticks.iter().filter(|(value, _)| (low..=high).contains(value));
            let ticks = inside.map(|(value, text)| Tick { value: *value, text: text.clone() }).collect();
            Steps { low, high, ticks }
        };
        Self { low: steps.low, high: steps.high, is_logarithmic, ticks: steps.ticks, extents: Vec::new() }
    }

    fn categories(names: &[String], weights: &[f64]) -> Self {
        let weight = |place: usize| weights.get(place).copied().unwrap_or(1.0);
        let all: f64 = (0..names.len()).map(weight).sum();
        let mut end = 0.0;
        let extents = (0..names.len()).map(|place| {
            let begin = end;
            end += weight(place) / all;
            [begin, end]
        });
        let extents = extents.collect();
        let ticks = names.iter().enumerate();
        let ticks = ticks.map(|(place, name)| Tick { value: place as f64, text: name.clone() }).collect();
        Self { low: 0.0, high: 1.0, is_logarithmic: false, ticks, extents }
    }

    /// A value's place, from 0 to 1; beyond the ends it is the end.
    pub(crate) fn at(&self, value: f64) -> Option<f64> {
        if !self.extents.is_empty() {
            return self.extent(value).map(|[begin, end]| (begin + end) / 2.0);
        }
        let value = sane(value)?;
        let share = if self.is_logarithmic {
            let (low, high) = (self.low.log10(), self.high.log10());
            (value > 0.0).then(|| (value.log10() - low) / (high - low))?
        } else {
            (value - self.low) / (self.high - self.low)
        };
        Some(share.clamp(0.0, 1.0))
    }

    /// Where bars begin: at zero, or at the end that is next to it.
    pub(crate) fn base(&self) -> f64 {
        self.at(0.0).unwrap_or(0.0)
    }

    /// From where to where a category reaches.
    pub(crate) fn extent(&self, value: f64) -> Option<[f64; 2]> {
        self.extents.get(self.category(value)?).copied()
    }

    /// The category that a value is.
    pub(crate) fn category(&self, value: f64) -> Option<usize> {
        (0..self.extents.len()).find(|place| (value - *place as f64).abs() < 0.5)
    }
}

fn steps(scale: &Scale, asked: Option<[f64; 2]>, found: [f64; 2], fits: Fits<'_>) -> Steps {
    let [low, high] = asked.unwrap_or(found);
    if *scale == Scale::Logarithmic {
        return logarithmic(low, high, fits);
    }
    let from_zero = asked.is_none() && matches!(scale, Scale::FromZero | Scale::Whole);
    let [low, high] = if from_zero { [low.min(0.0), high.max(0.0)] } else { [low, high] };
    let [low, high] = widened([low, high]);
    let division = Division { whole: *scale == Scale::Whole, fixed: asked.is_some() };
    linear(low, high, division, fits)
}

/// The same, with room around what is hardly a range.
fn widened([low, high]: [f64; 2]) -> [f64; 2] {
    let size = low.abs().max(high.abs());
    if size == 0.0 {
        [0.0, 1.0]
    } else if high - low > 1e-9 * size {
        [low, high]
    } else {
        [low - 0.1 * size, high + 0.1 * size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_places_and_what_is_none_has_none() {
        let from_zero = Placed::new(&Axis::from_zero(""), &[20.0, f64::NAN, 100.0], &[], &|_| true);
        assert_eq!(
            [0.0, 50.0, 500.0, f64::NAN].map(|value| from_zero.at(value)),
            [Some(0.0), Some(0.5), Some(1.0), None]
        );
        let log = Placed::new(&Axis::logarithmic(""), &[1.0, 100.0, -3.0, 0.0], &[], &|_| true);
        assert_eq!([10.0, -3.0].map(|value| log.at(value)), [Some(0.5), None]);
        let rows = Axis::categories("", vec!["a".into(), "b".into()]);
        let rows = Placed::new(&rows, &[], &[1.0, 3.0], &|_| true);
        assert_eq!([0.0, 1.0, 2.0].map(|value| rows.at(value)), [Some(0.125), Some(0.625), None]);
    }
}
