//! A table of management operations: which take longer with more VMs, and by how much.

use std::collections::BTreeMap;
use std::io;

use virtbench_formats::OperationsTable;
use virtbench_model::operations::{OperationsAnalysis, growth, summarise_operations};
use virtbench_record::OperationKind;
use virtbench_report::growth_takeaway;

use super::output::{concluded, sentences};
use crate::args::analyse::AnalyseArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;

/// Says how each operation's latency grows.
pub fn show(args: &AnalyseArgs, table: &OperationsTable) -> Outcome {
    if args.csv.is_some() || args.html.is_some() {
        let why = "--csv and --html are for tables of storage loads and applications, and this one is of operations: leave them out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let points = |kind: OperationKind| -> Vec<(f64, f64)> {
        let of_kind = table.rows.iter().filter(|row| row.kind == kind);
        of_kind.map(|row| (row.vms, row.latency_s)).collect()
    };
    let growth: BTreeMap<OperationKind, _> =
        OperationKind::ALL.into_iter().filter_map(|kind| Some((kind, growth(&points(kind))?))).collect();
    let vms = table.rows.iter().map(|row| row.vms);
    let (fewest, most) = vms.fold((f64::INFINITY, 0.0f64), |(low, high), vms| (low.min(vms), high.max(vms)));
    let takeaway = growth_takeaway(&growth, fewest, most);
    if args.json {
        let analysis = OperationsAnalysis {
            steps: Vec::new(),
            growth,
            tenants: Vec::new(),
            sustained_per_minute: None,
            untold_below_per_minute: None,
            incomplete: Vec::new(),
        };
        let summary = summarise_operations(concluded(args, &takeaway), &analysis);
        return Ok(print_json(&summary)?);
    }
    Ok(sentences(&mut io::stdout().lock(), &takeaway)?)
}
