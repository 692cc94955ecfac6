//! Vdbench parameter files (Vdbench Users Guide 5.04, chapters on SD, WD and RD): raw loads. What needs file systems, several hosts or
//! Vdbench itself is refused by name.

mod definitions;
mod lines;

use virtbench_workload::{AccessLine, AccessSpec, EngineKind, LoadSpec, Rate, WriteSync};

use self::definitions::{Definitions, Range, Run, Storage, Workload};
use self::lines::Parameter;
use super::{
    ASSUMED_REGION_BYTES, Findings, ImportError, ImportedJob, Location, MAX_JOBS, Schedule, Surroundings,
};

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
    jobs(&all, surroundings, findings)
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

/// A pass of a run's loops: what it says in place of workloads and targets.
#[derive(Debug, Clone, Copy)]
struct Pass {
    rate: Option<u64>,
    threads: Option<u64>,
    size: Option<u64>,
    read_percent: Option<u64>,
    random_percent: Option<u64>,
}

/// The jobs of all runs, in their order.
fn jobs(
    all: &Definitions,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) -> Result<Vec<ImportedJob>, ImportError> {
    let mut jobs = Vec::new();
    let mut group = 0;
    for run in &all.runs {
        let parts = parts(all, run, findings);
        let passes = passes(run)?;
        let loops = passes.len() > 1;
        for (number, pass) in (1..).zip(passes) {
            let name = if loops { format!("{} {number}", run.name) } else { run.name.clone() };
            for (storage_name, storage, workload) in &parts {
                let several = parts.len() > 1;
                let name = if several { format!("{name}, {storage_name}") } else { name.clone() };
                let part = Part { run, pass, storage, workload, of: parts.len() };
                jobs.push(part.job(name, group, surroundings, findings));
                if jobs.len() > MAX_JOBS {
                    let at = Location::line(run.line);
                    return Err(ImportError::TooMany { at, what: "jobs", most: MAX_JOBS });
                }
            }
            group += 1;
        }
    }
    Ok(jobs)
}

/// Each target of a run with the workload that it is under. Two workloads on one target share its threads in Vdbench, which nothing here
/// does.
fn parts<'a>(
    all: &'a Definitions,
    run: &Run,
    findings: &mut Findings,
) -> Vec<(&'a str, &'a Storage, &'a Workload)> {
    let workloads = Definitions::chosen(&all.workloads, &run.workloads);
    let at = Location::line(run.line);
    if workloads.is_empty() {
        findings
            .refuse(at, format!("wd={:.60}: there is no such workload definition", run.workloads.join(",")));
    }
    let mut parts: Vec<(&str, &Storage, &Workload)> = Vec::new();
    for (name, workload) in workloads.iter().map(|one| (&one.0, &one.1)) {
        let storage = Definitions::chosen(&all.storage, &workload.storage);
        if storage.is_empty() {
            let wanted = workload.storage.join(",");
            findings.refuse(
                Location::line(workload.line),
                format!("sd={wanted:.60}: there is no such storage definition"),
            );
        }
        for (target, storage) in storage.iter().map(|one| (one.0.as_str(), &one.1)) {
            if parts.iter().any(|(other, ..)| *other == target) {
                findings.refuse(at, format!("{target} is under {name} and another workload: run them one after the other, or put their sizes into one"));
            } else {
                parts.push((target, storage, workload));
            }
        }
        if workload.skew.is_some() && workloads.len() > 1 {
            findings.refuse(
                Location::line(workload.line),
                "skew: workloads of one rate cannot be kept in proportion here",
            );
        }
    }
    parts
}

/// Every pass of a run's loops, the last loop turning fastest.
fn passes(run: &Run) -> Result<Vec<Pass>, ImportError> {
    let mut passes = Vec::new();
    for size in &run.sizes {
        for read_percent in &run.read_percents {
            for random_percent in &run.random_percents {
                for threads in &run.threads {
                    for rate in &run.rates {
                        let (rate, threads, size) = (*rate, *threads, *size);
                        let (read_percent, random_percent) = (*read_percent, *random_percent);
                        passes.push(Pass { rate, threads, size, read_percent, random_percent });
                        if passes.len() > MAX_JOBS {
                            let at = Location::line(run.line);
                            return Err(ImportError::TooMany {
                                at,
                                what: "passes of a loop",
                                most: MAX_JOBS,
                            });
                        }
                    }
                }
            }
        }
    }
    Ok(passes)
}

