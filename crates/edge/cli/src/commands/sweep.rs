//! `virtbench sweep`

use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};

use serde::Serialize;
use virtbench_lab::{LeftRun, now_s};
use virtbench_platforms::{Failure as PlatformFailure, LeftPlace};
use virtbench_record::FailureKind;

use crate::args::operations::SweepArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::progress;
use crate::say::{print_json, say, tell};

/// Names of VMs and volumes that are shown of a run; the rest are counted.
const NAMED: usize = 4;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    platform: &'a str,
    runs: Vec<Shown<'a>>,
    /// VMs and volumes that were removed.
    removed: usize,
}

#[derive(Serialize)]
struct Shown<'a> {
    run: String,
    host: &'a str,
    /// In seconds since 1970.
    made_s: u64,
    /// Of its last sign of life, in seconds since 1970.
    seen_s: u64,
    is_dead: bool,
    why: &'a str,
    things: &'a [String],
}

/// Shows what is left, and removes it with consent.
pub fn execute(args: &SweepArgs) -> Outcome {
    let place = LeftPlace::parse(&args.platform).map_err(|error| failed(&error, Kind::Usage))?;
    let mut runs = progress::during("asking for what runs have left", || place.runs())
        .map_err(|error| failed(&error, Kind::Guest))?;
    if let Some(label) = &args.label {
        runs.retain(|run| is_of(run, label));
    }
    let dead: BTreeSet<_> =
        runs.iter().filter(|run| run.standing.is_dead()).map(|run| run.run.clone()).collect();
    if !args.json {
        runs.iter().for_each(show);
    }
    let consents = !dead.is_empty() && (args.yes || (!args.json && is_asked(dead.len())?));
    let removed = if consents { progress::during("removing it", || place.remove(&dead)) } else { Ok(0) };
    if args.json {
        let removed = *removed.as_ref().unwrap_or(&0);
        print_json(&Report { platform: &args.platform, runs: runs.iter().map(shown).collect(), removed })?;
    }
    let removed = removed.map_err(|error| failed(&error, Kind::LeftOver))?;
    if !dead.is_empty() && !consents {
        let why = format!(
            "{}: {} thought dead left something there: --yes removes it",
            args.platform,
            runs_of(dead.len())
        );
        return Err(Failure::message(Kind::LeftOver, why));
    }
    if !args.json {
        say!("{}", conclusion(&args.platform, runs.len() - dead.len(), removed));
    }
    Ok(())
}

fn conclusion(platform: &str, live: usize, removed: usize) -> String {
    let done = if removed == 0 {
        "nothing is left".to_owned()
    } else {
        format!("removed {removed} VMs and volumes")
    };
    match live {
        0 => format!("{platform}: {done}"),
        1 => format!("{platform}: {done}; a run that lives keeps what it has"),
        _ => format!("{platform}: {done}; {live} runs that live keep what they have"),
    }
}

fn runs_of(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// Whether a run is the one that was named.
fn is_of(run: &LeftRun, label: &str) -> bool {
    let begins = |thing: &String| thing.rsplit('/').next().is_some_and(|name| name.starts_with(label));
    run.run.to_string() == label || run.things.iter().any(begins)
}

fn show(run: &LeftRun) {
    let state = if run.standing.is_dead() { "dead " } else { "lives" };
    let host = if run.host.is_empty() { "an unknown machine" } else { &run.host };
    let age = age(now_s().saturating_sub(run.made_s));
    say!("{state}  run {} on {host}, begun {age} ago: {}", run.run, run.standing.why());
    run.things.iter().take(NAMED).for_each(|thing| say!("         {thing}"));
    if run.things.len() > NAMED {
        say!("         and {} more", run.things.len() - NAMED);
    }
}

/// How long ago something was, roughly.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn shown(run: &LeftRun) -> Shown<'_> {
    Shown {
        run: run.run.to_string(),
        host: &run.host,
        made_s: run.made_s,
        seen_s: run.seen_s,
        is_dead: run.standing.is_dead(),
        why: run.standing.why(),
        things: &run.things,
    }
}

/// Asks at a terminal; nobody else consents.
fn is_asked(count: usize) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    tell!("Remove what {} thought dead left there? [y/N]", runs_of(count));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn failed(error: &PlatformFailure, otherwise: Kind) -> Failure {
    let kind = if error.kind == FailureKind::Unreachable { Kind::Guest } else { otherwise };
    Failure::message(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_it_is_said() {
        assert_eq!([90, 300, 7200, 900_000].map(age), ["90 s", "5 min", "2 h", "10 days"]);
        assert_eq!(conclusion("p", 0, 0), "p: nothing is left");
        assert_eq!(
            conclusion("p", 2, 3),
            "p: removed 3 VMs and volumes; 2 runs that live keep what they have"
        );
    }
}
