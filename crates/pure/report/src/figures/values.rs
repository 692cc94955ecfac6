//! A figure's values as a table, for readers who do not see it or want them exactly.

use std::collections::BTreeMap;

use virtbench_chart::{Chart, Form, HeatMap, Point, Scale};

use super::{Figure, Picture, Table, Values};
use crate::format::significant;

/// Rows of one chart at most; of longer series every so manyth is shown.
const ROWS_MOST: usize = 60;

impl Figure {
    /// The table of its values, also where its page has them in another one.
    pub(crate) fn any_table(&self) -> Table {
        self.table().unwrap_or_else(|| of(self))
    }

    /// The table of its values, where it has one of its own.
    pub(crate) fn table(&self) -> Option<Table> {
        match &self.values {
            Values::Own => Some(of(self)),
            Values::Given(table) => Some(table.clone()),
            Values::Under(_) => None,
        }
    }
}

/// All values of a figure, those of one place and name in a row.
fn of(figure: &Figure) -> Table {
    let variants = || figure.drawings.iter().flat_map(|drawing| &drawing.variants);
    let are_several = variants().count() > 1;
    let mut columns: Vec<String> = Vec::new();
    let mut found: Vec<(Vec<String>, BTreeMap<usize, String>)> = Vec::new();
    let (mut first, mut stride) = (String::new(), 1);
    for variant in variants() {
        let rows = match &variant.picture {
            Picture::Chart(chart) => of_chart(chart),
            Picture::Heat(map) => of_map(map),
        };
        first.clone_from(&rows.first);
        let own = rows.rows.len().div_ceil(ROWS_MOST).max(1);
        stride = stride.max(own);
        for (name, cells) in rows.rows.into_iter().step_by(own) {
            let mut placed = BTreeMap::new();
            for (column, text) in cells {
                let place = columns.iter().position(|one| *one == column).unwrap_or_else(|| {
                    columns.push(column);
                    columns.len() - 1
                });
                placed.insert(place, text);
            }
            let names = if are_several { vec![variant.name.clone(), name] } else { vec![name] };
            found.push((names, placed));
        }
    }
    let cell =
        |cells: &BTreeMap<usize, String>, place| cells.get(&place).cloned().unwrap_or_else(|| "–".into());
    let count = columns.len();
    let rows = found
        .into_iter()
        .map(|(names, cells)| names.into_iter().chain((0..count).map(|place| cell(&cells, place))).collect());
    let rows = rows.collect();
    let named = if are_several { vec![String::new(), first] } else { vec![first] };
    let names = named.len();
    let note =
        if stride > 1 { format!("Of long series every {stride}th value is shown.") } else { String::new() };
    Table { header: named.into_iter().chain(columns).collect(), rows, names, note }
}

/// Rows by name, each with texts by column.
struct Rows {
    /// What rows are.
    first: String,
    rows: Vec<(String, Vec<(String, String)>)>,
}

fn of_chart(chart: &Chart) -> Rows {
    let (names, first, quantity) = match (&chart.y.scale, &chart.x.scale) {
        (Scale::Categories(names), _) => (Some(names), &chart.y.title, &chart.x.title),
        (_, Scale::Categories(names)) => (Some(names), &chart.x.title, &chart.y.title),
        _ => (None, &chart.x.title, &chart.y.title),
    };
    let has_rows = matches!(chart.y.scale, Scale::Categories(_));
    let place = |point: &Point| if has_rows { [point.y, point.x] } else { [point.x, point.y] };
    let mut rows: Vec<(f64, Vec<(String, String)>)> = Vec::new();
    for series in chart.series.iter().filter(|series| series.form != Form::Spans) {
        let column = if series.name.is_empty() { quantity.clone() } else { series.name.clone() };
        for point in &series.points {
            let [at, value] = place(point);
            let cell = (column.clone(), with_interval(value, point.interval));
            // The last row of this place that has nothing in this column yet.
            let free = rows.iter().rposition(|(known, cells)| {
                known.total_cmp(&at).is_eq() && cells.iter().all(|(other, _)| *other != column)
            });
            match free {
                Some(row) => rows[row].1.push(cell),
                None => rows.push((at, vec![cell])),
            }
        }
    }
    let has_lines = chart.series.iter().any(|series| matches!(series.form, Form::Line | Form::Marked));
    if names.is_some() || has_lines {
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    let named = |at: f64| match names {
        Some(names) => (0..names.len()).find(|place| *place as f64 == at).map(|place| names[place].clone()),
        None => Some(if at.fract() == 0.0 { format!("{at:.0}") } else { significant(at) }),
    };
    let rows = rows.into_iter().filter_map(|(at, cells)| Some((named(at)?, cells))).collect();
    Rows { first: first.clone(), rows }
}

fn with_interval(value: f64, interval: Option<[f64; 2]>) -> String {
    let between = interval
        .filter(|[low, high]| low < high)
        .map(|[low, high]| format!(" ({} to {})", significant(low), significant(high)));
    format!("{}{}", significant(value), between.unwrap_or_default())
}

fn of_map(map: &HeatMap) -> Rows {
    let row = |(name, cells): (&String, &Vec<virtbench_chart::Cell>)| {
        let cells = map.columns.iter().zip(cells);
        (name.clone(), cells.map(|(column, cell)| (column.clone(), cell.text.clone())).collect())
    };
    Rows { first: map.y_title.clone(), rows: map.rows.iter().zip(&map.cells).map(row).collect() }
}
