//! `virtbench doctor`, and `--fix`: the packages that are missing, and with consent their installation.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use serde::Serialize;
use virtbench_lab::{Check, Status, cache_directory, examine_host};

use crate::args::{DoctorArgs, left_out};
use crate::exit::{Failure, Kind, Outcome};
use crate::progress;
use crate::say::{print_json, say, tell};

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
        return fix(&checks, args.yes);
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

/// Prints what installs the packages that mend something; runs it where `consent` was given. What packages do not mend is named.
pub fn fix(checks: &[Check], consent: bool) -> Outcome {
    let packages: BTreeSet<&str> = checks.iter().flat_map(Check::packages).collect();
    let is_missing = |check: &&Check| matches!(check.status, Status::Missing { .. });
    let by_hand: Vec<&str> = checks
        .iter()
        .filter(is_missing)
        .filter(|check| check.packages().is_empty())
        .map(|check| check.name)
        .collect();
    if !packages.is_empty() {
        run(&packages.into_iter().collect::<Vec<_>>(), consent)?;
    } else if by_hand.is_empty() {
        say!("No package is missing.");
    }
    if by_hand.is_empty() {
        return Ok(());
    }
    let names = by_hand.join(", ");
    let message = format!("packages do not mend everything: see what virtbench doctor says of {names}");
    Err(Failure::message(Kind::Environment, message))
}

fn run(packages: &[&str], consent: bool) -> Outcome {
    // The owner of a process is that of its folder.
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let sudo: &[&str] = if is_root { &[] } else { &["sudo"] };
    let steps: [&[&str]; 2] =
        [&["apt-get", "update"], &["apt-get", "install", "--no-install-recommends", "--yes"]];
    let steps = [[sudo, steps[0]].concat(), [sudo, steps[1], packages].concat()];
    for step in &steps {
        say!("{}", step.join(" "));
    }
    if !consent {
        tell!("Nothing was installed: --yes runs these commands.");
        return Ok(());
    }
    for step in &steps {
        let (program, arguments) = step.split_first().unwrap_or((&"apt-get", &[]));
        let ended = Command::new(program)
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .status();
        match ended {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(refused(&format!("{} ended with {status}", step.join(" ")))),
            Err(error) => return Err(refused(&format!("{program}: {error}"))),
        }
    }
    Ok(())
}

fn refused(why: &str) -> Failure {
    let next = "on a distribution without apt, install its packages of QEMU, a kernel and e2fsprogs";
    Failure::message(Kind::Environment, format!("nothing more was installed: {why}; {next}"))
}
