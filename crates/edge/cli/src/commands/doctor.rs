//! `virtbench doctor`

use std::fs;
use std::io::Write;

use serde::Serialize;
use virtbench_lab::{Check, Status, cache_directory, examine_host};

use super::doctor_fix;
use crate::args::{DoctorArgs, left_out};
use crate::exit::{Failure, Kind, Outcome};
use crate::progress;
use crate::say::print_json;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    ready: bool,
    checks: &'a [Check],
    /// Commands that this build has not.
    left_out: &'a [&'static str],
}

/// Shows what was found; fails if something is missing.
pub fn execute(args: &DoctorArgs) -> Outcome {
    if args.probe {
        // Not there is as good as gone.
        let _ = fs::remove_file(cache_directory().join("accelerator.json"));
    }
    let checks =
        progress::during("looking at this machine; a guest boots where nobody has tried yet", || {
            examine_host(&args.target_dir, args.kernel.as_deref())
        });
    let left_out: Vec<&str> = left_out().collect();
    let missing = checks.iter().filter(|check| matches!(check.status, Status::Missing { .. })).count();
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&Report { ready: missing == 0, checks: &checks, left_out: &left_out })?;
    } else {
        let is_of_developers = |check: &&Check| matches!(check.status, Status::Development { .. });
        for check in checks.iter().filter(|check| !is_of_developers(check)) {
            line(&mut out, check, args.quiet)?;
        }
        let of_developers: Vec<&Check> =
            checks.iter().filter(|check| is_of_developers(check) && !args.quiet).collect();
        if !of_developers.is_empty() {
            writeln!(out, "\nnot here, and needed only to develop virtbench:")?;
        }
        for check in of_developers {
            line(&mut out, check, args.quiet)?;
        }
        if !left_out.is_empty() && !args.quiet {
            let names = left_out.join(", ");
            writeln!(out, "left out {:<16} {names}\n{:26}mend: make install", "commands", "")?;
        }
    }
    if args.fix {
        drop(out);
        return doctor_fix::fix(&checks, args.yes);
    }
    if missing > 0 {
        let message = format!(
            "{missing} of {} things are missing; the commands above mend them, and virtbench doctor --fix installs packages",
            checks.len()
        );
        return Err(Failure::message(Kind::Environment, message));
    }
    Ok(())
}

fn line(out: &mut impl Write, check: &Check, quiet: bool) -> std::io::Result<()> {
    match &check.status {
        Status::Ok { detail } if !quiet => writeln!(out, "ok       {:<16} {detail}", check.name),
        Status::Warning { why, mend } if !quiet => {
            writeln!(out, "warning  {:<16} {why}\n{:26}mend: {mend}", check.name, "")
        }
        Status::Development { why, mend } if !quiet => {
            writeln!(out, "         {:<16} {why}\n{:26}mend: {mend}", check.name, "")
        }
        Status::Missing { why, mend } => {
            writeln!(out, "MISSING  {:<16} {why}\n{:26}mend: {mend}", check.name, "")
        }
        _ => Ok(()),
    }
}
