//! Which of a domain's samples are ratios: they alone make its figure.

use virtbench_record::{Better, Sample};

/// What the name of a ratio has between the two that it is of.
pub(super) const OF: &str = " / ";

/// Whether a sample of a domain is a ratio to this host, and so has a part in the score.
pub(super) fn is_ratio(sample: &Sample) -> bool {
    sample.unit.is_empty() && sample.better != Better::Neither && sample.name.contains(OF)
}
