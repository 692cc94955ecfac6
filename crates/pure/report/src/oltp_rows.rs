//! The measurements of a database as CSV: a table that `analyse` reads, a side being a configuration.

use csv::Writer;
use virtbench_record::{OltpKind, OltpRecord, Quantity};
use virtbench_units::rounded;

use crate::rows::{CsvError, figure, text};

/// One row for each measurement, in their order; what was not measured has no row.
pub(crate) fn oltp_csv(records: &[OltpRecord]) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    let known = Quantity::ALL.into_iter().filter(|quantity| !OWN.contains(quantity));
    let columns =
        ["side", "step", "users", "repetition", "started_unix_ns", "transactions_per_second", "failed"];
    let latencies = OltpKind::ALL.map(|kind| format!("{}_p90_ns", kind.name()));
    let heads = columns.into_iter().map(str::to_owned).chain(latencies);
    writer.write_record(heads.chain(known.clone().map(|quantity| quantity.column().to_owned())))?;
    for record in records {
        let Some(measured) = record.measured() else { continue };
        let outcome = &measured.outcome;
        let own = [
            record.key.side.clone(),
            record.key.step.name().to_owned(),
            record.key.users.to_string(),
            record.key.repetition.to_string(),
            record.started_unix_ns.to_string(),
            rounded(outcome.transactions_per_second).to_string(),
            outcome.failed().to_string(),
        ];
        let p90 = |kind: OltpKind| {
            let latency = outcome.transactions.get(kind.name()).and_then(|one| one.latency_ns);
            latency.map_or_else(String::new, |latency| figure(latency.p90 as f64))
        };
        let latencies = OltpKind::ALL.map(p90);
        let known = known
            .clone()
            .map(|quantity| measured.known.get(&quantity).map_or_else(String::new, |value| figure(*value)));
        writer.write_record(own.into_iter().chain(latencies).chain(known))?;
    }
    text(writer)
}

/// What has a column of its own.
const OWN: [Quantity; 2] = [Quantity::Users, Quantity::TransactionsPerSecond];
