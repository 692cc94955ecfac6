//! Every configuration's repetitions at every point, from a run or from a table.

use std::collections::BTreeMap;

use virtbench_record::{PointKey, PointMetrics, PointRecord, ResultRow};
use virtbench_units::SeedSequence;

use crate::side::{Repetitions, Side};

/// One configuration at one point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Its repetitions summed up.
    pub side: Side,
    /// Each measured repetition by its number.
    pub figures: BTreeMap<u32, PointMetrics>,
}

/// What there is to compare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurements {
    /// Names of the configurations.
    pub configurations: Vec<String>,
    /// For each point a cell of each configuration, in their order.
    pub points: BTreeMap<PointKey, Vec<Cell>>,
}

impl Measurements {
    /// The records of a run. Configurations come in the order of `planned`, then as they are met.
    /// Where a repetition was recorded twice, the later record counts.
    #[must_use]
    pub fn from_records(records: &[PointRecord], planned: &[String], seed: u64) -> Self {
        let recorded = records.iter().map(|record| record.environment.as_str());
        let names = names(planned.iter().map(String::as_str).chain(recorded));
        let mut grouped: BTreeMap<PointKey, Vec<Repetitions<'_>>> = BTreeMap::new();
        for record in records {
            let cells =
                grouped.entry(record.point).or_insert_with(|| vec![Repetitions::default(); names.len()]);
            if let Some(index) = names.iter().position(|name| *name == record.environment) {
                cells[index].insert(record);
            }
        }
        Self::of_cells(names, grouped, seed, |repetitions, seed| Cell {
            side: repetitions.sum_up(seed),
            figures: repetitions.figures(|measured| PointMetrics::from(measured)),
        })
    }

    /// The rows of a table. Configurations come as they are met; of a row that is given twice the
    /// later counts.
    #[must_use]
    pub fn from_rows(rows: &[ResultRow], seed: u64) -> Self {
        let names = names(rows.iter().map(|row| row.configuration.as_str()));
        let mut grouped: BTreeMap<PointKey, Vec<BTreeMap<u32, PointMetrics>>> = BTreeMap::new();
        for row in rows {
            let cells = grouped.entry(row.point).or_insert_with(|| vec![BTreeMap::new(); names.len()]);
            if let Some(index) = names.iter().position(|name| *name == row.configuration) {
                cells[index].insert(row.repetition, row.figures);
            }
        }
        Self::of_cells(names, grouped, seed, |figures, seed| Cell {
            side: Side::of_figures(&figures, seed),
            figures,
        })
    }

    fn of_cells<T>(
        configurations: Vec<String>,
        grouped: BTreeMap<PointKey, Vec<T>>,
        seed: u64,
        cell: impl Fn(T, u64) -> Cell,
    ) -> Self {
        let mut seeds = SeedSequence::new(seed);
        let points = grouped
            .into_iter()
            .map(|(key, cells)| {
                (key, cells.into_iter().map(|repetitions| cell(repetitions, seeds.next_seed())).collect())
            })
            .collect();
        Self { configurations, points }
    }
}

/// Each name once.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}
