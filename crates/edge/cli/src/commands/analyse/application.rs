//! A table of an application's results: who does how many transactions, and what one costs.

use std::io::{self, Write};

use virtbench_model::{ApplicationAnalysis, analyse_application, summarise_application};
use virtbench_record::{ApplicationTable, Quantity};
use virtbench_report::{ApplicationPage, with_unit};

use super::output::{comparing, concluded, save, sentences};
use crate::args::analyse::AnalyseArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};

/// Seed of the bootstraps: the same table always comes to the same conclusions.
pub(super) const SEED: u64 = 2_014;
/// The least width of a column of numbers.
const WIDTH: u16 = 12;

/// Compares the sides of an application with the first of them.
pub fn show(args: &AnalyseArgs, table: &ApplicationTable) -> Outcome {
    if args.csv.is_some() {
        let why = "--csv writes verdicts on points of a storage load, and this table is an application's: leave it out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let analysis = comparing(|| analyse_application(&table.rows, SEED));
    let page = ApplicationPage { table, analysis: &analysis };
    if let Some(path) = &args.html {
        save(path, &page.html())?;
    }
    let takeaway = page.takeaway();
    let mut out = io::stdout().lock();
    if args.json {
        return Ok(print_json(&summarise_application(concluded(args, &takeaway), &analysis))?);
    }
    sentences(&mut out, &takeaway)?;
    writeln!(out, "\n{}", every_figure(&analysis))?;
    Ok(())
}

/// A row for each quantity, a column for each side and each ratio.
fn every_figure(analysis: &ApplicationAnalysis) -> TextTable {
    let columns = analysis.sides.len() + analysis.ratios.len();
    let mut table = TextTable::new(0, &[&[left(26)][..], &vec![right(WIDTH); columns]].concat());
    let names = analysis.sides.iter().map(|side| side.name.clone());
    let ratios =
        analysis.ratios.iter().map(|against| format!("{}, ratio", analysis.sides[against.side].name));
    table.row(std::iter::once(String::new()).chain(names).chain(ratios));
    for quantity in Quantity::ALL {
        if analysis.sides.iter().all(|side| !side.known.contains_key(&quantity)) {
            continue;
        }
        let shown = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| with_unit(value, ""));
        let values =
            analysis.sides.iter().map(|side| shown(side.known.get(&quantity).map(|known| known.mean)));
        let ratios = analysis
            .ratios
            .iter()
            .map(|against| shown(against.ratios.get(&quantity).map(|known| known.value)));
        table.row(std::iter::once(quantity.name().to_owned()).chain(values).chain(ratios));
    }
    table
}
