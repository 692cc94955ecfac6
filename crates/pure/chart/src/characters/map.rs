//! A map as a table: each number behind a shade.

use std::fmt::Write as _;

use super::letters::cut;
use crate::heat::{Cell, HeatMap};
use crate::ticks::sane;

/// From the least to the greatest value.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// A name gets no more columns.
const NAMES: usize = 20;
/// Nor does a number.
const NUMBERS: usize = 16;

pub(super) fn drawn(map: &HeatMap, columns: usize) -> String {
    let values = || map.cells.iter().flatten().filter_map(|cell| sane(cell.value?));
    let (least, most) =
        values().fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
    let length = |text: &str| text.chars().count();
    let names =
        map.rows.iter().map(|name| length(name)).max().unwrap_or(0).max(length(&map.y_title)).min(NAMES);
    let texts = map.cells.iter().flatten().map(|cell| length(&cell.text) + 2);
    let width = texts.chain(map.columns.iter().map(|name| length(name))).max().unwrap_or(0).min(NUMBERS);
    let in_line = ((columns - names) / (width + 2)).max(1);
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{:names$}  {}", cut(&map.y_title, names), cut(&map.x_title, columns - names - 2));
    for first in (0..map.columns.len()).step_by(in_line) {
        let range = first..map.columns.len().min(first + in_line);
        let heads: String =
            map.columns[range.clone()].iter().map(|name| format!("  {:>width$}", cut(name, width))).collect();
        let _ = writeln!(text, "{:names$}{heads}", "");
        for (name, cells) in map.rows.iter().zip(&map.cells) {
            let cells: String = range
                .clone()
                .map(|at| {
                    let shown = cells.get(at).map_or_else(|| "–".into(), |cell| shaded(cell, least, most));
                    format!("  {:>width$}", cut(&shown, width))
                })
                .collect();
            let _ = writeln!(text, "{:>names$}{cells}", cut(name, names));
        }
    }
    text
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of five")]
fn shaded(cell: &Cell, least: f64, most: f64) -> String {
    let Some(value) = cell.value.and_then(sane) else { return "–".into() };
    let share = if least < most { (value - least) / (most - least) } else { 0.5 };
    let shade = SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)];
    format!("{shade} {}", cell.text)
}
