//! A figure of a simulated evaluation.

/// A figure of the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct FenceFigure {
    /// Its number.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Of the horizontal axis, where it has one.
    pub axis: Option<String>,
    /// Its values.
    pub values: Vec<FenceValue>,
    /// Sentences of the paper: the claim, whether it held (held, not held, undecided), the numbers.
    pub findings: Vec<(String, String, String)>,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct FenceValue {
    /// The workload.
    pub workload: String,
    /// The way of storing.
    pub system: String,
    /// The place on the horizontal axis.
    pub x: Option<f64>,
    /// Of which machine.
    pub machine: String,
    /// What was measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The mean.
    pub measured: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// The least and the greatest experiment.
    pub range: Option<(f64, f64)>,
    /// What was published, in a few characters, and where the paper says so.
    pub published: Option<(String, String)>,
    /// The published value, or the end of the band that it must not pass.
    pub mark: Option<f64>,
    /// By how much the mean lies outside the published band.
    pub outside: Option<f64>,
}
