//! How each command shows its progress.

use std::collections::BTreeMap;
use std::fs;

use crate::args;

/// How a command shows what it does, and where.
enum Shown {
    /// A file of the command's that draws by these words of `progress.rs`, or of what stands on it.
    By(&'static str, &'static str),
    /// It has none, and why.
    No(&'static str),
}

use Shown::{By, No};

const STUDY: Shown = By("commands/study_runs/mod.rs", "StudyProgress::new");
const SHORT: Shown = No("writes what it has in memory");

const COMMANDS: &[(&str, Shown)] = &[
    ("load", By("commands/load/measure.rs", "progress::timer")),
    ("workload", By("commands/workload.rs", "progress::timer")),
    ("oltp populate", By("commands/oltp.rs", "progress::bar")),
    ("oltp run", By("commands/driver.rs", "progress::timer")),
    ("oltp check", By("commands/oltp.rs", "progress::timer")),
    ("users web", By("commands/driver.rs", "progress::timer")),
    ("users key-value", By("commands/driver.rs", "progress::timer")),
    ("users mail", By("commands/driver.rs", "progress::timer")),
    ("saturate", By("commands/load/measure.rs", "progress::timer")),
    ("surface", By("commands/load/measure.rs", "progress::timer")),
    ("study native-vs-vm", STUDY),
    ("study adapters", STUDY),
    ("study compare", STUDY),
    ("study neighbours", STUDY),
    ("study deviation", STUDY),
    ("study predictions", STUDY),
    ("study oltp", STUDY),
    ("study application", STUDY),
    ("study desktops", STUDY),
    ("study operations", STUDY),
    ("study tiles", STUDY),
    ("study network", STUDY),
    ("study platform", STUDY),
    ("run", STUDY),
    ("compare", By("commands/compare.rs", "progress::during")),
    ("history list", By("commands/history.rs", "progress::lengthen")),
    ("history page", By("commands/history.rs", "progress::during")),
    ("history rebuild", By("commands/history.rs", "progress::spinner")),
    ("history tag", No("writes one small file")),
    ("papers", By("commands/papers.rs", "progress::during")),
    ("analyse", By("commands/analyse.rs", "progress::during")),
    ("profile", By("commands/profile.rs", "progress::timed")),
    ("costs", By("commands/profile.rs", "with_progress")),
    ("predict", By("commands/predict.rs", "with_progress")),
    ("fence simulate", By("commands/fence/evaluate.rs", "progress::counted")),
    ("fence plan", By("commands/fence/plan.rs", "progress::counted")),
    ("fence format", By("commands/fence/serve.rs", "progress::during")),
    ("fence serve", No("serves until it is ended")),
    ("fence drain", By("commands/fence/resize.rs", "progress::during")),
    ("fence resize", By("commands/fence/resize.rs", "progress::spinner")),
    ("fence add", By("commands/fence/resize.rs", "shown(")),
    ("fence remove", By("commands/fence/resize.rs", "shown(")),
    ("fence reslot", No("tells a daemon, and edits one small file")),
    ("fence calibrate", By("commands/fence/calibrate.rs", "progress::counted")),
    ("fence inspect", By("commands/fence/inspect.rs", "progress::lengthen")),
    ("fence status", No("prints a table at intervals, or one")),
    ("appliance build", By("commands/appliance.rs", "progress::spinner")),
    ("appliance list", No("reads the manifests of some folders")),
    ("appliance run", By("commands/appliance/run.rs", "shown(")),
    ("appliance path", By("commands/appliance.rs", "progress::during")),
    ("appliance shell", No("gives the terminal to a shell")),
    ("appliance remove", No("removes some files")),
    ("sweep", By("commands/sweep.rs", "progress::during")),
    ("report", By("commands/report.rs", "progress::during")),
    ("doctor", By("commands/doctor.rs", "progress::during")),
    ("man", SHORT),
    ("completions", SHORT),
];

/// Names of commands without commands of their own, with those above them.
fn leaves(command: &clap::Command, above: &str, found: &mut Vec<String>) {
    for one in command.get_subcommands() {
        let name = format!("{above}{}", one.get_name());
        if one.has_subcommands() {
            leaves(one, &format!("{name} "), found);
        } else {
            found.push(name);
        }
    }
}

#[test]
fn every_command_says_how_it_shows_its_progress() {
    let mut all = Vec::new();
    leaves(&args::command(), "", &mut all);
    all.retain(|name| !name.split(' ').any(|word| word == "help"));
    all.sort();
    let known: BTreeMap<&str, &Shown> = COMMANDS.iter().map(|(name, shown)| (*name, shown)).collect();
    assert_eq!(known.keys().copied().collect::<Vec<_>>(), all, "the list, and the commands that there are");
    for (name, shown) in known {
        match shown {
            By(file, words) => {
                let path = format!("{}/src/{file}", env!("CARGO_MANIFEST_DIR"));
                let text =
                    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {path}: {error}"));
                assert!(text.contains(words), "{name}: {file} has no {words}");
            }
            No(why) => assert!(!why.is_empty(), "{name}"),
        }
    }
}
