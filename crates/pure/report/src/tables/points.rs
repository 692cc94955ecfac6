//! Every configuration at every point.

use maud::{Markup, html};
use virtbench_model::pairwise::Kind;
use virtbench_model::{Analysis, Side};
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use super::{COLUMNS, Cell, header};
use crate::format::KILOBYTE;

/// A row for each point and configuration.
pub(crate) fn points(analysis: &Analysis) -> Markup {
    let names = &analysis.measurements.configurations;
    html! {
        p.hint {
            "Means over repetitions, with their 95 % intervals below where there are three or more; p99 is the median of \
             theirs. Efficiency is for each percent of host CPU. "
            span.with-script { "Select a header to sort." }
        }
        div.scroll tabindex="0" role="region" aria-label="Every configuration at every point" {
            table.sortable.numbers {
                thead { tr {
                    (header("block", "", None))
                    th scope="col" { "kind of I/O" }
                    (header("configuration", "", None))
                    @for column in &COLUMNS { (header(column.title, column.unit, None)) }
                    (header("efficiency", "KB/s/%", None))
                    th scope="col" { "remarks" }
                } }
                tbody {
                    @for (key, cells) in &analysis.measurements.points {
                        @for (index, (name, cell)) in names.iter().zip(cells).enumerate() {
                            (row(*key, index, name, &cell.side))
                        }
                    }
                }
            }
        }
    }
}

fn row(key: PointKey, index: usize, name: &str, side: &Side) -> Markup {
    html! {
        tr {
            td data-sort=(key.block_bytes) { (format_bytes(key.block_bytes)) }
            td.text { (Kind::from(key)) }
            td.text data-sort=(index) { (name) }
            @for column in &COLUMNS { ((column.cell)(side).plain()) }
            (Cell::number(side.bytes_per_second_per_cpu_percent().map(|bytes| bytes / KILOBYTE)).plain())
            td.remarks { (super::side_remarks(side).join("; ")) }
        }
    }
}
