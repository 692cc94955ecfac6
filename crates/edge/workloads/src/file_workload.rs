//! Loads on files, and what their reports are as figures.

use crate::files::{Ended, FileRun, FilesError, Outside, Part, Reach, Report};
use virtbench_record::Better;
use virtbench_units::LatencyRecorder;
use virtbench_workload::files::{FileLoad, FileSpec};

use crate::mount::Mount;
use crate::runner::{RunError, Runner, Sheet, Storage, Watch};
use crate::storage_folder::folder;

/// A load on files in a folder, or on a disk of our own.
pub(crate) struct Files {
    // The files go before the file system that holds them.
    run: FileRun,
    _mount: Option<Mount>,
    seed: u64,
}

impl Files {
    /// Makes the files that the load begins with.
    pub(crate) fn new(
        spec: &FileSpec,
        seed: u64,
        place: Option<&Storage>,
        is_over: &dyn Fn() -> bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        let (mount, directory) = folder(place, notes)?;
        let reach = if mount.is_some() { Reach::Machine } else { Reach::OwnFiles };
        let run = FileRun::prepare(spec, seed, &directory, reach, is_over)?;
        notes.extend(run.notes());
        Ok(Self { run, _mount: mount, seed })
    }
}

impl From<FilesError> for RunError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::Load(error) => Self::Workload(error.into()),
            FilesError::Resource { what, source } => Self::resource(what, source),
            error => Self::Storage(error.to_string()),
        }
    }
}

impl Runner for Files {
    fn threads(&self) -> u32 {
        self.run.spec().load.threads()
    }

    fn round(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<(), RunError> {
        let count = |operations, bytes| watch.count(operations, bytes);
        self.seed = self.seed.wrapping_add(1);
        let report = self.run.run(self.seed, &Outside { is_over: &|| watch.is_over(), count: &count })?;
        enter(self.run.spec(), &report, sheet);
        // A full file system stays full: another run would only fail again.
        if let Some(Ended::Full { .. } | Ended::Stalled { .. }) = report.ended {
            watch.end();
        }
        Ok(())
    }
}

/// Writes a report on the sheet. Tests that were cut are left out; threads' operations count whatever
/// time they had, for they are rates.
fn enter(spec: &FileSpec, report: &Report, sheet: &mut Sheet) {
    for (kind, count) in &report.error_kinds {
        sheet.errors(kind, *count);
    }
    if let Some(ended) = report.ended.as_ref().filter(|ended| **ended != Ended::Interrupted) {
        sheet.errors(kind_of(ended), 1);
        sheet.note(format!("a run ended before its time: {ended}; what was measured until then is kept"));
    }
    for part in &report.parts {
        sheet.latencies(&part.latency);
    }
    let FileSpec { load, run_ns, .. } = spec;
    match load {
        FileLoad::Bonnie(_) | FileLoad::Iozone(_) => {
            let whole = report.parts.len() - usize::from(report.ended.is_some() && !report.parts.is_empty());
            for part in &report.parts[..whole] {
                test(part, sheet);
            }
        }
        // The rest of a time that did not suffice for half a run says little; unless it is all there is.
        _ if report.elapsed_ns < run_ns / 2 && !sheet.metrics().is_empty() => {}
        FileLoad::Model(_) => threads(report, false, sheet),
        FileLoad::Dbench(_) => threads(report, true, sheet),
    }
}

fn kind_of(ended: &Ended) -> &'static str {
    match ended {
        Ended::Interrupted => "Interrupted",
        Ended::Full { .. } => "StorageFull",
        Ended::Failed { .. } => "Failed",
        Ended::Stalled { .. } => "Stalled",
    }
}

/// A test of Bonnie++'s or Iozone's: bytes a second where it moves any, else operations, and how much
/// CPU time it took, as Bonnie++ prints it.
fn test(part: &Part, sheet: &mut Sheet) {
    let by_operations = part.bytes == 0 || part.name == "seeks" || part.name.starts_with("create");
    if by_operations {
        sheet.sample(&part.name, "operations/s", Better::Higher, part.per_second());
    } else {
        sheet.sample(&part.name, "B/s", Better::Higher, part.bytes_per_second());
    }
    if let (Some(cpu_ns), true) = (part.cpu_ns, part.elapsed_ns > 0) {
        let percent = 100.0 * (cpu_ns[0] + cpu_ns[1]) as f64 / part.elapsed_ns as f64;
        sheet.sample(&format!("{} cpu", part.name), "%", Better::Neither, percent);
    }
}

/// Threads that ran for a time: throughput and response time, of all and of each kind of operation.
fn threads(report: &Report, bytes_lead: bool, sheet: &mut Sheet) {
    let seconds = (report.elapsed_ns as f64 / 1e9).max(1e-9);
    let operations: u64 = report.parts.iter().map(|part| part.operations).sum();
    let bytes: u64 = report.parts.iter().map(|part| part.bytes).sum();
    let mut all = LatencyRecorder::new();
    report.parts.iter().for_each(|part| all.merge(&part.latency));
    sheet.sample("operations", "operations/s", Better::Higher, operations as f64 / seconds);
    if bytes_lead {
        sheet.lead("throughput", "B/s", Better::Higher, bytes as f64 / seconds);
    } else {
        sheet.sample("throughput", "B/s", Better::Higher, bytes as f64 / seconds);
    }
    if let Some(latency) = all.summary() {
        sheet.sample("response", "ns", Better::Lower, latency.mean);
        sheet.sample("response max", "ns", Better::Lower, latency.max as f64);
    }
    for part in &report.parts {
        let name = &part.name;
        sheet.sample(name, "operations/s", Better::Higher, part.per_second());
        if let Some(latency) = part.latency.summary() {
            sheet.sample(&format!("{name} response"), "ns", Better::Lower, latency.mean);
            sheet.sample(&format!("{name} p95"), "ns", Better::Lower, latency.p95 as f64);
            sheet.sample(&format!("{name} max"), "ns", Better::Lower, latency.max as f64);
        }
    }
}

#[cfg(test)]
#[path = "file_workload_tests.rs"]
mod tests;
