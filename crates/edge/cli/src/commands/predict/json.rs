//! A prediction as one JSON object.

use serde::Serialize;
use virtbench_model::predict::{Breakdown, WhatIf};
use virtbench_report::PredictionPage;

/// What `--json` prints.
#[derive(Serialize)]
pub struct Report<'a> {
    application: &'a str,
    from: &'a str,
    to: &'a str,
    method: &'static str,
    why: &'a str,
    capacity_name: &'a str,
    reference_capacity: f64,
    capacity: f64,
    /// 95 %.
    interval: Option<[f64; 2]>,
    ratio: f64,
    ratio_interval: Option<[f64; 2]>,
    actual_capacity: Option<f64>,
    error_percent: Option<f64>,
    breakdown: Option<Sides<'a>>,
    bottleneck: &'a str,
    what_if: Vec<Change<'a>>,
    extrapolated: Vec<String>,
    cautions: &'a [String],
}

#[derive(Serialize)]
struct Sides<'a> {
    from: Vec<Share<'a>>,
    to: Vec<Share<'a>>,
}

#[derive(Serialize)]
struct Share<'a> {
    part: &'a str,
    ms: f64,
}

#[derive(Serialize)]
struct Change<'a> {
    change: &'a str,
    capacity: f64,
}

impl<'a> Report<'a> {
    /// Everything that was found.
    pub fn new(page: &PredictionPage<'a>) -> Self {
        let prediction = page.prediction;
        let shares = |breakdown: &Breakdown| {
            breakdown.0.iter().map(|(part, ms)| Share { part: part.name(), ms: *ms }).collect()
        };
        let change = |WhatIf { change, capacity }: &'a WhatIf| Change { change, capacity: *capacity };
        Self {
            application: &page.profile.name,
            from: page.from,
            to: page.to,
            method: prediction.method.name(),
            why: &prediction.why,
            capacity_name: &prediction.reference.name,
            reference_capacity: prediction.reference.value,
            capacity: prediction.capacity(),
            interval: prediction.capacity_interval().map(|span| [span.low, span.high]),
            ratio: prediction.ratio,
            ratio_interval: prediction.interval.map(|span| [span.low, span.high]),
            actual_capacity: page.actual_capacity,
            error_percent: page.error_percent(),
            breakdown: prediction
                .breakdown
                .as_ref()
                .map(|[from, to]| Sides { from: shares(from), to: shares(to) }),
            bottleneck: &prediction.bottleneck,
            what_if: prediction.what_if.iter().map(change).collect(),
            extrapolated: prediction.beyond.iter().map(ToString::to_string).collect(),
            cautions: &prediction.cautions,
        }
    }
}
