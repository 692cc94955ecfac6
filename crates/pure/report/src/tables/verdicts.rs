//! Pairs of configurations: a matrix of counts for each quantity, and every verdict.

use maud::{Markup, html};
use virtbench_model::Analysis;
use virtbench_model::pairwise::{Finding, Metric, Pair, PairPoint, Tally};
use virtbench_units::format_bytes;

use super::{Cell, header};
use crate::format::{ratio, ratio_span};

/// Rows of the table of every verdict; a page with more would be slow, and the CSV holds them all.
const ROWS_MOST: usize = 4_000;

const QUANTITIES: [(Metric, &str, &str); 3] = [
    (Metric::Rate, "Throughput and I/O rate", "more is better"),
    (Metric::Efficiency, "I/O and KB/s for each percent of host CPU", "more is better"),
    (Metric::ResponseTime, "Response time", "less is better"),
];

/// A matrix for each quantity that is known.
pub(crate) fn matrices(analysis: &Analysis) -> Markup {
    html! {
        @for (metric, title, better) in QUANTITIES {
            @if analysis.tally(metric).points() > 0 {
                h3 { (title) }
                p.hint { "At how many points the row's configuration is what against the column's; " (better) "." }
                (matrix(analysis, metric, title))
            }
        }
    }
}

fn matrix(analysis: &Analysis, metric: Metric, title: &str) -> Markup {
    let names = &analysis.measurements.configurations;
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table.matrix {
                thead { tr { th {} @for name in names { th scope="col" { (name) } } } }
                tbody { @for (row, name) in names.iter().enumerate() {
                    tr {
                        th scope="row" { (name) }
                        @for column in 0..names.len() { (cell(tally(analysis, metric, row, column))) }
                    }
                } }
            }
        }
    }
}

/// Pairs are stored once; the other triangle is the other way round.
fn tally(analysis: &Analysis, metric: Metric, row: usize, column: usize) -> Option<Tally> {
    let of = |first: usize, second: usize| {
        analysis
            .pairs
            .iter()
            .find(|pair| (pair.first, pair.second) == (first, second))
            .map(|pair| pair.tally(metric))
    };
    if row < column { of(row, column) } else { of(column, row).map(Tally::swapped) }
}

fn cell(tally: Option<Tally>) -> Markup {
    let Some(tally) = tally.filter(|tally| tally.points() > 0) else { return html! { td.number { "–" } } };
    let counts = [
        (tally.higher, Finding::Higher),
        (tally.equivalent, Finding::Equivalent),
        (tally.lower, Finding::Lower),
        (tally.undecided, Finding::Undecided),
    ];
    html! {
        td {
            @for (number, finding) in counts {
                @if number > 0 { div class=(finding.name()) { (number) " " (finding.name()) } }
            }
        }
    }
}

/// Every verdict, folded away.
pub(crate) fn verdicts(analysis: &Analysis) -> Markup {
    let all: Vec<(&Pair, &PairPoint)> =
        analysis.pairs.iter().flat_map(|pair| pair.points.iter().map(move |point| (pair, point))).collect();
    html! {
        details {
            summary { "Every verdict" }
            p.hint {
                "Ratios of the first configuration to the second, with their 90 % intervals. "
                @if all.len() > ROWS_MOST {
                    (ROWS_MOST) " of " (all.len()) " rows are shown; the CSV of virtbench analyse has them all. "
                }
                span.with-script { "Select a header to sort." }
            }
            div.scroll tabindex="0" role="region" aria-label="Every verdict" {
                table.sortable {
                    thead { tr {
                        (header("first", "", None)) (header("second", "", None))
                        (header("block", "", None)) th scope="col" { "kind of I/O" }
                        @for title in ["throughput", "I/O per %CPU", "response time"] {
                            (header(title, "ratio", None)) th scope="col" { "verdict" }
                        }
                    } }
                    tbody { @for (pair, point) in all.into_iter().take(ROWS_MOST) { (row(analysis, pair, point)) } }
                }
            }
        }
    }
}

fn row(analysis: &Analysis, pair: &Pair, point: &PairPoint) -> Markup {
    html! {
        tr {
            td data-sort=(pair.first) { (analysis.name(pair.first)) }
            td data-sort=(pair.second) { (analysis.name(pair.second)) }
            td.number data-sort=(point.key.block_bytes) { (format_bytes(point.key.block_bytes)) }
            td { (virtbench_model::pairwise::Kind::from(point.key)) }
            @for metric in Metric::ALL {
                @match point.judged(metric) {
                    Some(judged) => {
                        (Cell {
                            text: ratio(judged.ratio.value),
                            range: judged.ratio.interval.map(ratio_span),
                            sort: Some(judged.ratio.value),
                        }.markup())
                        td class=(judged.finding.name()) { (judged.finding.name()) }
                    }
                    None => { td.number { "–" } td {} }
                }
            }
        }
    }
}
