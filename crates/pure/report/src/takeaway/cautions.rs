//! What a careful reader must know before using the figures.

use virtbench_record::{Measured, TargetKind};

use super::completeness;
use super::points_where;
use crate::format::count;
use crate::run::{Run, Which};

/// Every caution that applies, the one that weighs most first.
pub(super) fn all(run: &Run<'_>) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(emulation(run));
    cautions.extend(completeness::missing(run));
    cautions.extend(completeness::unavailable(run));
    cautions.extend(suspect_clocks(run));
    cautions.extend(errors(run));
    cautions.extend(interrupted(run));
    cautions.extend(cached(run));
    cautions.extend(nested(run));
    cautions
}

fn emulation(run: &Run<'_>) -> Option<String> {
    run.is_emulated().then(|| {
        "TCG emulates the guest's processor in software: figures of the VM describe emulation, \
         not the overhead of virtualization."
            .into()
    })
}

fn suspect_clocks(run: &Run<'_>) -> Option<String> {
    let points = points_where(run, Which::Vm, |side| side.suspect_clocks > 0);
    (points > 0).then(|| {
        format!(
            "The guest's clock ran more than 1 % off the host's at {}: their figures must not be trusted.",
            count(points, "point")
        )
    })
}

fn errors(run: &Run<'_>) -> Vec<String> {
    let failed = |which: Which| -> u64 {
        run.comparison.points.iter().map(|point| which.of(point).errors).fold(0, u64::saturating_add)
    };
    Which::BOTH
        .into_iter()
        .filter(|which| failed(*which) > 0)
        .map(|which| {
            let points = points_where(run, which, |side| side.errors > 0);
            let operations = match failed(which) {
                1 => "1 operation".into(),
                many => format!("{many} operations"),
            };
            format!(
                "{operations} failed {}, at {}: throughput counts only what succeeded.",
                which.place(),
                count(points, "point")
            )
        })
        .collect()
}

fn interrupted(run: &Run<'_>) -> Option<String> {
    let points = run
        .comparison
        .points
        .iter()
        .filter(|point| point.reference.interrupted + point.subject.interrupted > 0)
        .count();
    (points > 0).then(|| format!("A measurement was stopped before its time at {}.", count(points, "point")))
}

fn cached(run: &Run<'_>) -> Vec<String> {
    let through_cache = |measured: &Measured| {
        let target = &measured.outcome.target;
        !target.direct && target.kind != TargetKind::Null
    };
    Which::BOTH
        .into_iter()
        .filter_map(|which| {
            let measurements = run
                .records
                .iter()
                .filter(|record| run.side_of(record) == Some(which))
                .filter(|record| record.measured().is_some_and(through_cache))
                .count();
            (measurements > 0).then(|| {
                format!(
                    "{} made {} went through the page cache, which measures memory as well as the disk.",
                    count(measurements, "measurement"),
                    which.place()
                )
            })
        })
        .collect()
}

fn nested(run: &Run<'_>) -> Option<String> {
    let hypervisor = run.provenance.host.hypervisor.as_ref()?;
    Some(format!("The host is itself a virtual machine ({hypervisor}): \"native\" means on this host."))
}
