//! Estimates as programs read them.

use virtbench_record::Estimated;

use crate::interval::Estimate;
use crate::ratio::Ratio;

impl From<Estimate> for Estimated {
    fn from(estimate: Estimate) -> Self {
        let span = estimate.span();
        Self { value: estimate.mean, low: span.map(|span| span.low), high: span.map(|span| span.high) }
    }
}

impl From<Ratio> for Estimated {
    fn from(ratio: Ratio) -> Self {
        let span = ratio.interval;
        Self { value: ratio.value, low: span.map(|span| span.low), high: span.map(|span| span.high) }
    }
}
