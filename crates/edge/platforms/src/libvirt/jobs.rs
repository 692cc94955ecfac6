//! What libvirt tells of its jobs, as figures of an operation.

use std::collections::BTreeMap;

use virtbench_libvirt::Domain;
use virtbench_record::JobFigure;

use crate::platform::JobTold;

/// libvirt's names and how many of ours are one of its.
const FIGURES: [(JobFigure, &str, u64); 6] = [
    (JobFigure::ElapsedNs, "time_elapsed", 1_000_000),
    (JobFigure::SetupNs, "setup_time", 1_000_000),
    (JobFigure::DowntimeNs, "downtime", 1_000_000),
    (JobFigure::MovedBytes, "data_processed", 1),
    (JobFigure::TotalBytes, "data_total", 1),
    (JobFigure::Passes, "memory_iteration", 1),
];

/// What it tells of the job that a domain has just been through.
pub(super) fn completed(domain: &Domain) -> JobTold {
    match domain.completed_job() {
        Ok(told) if told.is_empty() => Err("libvirt keeps no statistics of it".into()),
        Ok(told) => Ok(figures(&told)),
        Err(error) => Err(format!("libvirt does not tell: {error}")),
    }
}

/// How far the job is that a domain is still in, in words; nothing where there is none.
pub(super) fn under_way(domain: &Domain) -> Option<String> {
    let told = figures(&domain.current_job().ok()?);
    let of = |figure| told.get(&figure).copied();
    let (moved, total) = (of(JobFigure::MovedBytes)?, of(JobFigure::TotalBytes)?);
    Some(format!("its job goes on: {} of {} MiB are moved", moved >> 20, total >> 20))
}

fn figures(told: &BTreeMap<String, u64>) -> BTreeMap<JobFigure, u64> {
    let known = FIGURES
        .into_iter()
        .filter_map(|(figure, name, factor)| Some((figure, told.get(name)?.saturating_mul(factor))));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_our_units_and_what_is_not_told_is_left_out() {
        let told = [("downtime", 12), ("data_total", 1 << 20), ("memory_bps", 3)];
        let told = figures(&told.map(|(name, value)| (name.to_owned(), value)).into());
        let wanted = [(JobFigure::DowntimeNs, 12_000_000), (JobFigure::TotalBytes, 1 << 20)];
        assert_eq!(told, BTreeMap::from(wanted));
    }
}
