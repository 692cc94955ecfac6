//! The environments that a run measured in, each with its points: what cautions are judged by.

use std::collections::BTreeMap;

use virtbench_model::{Measurements, Side};
use virtbench_record::{PointKey, PointRecord, Provenance};

use crate::run::{Run, RunSide};

/// A run and the environments it measured in.
#[derive(Debug)]
pub(crate) struct Environments<'a> {
    pub(crate) provenance: &'a Provenance,
    pub(crate) records: &'a [PointRecord],
    pub(crate) all: Vec<Environment<'a>>,
    /// Points that could be compared.
    pub(crate) compared: usize,
}

/// The host itself, or a VM, with what was measured in it.
#[derive(Debug)]
pub(crate) struct Environment<'a> {
    /// The name of its records.
    pub(crate) name: &'a str,
    /// Where that is, within a sentence: `natively`, `in the VM`, `with nvme`.
    pub(crate) phrase: String,
    /// Whether it is the host itself.
    pub(crate) native: bool,
    /// What was recorded of it.
    pub(crate) sides: BTreeMap<PointKey, &'a Side>,
}

impl<'a> Environments<'a> {
    /// Native against VMs.
    pub(crate) fn of_run(run: &'a Run<'_>) -> Self {
        let environment = |side: &'a RunSide| Environment {
            name: &side.environment,
            phrase: side.place.clone(),
            native: side.index == 0,
            sides: run.points.iter().filter_map(|point| Some((point.key, point.side(side)?))).collect(),
        };
        Self {
            provenance: run.provenance,
            records: run.records,
            all: run.sides.iter().map(environment).collect(),
            compared: run.guests.iter().map(|guest| guest.comparison.curve.len()).min().unwrap_or(0),
        }
    }

    /// Configurations of a guest against each other.
    pub(crate) fn of_configurations(
        provenance: &'a Provenance,
        records: &'a [PointRecord],
        measurements: &'a Measurements,
    ) -> Self {
        let environment = |(index, name): (usize, &'a String)| Environment {
            name,
            phrase: format!("with {name}"),
            native: false,
            sides: measurements
                .points
                .iter()
                .filter_map(|(key, cells)| Some((*key, &cells.get(index)?.side)))
                .collect(),
        };
        let measured = |side: &&Side| side.repetitions > 0;
        let compared = measurements
            .points
            .values()
            .filter(|cells| cells.iter().map(|cell| &cell.side).filter(measured).count() > 1)
            .count();
        let all = measurements.configurations.iter().enumerate().map(environment).collect();
        Self { provenance, records, all, compared }
    }

    /// Whose record it is, if anyone's.
    pub(crate) fn of_record(&self, record: &PointRecord) -> Option<&Environment<'a>> {
        self.all.iter().find(|environment| environment.name == record.environment)
    }

    /// Points for which `holds` is true anywhere.
    pub(crate) fn points_where(&self, holds: impl Fn(&Side) -> bool) -> usize {
        let points =
            self.all.iter().flat_map(|environment| &environment.sides).filter(|(_, side)| holds(side));
        points.map(|(key, _)| key).collect::<std::collections::BTreeSet<_>>().len()
    }
}

impl Environment<'_> {
    /// Its points for which `holds` is true.
    pub(crate) fn points_where(&self, holds: impl Fn(&Side) -> bool) -> usize {
        self.sides.values().filter(|side| holds(side)).count()
    }
}
