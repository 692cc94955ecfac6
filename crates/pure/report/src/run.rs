//! A run as every part of the report looks at it: the host itself, and each kind of guest beside it;
//! and the environments that it measured in, each with its points.

use std::collections::BTreeMap;

use virtbench_model::{Comparison, Measurements, Ratio, Side, compare};
use virtbench_record::{PointKey, PointRecord, Provenance};

/// A side of the comparison: the host itself, or a kind of guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunSide {
    /// Its place: the reference is 0.
    pub(crate) index: usize,
    /// The name under which its records are kept.
    pub(crate) environment: String,
    /// Its name in figures and tables.
    pub(crate) name: String,
    /// Where it measures, within a sentence.
    pub(crate) place: String,
}

impl RunSide {
    /// The sides of a plan that names these environments, the reference first.
    fn all(environments: &[String]) -> Vec<Self> {
        let usual = ["native", "vm"].map(str::to_owned);
        let names = if environments.len() < usual.len() { &usual } else { environments };
        let side = |(index, environment): (usize, &String)| {
            let platform = environment.to_uppercase();
            let (name, place) = match (index, names.len()) {
                (0, _) => ("native".into(), "natively".into()),
                (_, 2) => ("VM".into(), "in the VM".into()),
                _ => (platform.clone(), format!("in the VM under {platform}")),
            };
            Self { index, environment: environment.clone(), name, place }
        };
        names.iter().enumerate().map(side).collect()
    }

    /// What ratios of it to the reference are called.
    pub(crate) fn over_native(&self) -> String {
        format!("{} / native", self.name)
    }
}

/// A point with all its sides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunPoint {
    pub(crate) key: PointKey,
    /// In the order of the run's sides; empty ones where nothing was measured.
    sides: Vec<Side>,
    /// Of each side to the reference; none of the reference.
    ratios: Vec<Option<Ratio>>,
}

impl RunPoint {
    pub(crate) fn side(&self, side: &RunSide) -> Option<&Side> {
        self.sides.get(side.index)
    }

    /// A side's throughput as a share of the reference's.
    pub(crate) fn ratio(&self, side: &RunSide) -> Option<Ratio> {
        self.ratios.get(side.index).copied().flatten()
    }

    /// Whether any side has what `find` looks for.
    pub(crate) fn has<T>(&self, find: impl Fn(&Side) -> Option<T>) -> bool {
        self.sides.iter().any(|side| find(side).is_some())
    }
}

/// A kind of guest and how it compares with the reference.
#[derive(Debug)]
pub(crate) struct RunGuest {
    pub(crate) side: RunSide,
    pub(crate) comparison: Comparison,
}

/// A run and what follows from it.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) provenance: &'a Provenance,
    pub(crate) records: &'a [PointRecord],
    /// The reference first.
    pub(crate) sides: Vec<RunSide>,
    /// One at least.
    pub(crate) guests: Vec<RunGuest>,
    /// Every point that has a record, in the order of its key.
    pub(crate) points: Vec<RunPoint>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(provenance: &'a Provenance, records: &'a [PointRecord]) -> Self {
        let sides = RunSide::all(provenance.plan.environments());
        let native = sides.first().map_or("native", |side| &side.environment);
        let guest = |side: &RunSide| RunGuest {
            comparison: compare(records, native, &side.environment, provenance.plan.seed()),
            side: side.clone(),
        };
        let guests: Vec<RunGuest> = sides.iter().skip(1).map(guest).collect();
        let points = points(&guests);
        Self { provenance, records, guests, points, sides }
    }

    /// The only kind of guest; nothing where there are several.
    pub(crate) fn only_guest(&self) -> Option<&RunGuest> {
        self.guests.first().filter(|_| self.guests.len() == 1)
    }

    /// Which side a record belongs to, if any.
    pub(crate) fn side_of(&self, record: &PointRecord) -> Option<&RunSide> {
        self.sides.iter().find(|side| side.environment == record.environment)
    }

    /// All sides but the reference, as within a sentence: `the VM`, or `UML and TCG`.
    pub(crate) fn guests_in_words(&self) -> String {
        let names: Vec<&str> = self.guests.iter().map(|guest| guest.side.name.as_str()).collect();
        names.join(" and ")
    }
}

fn points(guests: &[RunGuest]) -> Vec<RunPoint> {
    let mut points: BTreeMap<PointKey, RunPoint> = BTreeMap::new();
    for (index, guest) in guests.iter().enumerate() {
        for compared in &guest.comparison.points {
            let key = compared.key;
            let empty = || RunPoint {
                key,
                sides: vec![Side::default(); guests.len() + 1],
                ratios: vec![None; guests.len() + 1],
            };
            let point = points.entry(key).or_insert_with(empty);
            // Each comparison has the whole reference.
            if let Some(first) = point.sides.first_mut() {
                first.clone_from(&compared.reference);
            }
            if let Some(own) = point.sides.get_mut(index + 1) {
                own.clone_from(&compared.subject);
            }
            if let Some(own) = point.ratios.get_mut(index + 1) {
                *own = compared.ratio;
            }
        }
    }
    points.into_values().collect()
}

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
