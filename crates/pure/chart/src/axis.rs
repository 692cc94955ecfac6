//! What an axis measures.

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
