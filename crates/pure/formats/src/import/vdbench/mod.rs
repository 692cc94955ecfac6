//! Vdbench parameter files (Vdbench Users Guide 5.04, chapters on SD, WD and RD): raw loads. What needs file systems, several hosts or
//! Vdbench itself is refused by name.

mod definitions;
mod lines;
mod runs;
mod values;

use super::{Findings, ImportError, ImportedJob, Surroundings};
use definitions::Definitions;
use lines::Parameter;

/// What changes nothing about a load: how Vdbench reports, and how it starts its own processes.
const NO_LOAD: [&str; 13] = [
    "abort_failed_skew",
    "create_anchors",
    "data_errors",
    "debug",
    "formatsds",
    "histogram",
    "jvms",
    "messagescan",
    "monitor",
    "report",
    "swat",
    "timer",
    "cancel_all",
];

/// Reads every run definition.
pub fn read(
    text: &str,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut all = Definitions::default();
    for parameters in lines::statements(text)? {
        let Some(first) = parameters.first() else { continue };
        match first.name.as_str() {
            "sd" => all.storage(&parameters, findings)?,
            "wd" => all.workload(&parameters, findings)?,
            "rd" => all.run(&parameters, findings)?,
            "hd" => host(&parameters, findings),
            "fsd" | "fwd" => findings.refuse(
                first.at(),
                format!("{}: file systems are loaded by `virtbench workload`, not by a load", first.name),
            ),
            "include" => findings.refuse(first.at(), "include: put the file's lines in its place"),
            _ => parameters.iter().for_each(|one| general(one, findings)),
        }
    }
    runs::jobs(&all, surroundings, findings)
}

fn general(one: &Parameter, findings: &mut Findings) {
    if NO_LOAD.contains(&one.name.as_str()) || is_nothing(one) {
        findings.leave_out(&one.name, one.line);
    } else {
        findings.ignore(
            one.at(),
            format!("{}={:.60}: Vdbench's own, which nothing here does", one.name, one.value),
        );
    }
}

/// What is on by name and off by value.
fn is_nothing(one: &Parameter) -> bool {
    matches!(
        (one.name.as_str(), one.value.as_str()),
        ("compratio" | "dedupratio", "1") | ("validate" | "journal" | "concatenate", "no")
    )
}

/// A host: this one, or another, on which nothing is run.
fn host(parameters: &[Parameter], findings: &mut Findings) {
    for one in parameters {
        let is_elsewhere = one.name == "system" && !matches!(one.value.as_str(), "localhost" | "127.0.0.1");
        if is_elsewhere {
            let host = &one.value;
            findings.refuse(
                one.at(),
                format!("system={host:.60}: run it there, or name ssh://{host:.60} as the environment"),
            );
        } else {
            findings.leave_out(&one.name, one.line);
        }
    }
}
