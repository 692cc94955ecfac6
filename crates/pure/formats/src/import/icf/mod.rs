//! Iometer configuration files (iometer-org/iometer: PageSetup.cpp, AccessSpecList.cpp,
//! ManagerList.cpp, Worker.cpp, ICF_ifstream.cpp).
//!
//! A section is opened by a comment line (with a leading apostrophe) and closed by an `'END` line; in
//! it, a comment line names the values on the line below. Columns are found by their names, because
//! Iometer's versions differ in which of them exist.

mod lines;
mod managers;

use std::collections::BTreeMap;

use virtbench_workload::{Content, LoadSpec};

use self::lines::{Lines, shorten};
use self::managers::{Setup, Spec, Worker};
use super::{
    ASSUMED_REGION_BYTES, Findings, ImportError, ImportedJob, Location, MAX_JOBS, Schedule, Surroundings,
};

/// Reads a configuration file.
pub fn read(
    text: &str,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut lines = Lines::new(text);
    let mut setup = managers::Setup::default();
    let mut specs = Vec::new();
    let mut workers = Vec::new();
    while let Some((line, content)) = lines.next() {
        let lower = content.to_ascii_lowercase();
        if lower.starts_with("'test setup") {
            setup = managers::read_setup(&mut lines, findings)?;
        } else if lower.starts_with("'access specifications") {
            managers::read_access(&mut lines, &mut specs, findings)?;
        } else if lower.starts_with("'manager list") {
            managers::read_managers(&mut lines, &mut workers, findings)?;
        } else if lower.starts_with("'results display") {
            pass_over_display(&mut lines)?;
        } else if !lower.starts_with("version") && !lower.starts_with("'version") {
            findings.ignore(
                Location::line(line),
                format!("{:?} is no section known here", lines::shorten(content)),
            );
        }
    }
    build(&setup, &specs, &workers, surroundings, findings)
}

/// Passes over what Iometer's window shows while it measures, up to the section's end.
fn pass_over_display(lines: &mut Lines<'_>) -> Result<(), ImportError> {
    while let Some((_, content)) = lines.next() {
        if lines::starts(content, "'end results display") {
            return Ok(());
        }
    }
    let why = "the file ends inside the results display".into();
    Err(ImportError::Syntax { at: Location::line(1), why })
}

/// What a size and a start count in, and an alignment of 0 where the device does not say otherwise.
const SECTOR_BYTES: u64 = 512;

/// Measuring time where the file sets none, in nanoseconds.
const DEFAULT_TIME_NS: u64 = 5_000_000_000;

/// The jobs of the file. Iometer runs the first assigned specification of all workers, then the
/// second, and so on; workers that do the same on one target become one job.
fn build(
    setup: &Setup,
    specs: &[Spec],
    workers: &[Worker],
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let workers = with_work(setup, specs, workers, findings);
    let known: BTreeMap<&str, &Spec> = specs.iter().map(|spec| (spec.name.as_str(), spec)).collect();
    let rounds = workers.iter().map(|worker| worker.specs.len()).max().unwrap_or(0);
    let mut jobs: Vec<ImportedJob> = Vec::new();
    let mut index = BTreeMap::new();
    let none = [String::new()];
    for (round, group) in (0..rounds).zip(0u32..) {
        for worker in &workers {
            let Some((name, line)) = worker.specs.get(round) else { continue };
            let Some(spec) = known.get(name.as_str()) else {
                let at = Location::line(*line);
                findings.ignore(at, format!("access specification {:?} is not in this file", shorten(name)));
                continue;
            };
            if spec.access.lines.is_empty() {
                findings.note(format!("{:?} does nothing and is passed over", shorten(name)));
                continue;
            }
            let targets = if worker.targets.is_empty() { none.as_slice() } else { &worker.targets };
            for target in targets {
                let extent = (worker.size_sectors, worker.start_sector);
                let key = (round, name, target, worker.outstanding, extent, worker.pattern);
                if let Some(job) = index.get(&key).and_then(|at: &usize| jobs.get_mut(*at)) {
                    job.load.workers += 1;
                    continue;
                }
                if jobs.len() == MAX_JOBS {
                    let at = Location::line(*line);
                    return Err(ImportError::TooMany { at, what: "jobs", most: MAX_JOBS });
                }
                index.insert(key, jobs.len());
                let mut job = job(setup, worker, spec, target, group, findings);
                align(&mut job.load, target, surroundings);
                jobs.push(job);
            }
        }
    }
    Ok(jobs)
}