/// A target under a workload in a pass of a run.
struct Part<'a> {
    run: &'a Run,
    pass: Pass,
    storage: &'a Storage,
    workload: &'a Workload,
    /// Targets at the same time.
    of: usize,
}

impl Part<'_> {
    fn job(
        &self,
        name: String,
        group: u32,
        surroundings: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> ImportedJob {
        let (start_bytes, size_bytes) = self.extent(surroundings, findings);
        let load = self.load(start_bytes, size_bytes.unwrap_or(ASSUMED_REGION_BYTES), findings);
        let target = self.storage.target.clone();
        ImportedJob { name, load, target, size_bytes, group, schedule: Schedule::default() }
    }

    /// Where the part of the target that is used begins, and its size in bytes where that is said or known.
    fn extent(&self, surroundings: &Surroundings<'_>, findings: &mut Findings) -> (u64, Option<u64>) {
        let start = self.storage.start_bytes;
        let said = self.storage.size_bytes;
        match self.workload.range.or(self.storage.range) {
            None => (start, said),
            Some(Range::Percent(from, to)) if from <= 0.0 && to >= 100.0 => (start, said),
            Some(Range::Bytes(from, to)) => (start + from, Some(to - from)),
            Some(Range::Percent(from, to)) => {
                let whole = said.or_else(|| (surroundings.size_of)(self.storage.target.as_deref()?));
                let Some(whole) = whole else {
                    let at = Location::line(self.workload.line);
                    findings.ignore(at, "range: say how large the target is (size=), of which it is a part");
                    return (start, said);
                };
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a part of the whole, which is 0 or more"
                )]
                let part = |percent: f64| (whole as f64 * percent / 100.0) as u64 / 4096 * 4096;
                (start + part(from), Some(part(to) - part(from)))
            }
        }
    }

    fn load(&self, start_bytes: u64, region_bytes: u64, findings: &mut Findings) -> LoadSpec {
        let threads = self.pass.threads.or(self.workload.threads).unwrap_or_else(|| self.storage.threads());
        let outstanding = u32::try_from(threads).unwrap_or(u32::MAX);
        if threads > 1 {
            findings.note("Vdbench's threads, each with one I/O, become outstanding I/Os of one worker");
        }
        let (ramp_s, time_s) = match self.run.warm_up_s {
            Some(warm_up) => (warm_up, self.run.elapsed_s),
            None => (self.run.interval_s, self.run.elapsed_s.saturating_sub(self.run.interval_s)),
        };
        if self.run.warm_up_s.is_none() {
            findings.note("the first interval of a run is its ramp-up: Vdbench leaves it out of its totals");
        }
        let access = self.access();
        let writes = access.lines.iter().any(|line| line.read_percent < 100.0);
        let ns = |seconds: u64| seconds.saturating_mul(1_000_000_000);
        LoadSpec {
            outstanding,
            workers: 1,
            ramp_ns: ns(ramp_s),
            time_ns: ns(time_s),
            interval_ns: ns(self.run.interval_s),
            engine: if outstanding == 1 { EngineKind::Psync } else { EngineKind::IoUring },
            direct: self.storage.flags.direct,
            write_sync: if writes { self.storage.flags.sync } else { WriteSync::None },
            rate: self.rate(findings),
            start_bytes,
            ..LoadSpec::new(access, region_bytes)
        }
    }

    fn access(&self) -> AccessSpec {
        let whole = |percent: Option<u64>, otherwise: f64| {
            percent.map_or(otherwise, |percent| percent.min(100) as f64)
        };
        let read_percent = whole(self.pass.read_percent, self.workload.read_percent);
        let random_percent = whole(self.pass.random_percent, self.workload.random_percent);
        let sizes = self.pass.size.map_or_else(|| self.workload.sizes.clone(), |size| vec![(size, 100.0)]);
        let line = |(size, share_percent): (u64, f64)| {
            let line = AccessLine::new(size, read_percent, random_percent);
            AccessLine {
                share_percent,
                align_bytes: self.storage.align_bytes.unwrap_or(line.align_bytes),
                ..line
            }
        };
        AccessSpec { lines: sizes.into_iter().map(line).collect() }
    }

    /// A rate is that of a run, and targets have equal parts of it.
    fn rate(&self, findings: &mut Findings) -> Option<Rate> {
        let rate = self.pass.rate?;
        findings.note("operations arrive at the rate, whether earlier ones are done or not, and latency counts from when each was due");
        Some(Rate { per_second: rate as f64 / self.of.max(1) as f64, arrivals: self.run.arrivals })
    }
}
