//! A prediction as one JSON object.

use serde::Serialize;
use virtbench_model::Span;
use virtbench_model::predict::Prediction;
use virtbench_report::PredictionPage;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Report<'a> {
    application: &'a str,
    from: &'a str,
    to: &'a str,
    #[serde(flatten)]
    prediction: &'a Prediction,
    capacity: f64,
    /// 95 %.
    interval: Option<Span>,
    actual_capacity: Option<f64>,
    error_percent: Option<f64>,
}

impl<'a> Report<'a> {
    /// Everything that was found.
    pub fn new(page: &PredictionPage<'a>) -> Self {
        Self {
            application: &page.profile.name,
            from: page.from,
            to: page.to,
            prediction: page.prediction,
            capacity: page.prediction.capacity(),
            interval: page.prediction.capacity_interval(),
            actual_capacity: page.actual_capacity,
            error_percent: page.error_percent(),
        }
    }
}
