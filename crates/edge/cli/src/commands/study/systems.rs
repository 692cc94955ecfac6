//! `virtbench study deviation --systems`: ways of sharing one pair of emulated devices, one after the other.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use virtbench_record::{JobOutcome, MemberRecord, SetRecord, SetRole};
use virtbench_study::{LoadedRun, Simulated, System, simulate};
use virtbench_units::LatencySummary;

use super::{common, deviation};
use crate::args::{DeviationArgs, SetsArgs, Systems};
use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;

/// One machine under one system, alone or together with the others. Milliseconds, and operations a second.
#[derive(Debug, Clone, Serialize)]
struct Row {
    system: &'static str,
    vm: String,
    share_percent: Option<f64>,
    beside_others: bool,
    repetition: u32,
    per_second: Option<f64>,
    mean_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    simulated_per_second: Option<f64>,
    simulated_mean_ms: Option<f64>,
    simulated_p50_ms: Option<f64>,
    simulated_p90_ms: Option<f64>,
    simulated_p99_ms: Option<f64>,
}

/// Measures each system in a folder of its own, then compares what there is. A system that fails leaves the others be.
pub fn execute(args: &DeviationArgs) -> Outcome {
    let out = common::folder_path(args.sets.out.as_deref(), "systems");
    let mut systems: Vec<System> = Vec::new();
    for named in &args.systems {
        let named = match named {
            Systems::All => System::ALL.to_vec(),
            Systems::One(system) => vec![*system],
        };
        let new: Vec<System> = named.into_iter().filter(|system| !systems.contains(system)).collect();
        systems.extend(new);
    }
    let (mut failure, mut rows) = (None, Vec::new());
    for system in systems {
        let folder = out.join(system.folder());
        let (adapter, backing) = system.disk();
        let sets = SetsArgs {
            adapter: adapter.to_owned(),
            backing: backing.to_owned(),
            resume: args.sets.resume && folder.exists(),
            out: Some(folder.clone()),
            ..args.sets.clone()
        };
        if !args.sets.json {
            eprintln!("{}: {}", system.name, system.summary);
        }
        let measured = deviation::study(args, &sets)?.execute(|_| Ok(()));
        if let Err(error) = measured {
            if interrupt::flag().load(std::sync::atomic::Ordering::Relaxed) {
                return Err(error);
            }
            eprintln!("{}: {error}", system.name);
            failure = Some(error);
        }
        if let Ok((run, _)) = report::write_sets(&folder, None, None) {
            rows.extend(rows_of(system, args, &sets, &folder, &run)?);
        }
    }
    save(&out.join("comparison.csv"), &rows)?;
    show(&rows, args.sets.json, &out)?;
    failure.map_or(Ok(()), Err)
}

fn rows_of(
    system: System,
    args: &DeviationArgs,
    sets: &SetsArgs,
    folder: &Path,
    run: &LoadedRun<SetRecord>,
) -> Result<Vec<Row>, Failure> {
    let jobs = deviation::study(args, sets)?.jobs_as_given()?;
    let simulated = simulate(folder, &run.provenance, &run.records, &jobs).unwrap_or_else(|error| {
        eprintln!("{}: not simulated: {error}", system.name);
        Vec::new()
    });
    let Some(plan) = &run.provenance.together else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for record in &run.records {
        let Some(set) = plan.set(&record.set).filter(|set| set.role != SetRole::Saturation) else { continue };
        for (planned, member) in set.members.iter().zip(&record.members) {
            let twin = simulated.iter().find(|one| one.set == set.name && one.vm == planned.vm);
            let role = set.role == SetRole::Together;
            rows.push(row(system, planned.share_percent, role, record.repetition, member, twin));
        }
    }
    Ok(rows)
}

fn row(
    system: System,
    share_percent: Option<f64>,
    beside_others: bool,
    repetition: u32,
    member: &MemberRecord,
    twin: Option<&Simulated>,
) -> Row {
    let outcome = member.usable().map(|measured| &measured.outcome);
    let response = outcome.and_then(|outcome| match outcome {
        JobOutcome::Load(load) => load.total.latency_ns,
        JobOutcome::Workload(workload) => workload.latency_ns,
    });
    let ms = |of: Option<LatencySummary>, figure: fn(&LatencySummary) -> f64| of.map(|of| figure(&of) / 1e6);
    let in_twin = twin.and_then(|twin| twin.response_ns);
    Row {
        system: system.name,
        vm: member.vm.clone(),
        share_percent,
        beside_others,
        repetition,
        per_second: outcome.and_then(JobOutcome::throughput),
        mean_ms: ms(response, |of| of.mean),
        p50_ms: ms(response, |of| of.p50 as f64),
        p90_ms: ms(response, |of| of.p90 as f64),
        p99_ms: ms(response, |of| of.p99 as f64),
        simulated_per_second: twin.map(|twin| twin.per_second),
        simulated_mean_ms: ms(in_twin, |of| of.mean),
        simulated_p50_ms: ms(in_twin, |of| of.p50 as f64),
        simulated_p90_ms: ms(in_twin, |of| of.p90 as f64),
        simulated_p99_ms: ms(in_twin, |of| of.p99 as f64),
    }
}

