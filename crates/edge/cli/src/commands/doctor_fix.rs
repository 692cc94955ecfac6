//! `virtbench doctor --fix`: the packages that are missing, and with consent their installation.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use virtbench_lab::{Check, Status};

use crate::exit::{Failure, Kind, Outcome};
use crate::say::{say, tell};

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