/// The workers that have something to do: as in Iometer, one without a specification or without a target is
/// idle. Where none has a specification, each is run by the default number of workers; where none has a
/// target, the user names one.
fn with_work(setup: &Setup, specs: &[Spec], workers: &[Worker], findings: &mut Findings) -> Vec<Worker> {
    let has_targets = workers.iter().any(|worker| !worker.targets.is_empty());
    let has_specs = workers.iter().any(|worker| !worker.specs.is_empty());
    let is_busy = |worker: &&Worker| {
        (!has_targets || !worker.targets.is_empty()) && (!has_specs || !worker.specs.is_empty())
    };
    let busy: Vec<Worker> = workers.iter().filter(is_busy).cloned().collect();
    if busy.len() < workers.len() {
        findings.note(format!(
            "{} of {} workers have no target or no access specification: they are idle, as in Iometer",
            workers.len() - busy.len(),
            workers.len()
        ));
    }
    if busy.iter().any(|worker| Some(worker.manager) != busy.first().map(|first| first.manager)) {
        findings.note(
            "the file has workers of several managers, which are machines: here one machine runs them all",
        );
    }
    if has_specs || specs.is_empty() {
        return busy;
    }
    findings.note("no worker has an access specification assigned: each is run, with one outstanding I/O unless the worker says more");
    let specs: Vec<(String, usize)> = specs.iter().map(|spec| (spec.name.clone(), 1)).collect();
    if busy.is_empty() {
        let count = setup.workers.unwrap_or(1).min(virtbench_workload::MAX_WORKERS) as usize;
        return vec![Worker { outstanding: 1, specs, ..Worker::default() }; count];
    }
    busy.into_iter().map(|worker| Worker { specs: specs.clone(), ..worker }).collect()
}

/// Gives an alignment of 0 its meaning: the sector of the device that is used.
fn align(load: &mut LoadSpec, target: &str, surroundings: &Surroundings<'_>) {
    for line in load.access.lines.iter_mut().filter(|line| line.align_bytes == 0) {
        line.align_bytes = (surroundings.sector_of)(target).unwrap_or(SECTOR_BYTES);
    }
}

fn job(
    setup: &Setup,
    worker: &Worker,
    spec: &Spec,
    target: &str,
    group: u32,
    findings: &mut Findings,
) -> ImportedJob {
    if setup.time_ns == 0 {
        findings.note(format!(
            "the run time is 0, until stopped by hand in Iometer; here {} s",
            DEFAULT_TIME_NS / 1_000_000_000
        ));
    }
    let path = target.starts_with('/').then(|| target.to_owned());
    if path.is_none() && !target.is_empty() {
        let target = shorten(target);
        findings.note(format!(
            "{target:?} is a target of the machine that the file was made on and is not used: another one stands for it"
        ));
    }
    if worker.pattern == Some(0) && spec.access.writes() {
        findings.note("data pattern 0 writes repeating bytes: here wholly compressible blocks");
    }
    let size_bytes = Some(worker.size_sectors.saturating_mul(SECTOR_BYTES)).filter(|bytes| *bytes > 0);
    let load = LoadSpec {
        outstanding: worker.outstanding,
        ramp_ns: setup.ramp_ns,
        time_ns: if setup.time_ns == 0 { DEFAULT_TIME_NS } else { setup.time_ns },
        seed: worker.seed.unwrap_or(1),
        start_bytes: worker.start_sector.saturating_mul(SECTOR_BYTES),
        content: Content {
            compressible_percent: if worker.pattern == Some(0) { 100 } else { 0 },
            ..Content::default()
        },
        ..LoadSpec::new(spec.access.clone(), size_bytes.unwrap_or(ASSUMED_REGION_BYTES))
    };
    ImportedJob {
        name: spec.name.clone(),
        load,
        target: path,
        size_bytes,
        group,
        schedule: Schedule::default(),
    }
}
