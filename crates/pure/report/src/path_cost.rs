//! What the path to an appliance costs, in words.

use virtbench_record::PathCost;

use crate::format::{MEGABYTE, MILLISECOND_NS, significant};

/// Round trips and rates of a path.
pub(crate) fn path_cost(cost: &PathCost) -> String {
    format!(
        "{} ms median round trip ({} ms for 99 %), {} MB/s to it, {} MB/s from it",
        significant(cost.round_trip_median_ns as f64 / MILLISECOND_NS),
        significant(cost.round_trip_p99_ns as f64 / MILLISECOND_NS),
        significant(cost.to_bytes_per_s / MEGABYTE),
        significant(cost.from_bytes_per_s / MEGABYTE)
    )
}
