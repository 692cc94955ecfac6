//! `virtbench study deviation --systems`: ways of sharing one pair of emulated devices, one after the other.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use virtbench_record::{Ranged, SystemNumbers, SystemsSummary};
use virtbench_report::{DEVIATION_LEGEND, fate_in_words, ranged_percent, systems_csv, systems_markdown};
use virtbench_runs::read_provenance;
use virtbench_study::{Estimate, StudyError, System, TriedSystem, compare_systems, estimate_systems};

use super::{folder_path, study_failure, watched};
use crate::args::{DeviationArgs, Systems};
use crate::commands::report;
use crate::commands::study::deviation::deviation;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;

/// Measures each system in a folder of its own, then compares what there is.
pub fn execute(args: &DeviationArgs) -> Outcome {
    let out = folder_path(args.sets.folder.out.as_deref(), "systems");
    let (study, systems) = (deviation(args)?, chosen(&args.systems));
    // After each, so that one can look while the others are measured, and a kill loses nothing.
    let mut on_tried = |tried: &[TriedSystem]| save(&out, tried).map_err(Ended::Saving);
    let compared =
        watched(&out, args.sets.folder.resume, |run| compare_systems(&study, &systems, run, &mut on_tried))?;
    show(&compared.tried, args.sets.folder.json, &out)?;
    compared.failure.map_or(Ok(()), |error| Err(study_failure(error)))
}

/// What is measured under all systems, and about how long that takes.
///
/// # Errors
/// The study is impossible.
pub fn estimate(args: &DeviationArgs) -> Result<Estimate, Failure> {
    Ok(estimate_systems(&deviation(args)?, chosen(&args.systems).len()))
}

/// Why no further system is tried.
enum Ended {
    Study(StudyError),
    Saving(Failure),
}

impl From<StudyError> for Ended {
    fn from(error: StudyError) -> Self {
        Self::Study(error)
    }
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Study(error) => study_failure(error),
            Ended::Saving(failure) => failure,
        }
    }
}

/// Each system that is named, once.
fn chosen(named: &[Systems]) -> Vec<System> {
    let mut systems: Vec<System> = Vec::new();
    for named in named {
        let named = match named {
            Systems::All => System::all().collect(),
            Systems::One(system) => vec![*system],
        };
        let new: Vec<System> = named.into_iter().filter(|system| !systems.contains(system)).collect();
        systems.extend(new);
    }
    systems
}

/// Writes the page of the last system, and `comparison.csv` with every machine, `table.md` and `table.json` with every
/// system, into `folder`.
fn save(folder: &Path, tried: &[TriedSystem]) -> Result<(), Failure> {
    if let Some(last) = tried.last() {
        let own = folder.join(last.system.folder());
        if read_provenance(&own).is_ok() {
            report::write(&own)?;
        }
    }
    let compared: Vec<SystemNumbers> = tried.iter().map(TriedSystem::numbers).collect();
    let json = virtbench_formats::json::pretty_text(&compared)? + "\n";
    let csv = systems_csv(tried.iter().flat_map(|tried| &tried.rows))?;
    fs::create_dir_all(folder)?;
    for (name, text) in
        [("comparison.csv", csv), ("table.md", systems_markdown(&compared)), ("table.json", json)]
    {
        fs::write(folder.join(name), text).map_err(|error| Failure::new(Kind::Folder, error))?;
    }
    Ok(())
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// Says what came of all of them.
fn show(tried: &[TriedSystem], json: bool, folder: &Path) -> Outcome {
    let compared: Vec<SystemNumbers> = tried.iter().map(TriedSystem::numbers).collect();
    let mut out = std::io::stdout().lock();
    if json {
        return Ok(print_json(&SystemsSummary { folder: folder.display().to_string(), systems: compared })?);
    }
    table(&mut out, &compared)?;
    writeln!(out, "\n{DEVIATION_LEGEND} alone, beside: mean ms; p99: ms beside the others.")?;
    writeln!(out, "\nall VMs: {}", folder.join("comparison.csv").display())?;
    writeln!(out, "for a document: {}", folder.join("table.md").display())?;
    Ok(())
}

/// A line for each VM.
fn table(out: &mut impl Write, compared: &[SystemNumbers]) -> io::Result<()> {
    writeln!(
        out,
        "{:>17} {:>4} {:>6} {:>6} {:>7} {:>7} {:>20} {:>6}",
        "system", "VM", "/s, %", "alone", "beside", "p99", "ms, differs % (95 %)", "sim. %"
    )?;
    for one in compared {
        if let Some(why) = fate_in_words(one) {
            writeln!(out, "{:>17} {why}", one.system)?;
        }
        for vm in &one.vms {
            let mean = |value: Option<Ranged>| number(value.map(|value| value.mean));
            let [alone, beside] = vm.mean_ms.map(number);
            let interval = |ranged: Ranged| ranged_percent(&Ranged { least: None, greatest: None, ..ranged });
            writeln!(
                out,
                "{:>17} {:>4} {:>6} {alone:>6} {beside:>7} {:>7} {:>20} {:>6}",
                one.system,
                vm.vm,
                mean(vm.throughput_deviation),
                number(vm.p99_ms[1]),
                vm.response_deviation.map_or_else(|| "-".to_owned(), interval),
                mean(vm.simulated_response_deviation)
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use virtbench_record::{SystemFate, SystemVmNumbers};

    use super::*;

    #[test]
    fn each_is_chosen_once() {
        let fourth = System::all().nth(3).unwrap();
        let one = Systems::One(fourth);
        assert_eq!(chosen(&[one, Systems::All, one]).len(), System::all().count());
        assert_eq!(chosen(&[one, one]), [fourth]);
    }

    #[test]
    fn a_table_of_systems_is_kept_as_its_schema_has_it() {
        let [none, blkio] = ["none", "blkio"].map(|name| System::find(name).unwrap());
        let lacking = SystemFate::Unavailable("no root".into());
        let tried = [
            TriedSystem { system: none, fate: SystemFate::Measured, rows: Vec::new() },
            TriedSystem { system: blkio, fate: lacking, rows: Vec::new() },
        ];
        let folder = tempfile::tempdir().unwrap();
        save(folder.path(), &tried).unwrap_or_else(|error| panic!("{error}"));
        let json = fs::read_to_string(folder.path().join("table.json")).unwrap();
        let back: Vec<SystemNumbers> = serde_json::from_str(&json).unwrap();
        assert_eq!(back, tried.each_ref().map(TriedSystem::numbers));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["status"], &json[1]["why"]), (&"measured".into(), &"no root".into()));
    }

    #[test]
    fn the_table_has_the_99th_percentile_beside_the_others() {
        let vm = SystemVmNumbers {
            vm: "vm1".into(),
            share_percent: Some(8.0),
            per_second: [Some(10.0); 2],
            throughput_deviation: None,
            mean_ms: [Some(10.0), Some(30.0)],
            response_deviation: None,
            p99_ms: [Some(20.0), Some(60.0)],
            simulated_per_second: [None; 2],
            simulated_throughput_deviation: None,
            simulated_mean_ms: [None; 2],
            simulated_response_deviation: None,
            simulated_p99_ms: [None; 2],
        };
        let none = SystemNumbers {
            system: "none".into(),
            summary: String::new(),
            fate: SystemFate::Measured,
            vms: vec![vm],
        };
        let mut printed = Vec::new();
        table(&mut printed, &[none]).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
        // The head has a space in "/s, %".
        assert_eq!((lines[0][6], lines[1][5]), ("p99", "60.0"), "{printed}");
    }
}
