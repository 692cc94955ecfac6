//! A run as every part of the report looks at it: the host itself, and each kind of guest beside it.

use std::collections::BTreeMap;

use virtbench_model::{Comparison, Ratio, Side, compare};
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
