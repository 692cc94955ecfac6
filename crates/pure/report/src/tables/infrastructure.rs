//! Management operations beside tiles.

use maud::{Markup, html};
use virtbench_record::{OperationsMeasured, TilesPlan, TilesRecord};

use crate::figures::kind_name;
use crate::format::{MILLISECOND_NS, significant};

/// A row for each operation of each run that counts, against the pace. Nothing where no infrastructure load was asked for.
pub(crate) fn infrastructure(plan: &TilesPlan, records: &[TilesRecord]) -> Markup {
    let Some(load) = &plan.infrastructure else { return html! {} };
    let counts = records.iter().filter(|record| record.void().is_none());
    let runs: Vec<(&TilesRecord, &OperationsMeasured)> =
        counts.filter_map(|record| Some((record, record.measured()?.infrastructure.as_ref()?))).collect();
    let rounds = load.pace().map_or(0, |(rounds, _)| rounds);
    let milliseconds = |ns: u64| significant(ns as f64 / MILLISECOND_NS);
    html! {
        section aria-labelledby="infrastructure" {
            h2 id="infrastructure" { "Management operations beside the tiles" }
            div.scroll tabindex="0" role="region" aria-label="Management operations beside the tiles" {
                table {
                    thead { tr {
                        th.number scope="col" { "tiles" } th.number scope="col" { "run" } th scope="col" { "operation" }
                        th.number scope="col" { "asked for" } th.number scope="col" { "done" } th.number scope="col" { "failed" }
                        th.number scope="col" { "median, ms" } th.number scope="col" { "95th percentile, ms" }
                    } }
                    tbody {
                        @for (record, measured) in &runs { @for (kind, share) in &load.mix {
                            @let one = measured.operations.get(kind);
                            tr {
                                td.number { (record.key.tiles) }
                                td.number { (record.key.repetition + 1) }
                                th scope="row" { (kind_name(*kind)) }
                                td.number { (rounds * u64::from(*share)) }
                                td.number { (one.map_or(0, |one| one.done)) }
                                td.number { (one.map_or(0, |one| one.failed.values().sum::<u64>())) }
                                @let latency = one.and_then(|one| one.latency_ns);
                                td.number { (latency.map_or_else(|| "–".into(), |latency| milliseconds(latency.p50))) }
                                td.number { (latency.map_or_else(|| "–".into(), |latency| milliseconds(latency.p95))) }
                            }
                        } }
                    }
                }
            }
            @for why in runs.iter().flat_map(|(_, measured)| &measured.first_failures).take(5) { p { (why) } }
        }
    }
}
