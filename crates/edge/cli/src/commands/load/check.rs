//! What verification found, and `--verify-only`.

use std::io::{self, Write};

use serde::Serialize;
use virtbench_engine::{Control, Target, Verified, verify};
use virtbench_record::Verification;
use virtbench_workload::LoadSpec;

use super::refusal::refusal;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::print_json;
use crate::watched::stoppable;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    found: &'a Verification,
    /// What it rests on, where that is not the ledger of a load that ended.
    note: Option<&'a str>,
}

/// Checks the target without applying a load.
pub fn execute(spec: &LoadSpec, target: &Target, json: bool) -> Outcome {
    let control = stoppable(Control::new(spec.workers));
    let Verified { found, note } = verify(spec, target, &control).map_err(refusal)?;
    let mut out = io::stdout().lock();
    if json {
        print_json(&Report { found: &found, note: note.as_deref() })?;
    } else {
        write(&mut out, &found)?;
        if let Some(note) = note {
            writeln!(out, "note: {note}")?;
        }
    }
    if interrupt::requested() {
        return Err(interrupt::failure("what was read until then was checked"));
    }
    verdict(&found, &target.facts().path)?;
    if !found.complete {
        let message = format!("{} could not be read whole", target.facts().path);
        return Err(Failure::message(Kind::Measured, message));
    }
    if found.blocks_checked == 0 {
        let message = format!("{} holds no block that a load with --verify has written", target.facts().path);
        return Err(Failure::message(Kind::Target, message));
    }
    Ok(())
}

/// The findings for people.
pub fn write(out: &mut impl Write, found: &Verification) -> io::Result<()> {
    writeln!(
        out,
        "verified {} blocks of {} bytes ({} unknown): {} lost, {} stale, {} torn, {} misplaced, {} foreign, {} corrupt",
        found.blocks_checked,
        found.block_bytes,
        found.blocks_unknown,
        found.lost,
        found.stale,
        found.torn,
        found.misplaced,
        found.foreign,
        found.corrupt
    )?;
    for example in &found.examples {
        writeln!(out, "  {:?} at offset {}: {}", example.damage, example.offset, example.words)?;
    }
    Ok(())
}

/// Damage is an error, whatever the figures say.
pub fn verdict(found: &Verification, path: &str) -> Outcome {
    if found.damaged() == 0 {
        return Ok(());
    }
    let first = found.examples.first();
    let example =
        first.map_or_else(String::new, |block| format!("; at offset {}: {}", block.offset, block.words));
    let message = format!("{} blocks of {path} are not what was written{example}", found.damaged());
    Err(Failure::message(Kind::Measured, message))
}
