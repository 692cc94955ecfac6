//! A table of tiles: how many fit, and what they score.

use std::io::{self, Write};

use virtbench_model::{TilesAnalysis, analyse_tiles, summarise_tiles};
use virtbench_record::TileTable;
use virtbench_report::{TilesPage, with_unit};

use super::application::SEED;
use super::output::{comparing, concluded, save, sentences};
use crate::args::analyse::AnalyseArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};

/// Scores the tiles of each configuration.
pub fn show(args: &AnalyseArgs, table: &TileTable) -> Outcome {
    if args.csv.is_some() {
        let why =
            "--csv writes verdicts on points of a storage load, and this table is one of tiles: leave it out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let analysis = comparing(|| analyse_tiles(&table.rows, SEED));
    let page = TilesPage { table, analysis: &analysis };
    if let Some(path) = &args.html {
        save(path, &page.html())?;
    }
    let takeaway = page.takeaway();
    if args.json {
        return Ok(print_json(&summarise_tiles(concluded(args, &takeaway), &analysis))?);
    }
    let mut out = io::stdout().lock();
    sentences(&mut out, &takeaway)?;
    writeln!(out, "\n{}", every_count(&analysis))?;
    Ok(())
}

/// A row for each member at each number of tiles.
fn every_count(analysis: &TilesAnalysis) -> TextTable {
    let columns = [left(16), right(5), right(9), right(8), left(12), right(12), right(11), right(6)];
    let mut table = TextTable::new(0, &columns);
    table.row([
        "configuration",
        "tiles",
        "runs held",
        "score",
        "member",
        "of reference",
        "of one tile",
        "broken",
    ]);
    let shown = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| with_unit(value, ""));
    for one in &analysis.configurations {
        for step in &one.steps {
            for (place, member) in step.members.iter().enumerate() {
                let mut cells = match place {
                    0 => vec![
                        one.name.clone(),
                        step.tiles.to_string(),
                        format!("{} of {}", step.held, step.runs),
                        step.score().map_or_else(|| "void".into(), |score| with_unit(score.mean, "")),
                    ],
                    _ => vec![String::new(); 4],
                };
                cells.extend([
                    member.name.clone(),
                    shown(member.normalised.map(|done| done.mean)),
                    shown(member.of_one_tile.map(|left| left.value)),
                    member.broken.to_string(),
                ]);
                table.row(cells);
            }
        }
    }
    table
}
