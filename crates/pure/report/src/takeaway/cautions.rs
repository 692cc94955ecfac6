//! What a careful reader must know before using the figures.

use virtbench_model::busy_host;
use virtbench_record::{IN_MEMORY, Measured, Provenance, TargetKind};

use super::completeness;
use crate::format::count;
use crate::scene::Scene;

/// Every caution that applies, the one that weighs most first.
pub(super) fn all(scene: &Scene<'_>) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(emulation(scene.provenance));
    cautions.extend(in_memory(scene.provenance));
    cautions.extend(busy(scene));
    cautions.extend(completeness::missing(scene));
    cautions.extend(completeness::unavailable(scene));
    cautions.extend(suspect_clocks(scene));
    cautions.extend(errors(scene));
    cautions.extend(interrupted(scene));
    cautions.extend(cached(scene));
    cautions.extend(nested(scene));
    cautions
}

/// Whether the guest's instructions were emulated in software.
pub(crate) fn is_emulated(provenance: &Provenance) -> bool {
    provenance.guest.as_ref().is_some_and(|guest| guest.accelerator.name.eq_ignore_ascii_case("tcg"))
}

fn emulation(provenance: &Provenance) -> Option<String> {
    is_emulated(provenance).then(|| {
        "TCG emulates the guest's processor in software: figures of the VM describe emulation, \
         not the overhead of virtualization."
            .into()
    })
}

/// That the disks were no disks.
pub(super) fn in_memory(provenance: &Provenance) -> Option<String> {
    let note = provenance.notes.iter().find(|note| note.ends_with(IN_MEMORY))?;
    Some(format!("{note}."))
}

/// Whether other programs used the host.
fn busy(scene: &Scene<'_>) -> Option<String> {
    let hosts = scene.records.iter().filter_map(|record| Some(&record.measured()?.host));
    busy_host(hosts).map(|busy| busy.words())
}

fn suspect_clocks(scene: &Scene<'_>) -> Option<String> {
    let points = scene.points_where(|side| side.suspect_clocks > 0);
    (points > 0).then(|| {
        format!(
            "The guest's clock ran more than 1 % off the host's at {}: their figures must not be trusted.",
            count(points, "point")
        )
    })
}

fn errors(scene: &Scene<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for place in &scene.places {
        let failed = place.sides.values().map(|side| side.errors).fold(0, u64::saturating_add);
        if failed == 0 {
            continue;
        }
        let points = place.points_where(|side| side.errors > 0);
        let operations = match failed {
            1 => "1 operation".into(),
            many => format!("{many} operations"),
        };
        sentences.push(format!(
            "{operations} failed {}, at {}: throughput counts only what succeeded.",
            place.phrase,
            count(points, "point")
        ));
    }
    sentences
}

fn interrupted(scene: &Scene<'_>) -> Option<String> {
    let points = scene.points_where(|side| side.interrupted > 0);
    (points > 0).then(|| format!("A measurement was stopped before its time at {}.", count(points, "point")))
}

fn cached(scene: &Scene<'_>) -> Vec<String> {
    let through_cache = |measured: &Measured| {
        let target = &measured.outcome.target;
        !target.direct && target.kind != TargetKind::Null
    };
    let mut sentences = Vec::new();
    for place in &scene.places {
        let measurements = scene
            .records
            .iter()
            .filter(|record| record.environment == place.environment)
            .filter(|record| record.measured().is_some_and(through_cache))
            .count();
        if measurements > 0 {
            sentences.push(format!(
                "{} made {} went through the page cache, which measures memory as well as the disk.",
                count(measurements, "measurement"),
                place.phrase
            ));
        }
    }
    sentences
}

fn nested(scene: &Scene<'_>) -> Option<String> {
    let hypervisor = scene.provenance.host.hypervisor.as_ref()?;
    let meaning = if scene.places.iter().any(|place| place.native) {
        "\"native\" means on this host"
    } else {
        "its CPU use is what it sees of its own processors"
    };
    Some(format!("The host is itself a virtual machine ({hypervisor}): {meaning}."))
}
