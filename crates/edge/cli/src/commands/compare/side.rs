//! One side of a comparison: a run folder, or a folder of runs that repeat each other; and both sides measured in turn: BEFORE,
//! AFTER, AFTER, BEFORE, ...

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use virtbench_lab::run_watched;
use virtbench_model::before_after::RunSet;
use virtbench_model::{Margin, before_after};
use virtbench_record::{PointKey, PointRecord, Provenance, Records};
use virtbench_runs::{load_any_run, load_run, read_provenance, write_whole};
use virtbench_study::schedule;

use crate::args::compare::{AlternateArgs, CompareRunsArgs};
use crate::commands::run;
use crate::commands::study_runs::folder_path;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{is_for_machines, is_in_lines, tell};
use crate::{args, interrupt, progress};

/// What a side measured.
pub struct Side {
    /// Of its first run.
    pub provenance: Provenance,
    /// What each of its runs measured.
    pub runs: Vec<Vec<PointRecord>>,
}

impl Side {
    /// As the comparison takes it.
    pub fn set(&self) -> RunSet<'_> {
        RunSet { provenance: &self.provenance, runs: self.runs.iter().map(Vec::as_slice).collect() }
    }

    /// The points that it measured, each once.
    pub fn points(&self) -> BTreeSet<PointKey> {
        self.runs.iter().flatten().map(|record| record.point).collect()
    }
}

/// The folder of a turn, counted from 1.
pub fn turn_folder(side: &Path, turn: u32) -> PathBuf {
    side.join(turn.to_string())
}

/// Reads a run folder, or the runs of the turns in it.
///
/// # Errors
/// There is no run, one has no points, or the runs are of different plans or versions.
pub fn open(path: &Path) -> Result<Side, Failure> {
    let turns = turns(path);
    let reading = progress::counted(turns.len().max(1), "reading runs");
    let mut turns = turns.into_iter();
    let mut side = open_run(&turns.next().unwrap_or_else(|| path.to_owned()))?;
    reading.inc(1);
    for turn in turns {
        let other = open_run(&turn)?;
        reading.inc(1);
        let part = side.provenance.plan.first_difference(&other.provenance.plan);
        let version = (side.provenance.version != other.provenance.version).then_some("the version".into());
        if let Some(part) = part.or(version) {
            let message = format!("{}: {part} is not that of the first turn beside it", turn.display());
            return Err(Failure::message(Kind::Folder, message));
        }
        side.runs.extend(other.runs);
    }
    reading.finish_and_clear();
    Ok(side)
}

/// Folders of turns that hold a run; none in a run folder.
fn turns(path: &Path) -> Vec<PathBuf> {
    if read_provenance(path).is_ok() {
        return Vec::new();
    }
    (1..).map(|turn| turn_folder(path, turn)).take_while(|turn| read_provenance(turn).is_ok()).collect()
}

fn open_run(path: &Path) -> Result<Side, Failure> {
    let run = load_any_run(path).map_err(|error| Failure::new(Kind::Folder, error))?;
    let Records::Points(points) = run.records else {
        let study = run.provenance.plan.study();
        let message = format!("{}: a run of study {study} has no points to compare", path.display());
        return Err(Failure::message(Kind::Usage, message));
    };
    Ok(Side { runs: vec![points], provenance: run.provenance })
}

const FILE: &str = "alternate.json";

/// The studies whose points can be compared.
const STUDIES: [&str; 3] = ["native-vs-vm", "adapters", "compare"];

/// The sides' names, which are those of their folders.
const NAMES: [&str; 2] = ["before", "after"];

/// What is measured in turn.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Alternation {
    /// Turns of each side.
    turns: u32,
    /// Before and after.
    sides: [SidePlan; 2],
}

/// What a side measures, and with which command.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct SidePlan {
    command: PathBuf,
    /// Of the command's file, to tell when it is replaced by another.
    size_bytes: u64,
    modified_unix_ns: u64,
    /// The study's command line, from `study` on.
    words: Vec<String>,
}

/// Measures whatever is missing; returns the folders of both sides.
///
/// # Errors
/// A side has no study to compare, a turn failed, or it was stopped. What was measured is kept.
pub fn measure(args: &CompareRunsArgs) -> Result<[PathBuf; 2], Failure> {
    let out = folder_path(args.alternate.out.as_deref(), "alternate");
    let plan = if args.alternate.resume { read(&out)? } else { begin(args, &out)? };
    let folders = NAMES.map(|name| out.join(name));
    for turn in 1..=plan.turns {
        let order = if turn % 2 == 1 { [0, 1] } else { [1, 0] };
        for index in order {
            let folder = turn_folder(&folders[index], turn);
            if !is_complete(&folder) && !interrupt::requested() {
                if is_in_lines() || io::stderr().is_terminal() {
                    tell!("turn {turn} of {}: {}", plan.turns, NAMES[index]);
                }
                plan.sides[index].run(&folder).map_err(|failure| kept(failure, NAMES[index], turn, &out))?;
            }
            if interrupt::requested() {
                return Err(stopped(&out));
            }
        }
        if turn == 1 {
            require_common_points(&folders)?;
        }
    }
    Ok(folders)
}

