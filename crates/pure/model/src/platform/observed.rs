//! What the run of a part shows besides its figures: distributions of times, and what disks of guests were found to be.

use virtbench_record::{
    GridPlan, ObservedDisk, Plan, PointRecord, Provenance, Records, SamplesRecord, SetupFacts, TimeCounts,
};

use crate::geometric::geometric_mean;
use crate::quantity::Quantity;

/// Distributions of times, each named by the side that it is of, such as `tap: request`.
#[must_use]
pub fn times_of_run(records: &Records) -> Vec<TimeCounts> {
    let Records::Samples(records) = records else { return Vec::new() };
    let of_record = records.iter().filter_map(|record| Some((record, record.measured()?)));
    let times = of_record.flat_map(|(record, measured)| {
        measured.times.iter().map(move |times| TimeCounts {
            name: format!("{}: {}", record.key.side, times.name),
            counts: times.counts.clone(),
        })
    });
    times.collect()
}

/// Disks of guests, where configurations were compared.
#[must_use]
pub fn disks_of_run(provenance: &Provenance, records: &Records) -> Vec<ObservedDisk> {
    let Plan::Adapters(plan) = &provenance.plan else { return Vec::new() };
    let disk = |setup: &SetupFacts| disk(plan, setup, records.points());
    provenance.setups.iter().filter_map(disk).collect()
}

fn disk(plan: &GridPlan, setup: &SetupFacts, records: &[PointRecord]) -> Option<ObservedDisk> {
    let own = |is_point: &dyn Fn(&PointRecord) -> bool| {
        let of_setup = records.iter().filter(|record| record.environment == setup.name && is_point(record));
        let values: Vec<f64> = of_setup.filter_map(|record| Quantity::Throughput.value(record)).collect();
        (!values.is_empty()).then(|| geometric_mean(&values))
    };
    let found = setup.found.as_ref();
    Some(ObservedDisk {
        setup: setup.name.clone(),
        takes_at_once: found.and_then(|found| found.outstanding()),
        outstanding: plan.outstanding.saturating_mul(plan.workers.max(1)),
        write_cache: found.and_then(|found| found.write_cache.clone()),
        throughput_bytes_per_s: own(&|_| true)?,
        writes_bytes_per_s: own(&|record| record.point.read_percent == 0),
    })
}

/// Each disk of a guest that was seen, once, with the geometric mean of its throughputs over the repetitions.
pub(super) fn all_disks(records: &[SamplesRecord]) -> Vec<ObservedDisk> {
    let mut disks: Vec<(ObservedDisk, Vec<[Option<f64>; 2]>)> = Vec::new();
    let observed = records.iter().filter_map(|record| record.measured()?.observed.as_ref());
    for disk in observed.flat_map(|observed| &observed.disks) {
        let both = [Some(disk.throughput_bytes_per_s), disk.writes_bytes_per_s];
        match disks.iter_mut().find(|(one, _)| one.setup == disk.setup) {
            Some((_, all)) => all.push(both),
            None => disks.push((disk.clone(), vec![both])),
        }
    }
    let mean = |all: &[[Option<f64>; 2]], which: usize| {
        let values: Vec<f64> = all.iter().filter_map(|both| both[which]).collect();
        (!values.is_empty()).then(|| geometric_mean(&values))
    };
    let of = |(disk, all): (ObservedDisk, Vec<[Option<f64>; 2]>)| ObservedDisk {
        throughput_bytes_per_s: mean(&all, 0).unwrap_or(0.0),
        writes_bytes_per_s: mean(&all, 1),
        ..disk
    };
    disks.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use virtbench_samples::configurations::{adapters_plan, adapters_provenance, adapters_records};
    use virtbench_samples::samples as synthetic;

    use super::*;

    #[test]
    fn times_are_named_by_their_side() {
        let times = times_of_run(&Records::Samples(synthetic::records()));
        assert!(times.iter().any(|one| one.name.starts_with("tap: ")), "{times:?}");
        assert!(times_of_run(&Records::Points(Vec::new())).is_empty());
    }

    #[test]
    fn disks_are_those_that_the_guests_found() {
        let plan = adapters_plan(1);
        let records = Records::Points(adapters_records(&plan));
        let disks = disks_of_run(&adapters_provenance(plan), &records);
        let slow = disks.iter().find(|disk| disk.setup == "lsi53c895a").unwrap();
        assert_eq!((slow.takes_at_once, slow.write_cache.as_deref()), (Some(1), Some("write back")));
        let fast = disks.iter().find(|disk| disk.setup == "nvme").unwrap();
        assert!(fast.throughput_bytes_per_s > 2.0 * slow.throughput_bytes_per_s, "{disks:?}");
        assert!(fast.writes_bytes_per_s.is_some());
    }
}
