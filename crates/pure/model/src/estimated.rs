//! Estimates as programs read them.

use virtbench_record::Estimated;

use crate::interval::Estimate;
use crate::ratio::Ratio;

pub(crate) fn estimated(estimate: Estimate) -> Estimated {
    let span = estimate.span();
    Estimated { value: estimate.mean, low: span.map(|span| span.low), high: span.map(|span| span.high) }
}

pub(crate) fn estimated_ratio(ratio: Ratio) -> Estimated {
    let span = ratio.interval;
    Estimated { value: ratio.value, low: span.map(|span| span.low), high: span.map(|span| span.high) }
}