/// What is to be measured, from the command line, written into the folder.
fn begin(args: &CompareRunsArgs, out: &Path) -> Result<Alternation, Failure> {
    let AlternateArgs { repetitions, before_command, after_command, .. } = &args.alternate;
    let before = args.before.as_deref().context("--alternate: name a study as a file")?;
    let after = args.after.as_deref().unwrap_or(before);
    let sides =
        [SidePlan::new(before_command.as_deref(), before)?, SidePlan::new(after_command.as_deref(), after)?];
    let plan = Alternation { turns: *repetitions, sides };
    let fails = |what: &str| format!("--out: cannot {what} {}", out.display());
    fs::create_dir_all(out).with_context(|| fails("make"))?;
    if fs::read_dir(out).with_context(|| fails("read"))?.next().is_some() {
        let message = format!(
            "{} is not empty: give --resume to go on with it, or choose another --out",
            out.display()
        );
        return Err(Failure::message(Kind::Folder, message));
    }
    // Whole at any moment, as a kill may come now.
    write_whole(&out.join(FILE), &plan).with_context(|| fails("write"))?;
    Ok(plan)
}

/// What was to be measured into the folder.
fn read(out: &Path) -> Result<Alternation, Failure> {
    let path = out.join(FILE);
    let folder = |why: String| Failure::message(Kind::Folder, format!("{}: {why}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| folder(error.to_string()))?;
    let plan: Alternation = serde_json::from_str(&text).map_err(|error| folder(error.to_string()))?;
    for side in &plan.sides {
        if identity(&side.command)? != (side.size_bytes, side.modified_unix_ns) {
            return Err(folder(format!(
                "{} is not the program with which it began: put that one back, or choose another --out",
                side.command.display()
            )));
        }
    }
    Ok(plan)
}

/// Size and time of change of a program.
fn identity(program: &Path) -> Result<(u64, u64), Failure> {
    let facts = fs::metadata(program).and_then(|facts| Ok((facts.len(), facts.modified()?)));
    let (size, modified) =
        facts.map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", program.display())))?;
    let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((size, u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX)))
}

impl SidePlan {
    /// The study in a file or of a run, measured with `command` or this program.
    fn new(command: Option<&Path>, study: &Path) -> Result<Self, Failure> {
        let words = run::one_repetition(run::words(study)?.words);
        let usage = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", study.display()));
        if !words.get(2).is_some_and(|name| STUDIES.contains(&name.as_str())) {
            return Err(usage(format!("only these studies have points to compare: {}", STUDIES.join(", "))));
        }
        if command.is_none() {
            let parsed = args::command().try_get_matches_from(&words);
            parsed.map_err(|error| usage(error.to_string()))?;
        }
        let command = command.map_or_else(std::env::current_exe, Path::canonicalize);
        let command = command.map_err(|error| usage(format!("its command: {error}")))?;
        let (size_bytes, modified_unix_ns) = identity(&command)?;
        Ok(Self { command, size_bytes, modified_unix_ns, words: words[1..].to_vec() })
    }

    /// Measures one turn into `folder`, or what is missing of it.
    fn run(&self, folder: &Path) -> Outcome {
        let mut command = Command::new(&self.command);
        command.args(&self.words).arg(format!("--out={}", folder.display()));
        if folder.join("run.json").exists() {
            command.arg("--resume");
        }
        if is_for_machines() {
            command.arg("--progress=json");
        } else if is_in_lines() {
            command.arg("--progress=lines");
        }
        let status = run_watched(command, interrupt::flag())
            .with_context(|| format!("{} cannot be started", self.command.display()))?;
        match status.code() {
            Some(0) => Ok(()),
            Some(code) => Err(Failure::message(
                Kind::of_code(code),
                format!("its virtbench ended with exit code {code}"),
            )),
            None => {
                Err(Failure::message(Kind::Other, format!("its virtbench did not end by itself: {status}")))
            }
        }
    }
}

/// Whether every point of a turn was measured, or found not to be measurable.
fn is_complete(folder: &Path) -> bool {
    load_run::<PointRecord>(folder).is_ok_and(|run| {
        run.provenance.plan.grid().is_some_and(|grid| run.records.len() >= schedule(grid).len())
    })
}

/// A failure of a turn: what was measured until then is kept.
fn kept(failure: Failure, side: &str, turn: u32, out: &Path) -> Failure {
    if interrupt::requested() {
        return stopped(out);
    }
    let what = format!(
        "{side}, turn {turn}: {failure}; what was measured is in {}, and --alternate --resume goes on",
        out.display()
    );
    Failure::message(failure.kind(), what)
}

fn stopped(out: &Path) -> Failure {
    interrupt::failure(&format!("what was measured is in {}; --alternate --resume goes on", out.display()))
}

/// Refuses to go on with sides that would have nothing to compare in the end.
fn require_common_points(folders: &[PathBuf; 2]) -> Outcome {
    let [before, after] = [open(&folders[0])?, open(&folders[1])?];
    if before_after([&before.set(), &after.set()], Margin::default(), None).environments.is_empty() {
        let message = "the two studies have no point in common: give environments the same name on both sides, as in \
                       vm=qemu:..., and both the same grid";
        return Err(Failure::message(Kind::Usage, message));
    }
    Ok(())
}