fn save(path: &PathBuf, rows: &[Row]) -> Outcome {
    let mut csv = csv::Writer::from_path(path).map_err(|error| Failure::new(Kind::Folder, error))?;
    for row in rows {
        csv.serialize(row).map_err(|error| Failure::new(Kind::Folder, error))?;
    }
    csv.flush()?;
    Ok(())
}

/// What the machine with the least load gets under each system.
#[derive(Debug, Serialize)]
struct Compared {
    system: &'static str,
    vm: String,
    /// Alone and beside the others, and by how many percent they differ.
    per_second: [Option<f64>; 2],
    throughput_deviation_percent: Option<f64>,
    mean_ms: [Option<f64>; 2],
    response_deviation_percent: Option<f64>,
    simulated_mean_ms: [Option<f64>; 2],
    simulated_response_deviation_percent: Option<f64>,
}

fn compare(rows: &[Row]) -> Vec<Compared> {
    let mut systems: Vec<&'static str> = rows.iter().map(|row| row.system).collect();
    systems.dedup();
    let least = |rows: &[&Row]| {
        let shares = rows.iter().filter_map(|row| Some((row.share_percent?, row.vm.clone())));
        shares.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, vm)| vm)
    };
    let one = |system: &'static str| {
        let of_system: Vec<&Row> = rows.iter().filter(|row| row.system == system).collect();
        let vm = least(&of_system)?;
        let both = |figure: fn(&Row) -> Option<f64>| {
            [false, true].map(|beside| {
                let chosen = of_system.iter().filter(|row| row.vm == vm && row.beside_others == beside);
                let values: Vec<f64> = chosen.filter_map(|row| figure(row)).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            })
        };
        let delta =
            |[alone, beside]: [Option<f64>; 2]| virtbench_model::together::deviation_percent(alone?, beside?);
        let (per_second, mean_ms) = (both(|row| row.per_second), both(|row| row.mean_ms));
        let simulated_mean_ms = both(|row| row.simulated_mean_ms);
        Some(Compared {
            system,
            vm,
            per_second,
            throughput_deviation_percent: delta(per_second),
            mean_ms,
            response_deviation_percent: delta(mean_ms),
            simulated_mean_ms,
            simulated_response_deviation_percent: delta(simulated_mean_ms),
        })
    };
    systems.into_iter().filter_map(one).collect()
}

fn show(rows: &[Row], json: bool, folder: &Path) -> Outcome {
    let mut out = std::io::stdout().lock();
    let compared = compare(rows);
    if json {
        serde_json::to_writer(&mut out, &serde_json::json!({ "folder": folder, "systems": compared }))?;
        writeln!(out)?;
        return Ok(());
    }
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    writeln!(
        out,
        "The VM with the least load, alone and beside the others; in the simulator, the same load."
    )?;
    writeln!(
        out,
        "{:>20} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8}",
        "system",
        "alone /s",
        "beside /s",
        "delta %",
        "alone ms",
        "beside ms",
        "delta %",
        "sim. ms",
        "sim. ms",
        "delta %"
    )?;
    for one in &compared {
        let cells = one
            .per_second
            .into_iter()
            .chain([one.throughput_deviation_percent])
            .chain(one.mean_ms)
            .chain([one.response_deviation_percent])
            .chain(one.simulated_mean_ms)
            .chain([one.simulated_response_deviation_percent]);
        let cells: Vec<String> = cells.map(number).collect();
        let [a, b, c, d, e, f, g, h, i] = cells.as_slice() else { continue };
        writeln!(out, "{:>20} {a:>9} {b:>9} {c:>8} {d:>9} {e:>9} {f:>8} {g:>9} {h:>9} {i:>8}", one.system)?;
    }
    writeln!(out, "\nall VMs: {}", folder.join("comparison.csv").display())?;
    Ok(())
}
