//! Tables of configurations that are compared with each other: what to use for which kind of I/O, what they are, every point,
//! and every pair.

use maud::{Markup, html};
use virtbench_model::pairwise::{Advice, Finding, Group, Kind, Metric, Pair, PairPoint, Standing, Tally};
use virtbench_model::{Analysis, Side};
use virtbench_record::{DeviceFacts, PointKey, SetupFacts};
use virtbench_units::format_bytes;

use super::{COLUMNS, Cell, header};
use crate::format::{KILOBYTE, MEGABYTE, ratio, ratio_span, shell_line, significant};
use crate::takeaway::group_name;

/// A row for each kind, with all configurations ranked.
pub(crate) fn kinds(analysis: &Analysis) -> Markup {
    html! {
        p.hint {
            "Points of one kind and size taken together, as geometric means. To be used is the fastest, or what is \
             equivalent to it within the margin; of these, none that does less I/O for each percent of host CPU \
             by more than the margin. Where repetitions do not tell the fastest from another, nothing is advised. \
             Figures are those of the first; intervals allow for the choice of the fastest."
        }
        div.scroll tabindex="0" role="region" aria-label="What to use for which kind of I/O" {
            table {
                thead { tr {
                    th scope="col" { "kind of I/O" } th scope="col" { "use" } th scope="col" { "throughput " span.unit { "MB/s" } }
                    th scope="col" { "I/O per %CPU" } th scope="col" { "the others, against the fastest" }
                } }
                tbody { @for group in &analysis.groups { (kind_row(analysis, group)) } }
            }
        }
    }
}

fn kind_row(analysis: &Analysis, group: &Group) -> Markup {
    let sizes = analysis.groups.iter().filter(|other| other.kind == group.kind).count() > 1;
    let advice = analysis.advice(group);
    let names = |standings: &[&Standing]| {
        let names: Vec<&str> =
            standings.iter().map(|standing| analysis.name(standing.configuration)).collect();
        names.join(" or ")
    };
    let choice = match &advice {
        Advice::Use(choices) => choices.first().copied(),
        Advice::NotTold { best, .. } => Some(*best),
        Advice::NotMeasured => None,
    };
    let number = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
    html! {
        tr {
            td { (group_name(group, sizes)) }
            td {
                @match &advice {
                    Advice::Use(choices) => strong { (names(choices)) },
                    Advice::NotTold { best, others } => {
                        "not told: " (names(&[&[*best][..], others].concat()))
                    }
                    Advice::NotMeasured => "–",
                }
            }
            td.number { (number(choice.map(|standing| standing.bytes_per_second / MEGABYTE))) }
            td.number { (number(choice.and_then(|standing| standing.iops_per_cpu_percent))) }
            td { @for standing in &group.standings { (against(analysis, standing)) } }
        }
    }
}

fn against(analysis: &Analysis, standing: &Standing) -> Markup {
    let name = analysis.name(standing.configuration);
    let Some(judged) = standing.against_best else {
        return html! { div { (name) ": fastest" } };
    };
    let interval = judged.ratio.interval.map_or_else(|| "no spread given".into(), ratio_span);
    html! {
        div class=(judged.finding.name()) {
            (name) ": " (ratio(judged.ratio.value)) " (" (interval) "), " (judged.finding.name())
        }
    }
}

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
                            (point_row(*key, index, name, &cell.side))
                        }
                    }
                }
            }
        }
    }
}

fn point_row(key: PointKey, index: usize, name: &str, side: &Side) -> Markup {
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

/// A row for each configuration, with what was not honoured marked.
pub(crate) fn settings(setups: &[SetupFacts]) -> Markup {
    html! {
        p.hint { "What each guest's own kernel says of its disk. What it does not say is empty, never assumed." }
        div.scroll tabindex="0" role="region" aria-label="Settings as found in the guests" {
            table {
                thead { tr {
                    @for title in [
                        "configuration", "adapter", "backing", "asked for", "driver", "disk", "queues", "outstanding at most",
                        "scheduler", "write cache", "blocks", "largest request", "not honoured",
                    ] { th scope="col" { (title) } }
                } }
                tbody { @for setup in setups { (setting_row(setup)) } }
            }
        }
        details {
            summary { "Command lines" }
            dl.facts {
                @for setup in setups {
                    dt { (setup.name) }
                    dd {
                        @for line in [&setup.server_command_line, &setup.command_line] {
                            @if !line.is_empty() { pre tabindex="0" { code { (shell_line(line)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn setting_row(setup: &SetupFacts) -> Markup {
    let asked: Vec<String> = setup.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let backing = &setup.backing;
    html! {
        tr {
            td { strong { (setup.name) } }
            td { (setup.adapter) small { (setup.summary) } }
            td { (backing.name) small { (backing.description) "; " (backing.preparation) "; " (format_bytes(backing.allocated_bytes)) " allocated" } }
            td { (asked.join(", ")) }
            @match &setup.found {
                Some(found) => (device(found)),
                None => { td colspan="8" { "The guest has not booted." } }
            }
            td class=[(!setup.not_honoured.is_empty()).then_some("lower")] {
                @for item in &setup.not_honoured {
                    div { "✗ " (item.setting) ": " (item.asked) " asked for, " (item.found) " found" }
                }
            }
        }
    }
}

fn device(found: &DeviceFacts) -> Markup {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
    let medium = match found.rotational {
        Some(true) => "rotating",
        Some(false) => "not rotating",
        None => "",
    };
    let blocks = match (found.logical_block_bytes, found.physical_block_bytes) {
        (Some(logical), Some(physical)) => format!("{logical} / {physical} B"),
        (Some(one), None) | (None, Some(one)) => format!("{one} B"),
        (None, None) => String::new(),
    };
    html! {
        td { (text(&found.driver)) small { (text(&found.model)) } }
        td { (found.name) small { (medium) } }
        td.number { (number(found.queues)) }
        td.number {
            (number(found.outstanding()))
            @if let Some(requests) = found.nr_requests { small { "block layer " (requests) } }
        }
        td { (text(&found.scheduler)) }
        td { (text(&found.write_cache)) }
        td { (blocks) }
        td { (found.max_request_kib.map_or_else(String::new, |kib| format!("{kib} KiB"))) }
    }
}

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
                    tbody { @for (pair, point) in all.into_iter().take(ROWS_MOST) { (pair_row(analysis, pair, point)) } }
                }
            }
        }
    }
}

fn pair_row(analysis: &Analysis, pair: &Pair, point: &PairPoint) -> Markup {
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
