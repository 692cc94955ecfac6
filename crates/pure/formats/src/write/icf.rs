//! An Iometer configuration from loads.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use virtbench_workload::{Content, EngineKind, Placement, WriteSync};

use super::{Inexpressible, Refusal};
use crate::import::ImportedJob;

const SECTOR_BYTES: u64 = 512;
const SECOND_NS: u64 = 1_000_000_000;

/// Writes a configuration with one manager. Iometer has one set-up and one list of workers for all:
/// the jobs must agree in everything but their access specifications.
///
/// # Errors
/// Something Iometer has no words for: rates, flushes, trims, skewed placement, times that are no
/// whole seconds, jobs that differ in workers, targets or times.
pub fn write_icf(jobs: &[ImportedJob]) -> Result<String, Inexpressible> {
    let Some(first) = jobs.first() else {
        return Err(Refusal { job: "", tool: "Iometer" }.error("a file without jobs"));
    };
    let mut names = BTreeSet::new();
    for job in jobs {
        check(job, first)?;
        let refusal = Refusal { job: &job.name, tool: "Iometer" };
        refusal.name(&[',', '\''])?;
        refusal.unless(names.insert(&job.name), "two specifications of one name")?;
    }
    let refusal = Refusal { job: &first.name, tool: "Iometer" };
    let seconds = refusal.whole(first.load.time_ns, SECOND_NS, "run time")?;
    let ramp = refusal.whole(first.load.ramp_ns, SECOND_NS, "ramp-up")?;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut out = String::from("Version 1.1.0 \n");
    let _ = write!(
        out,
        "'TEST SETUP ====================================================================\n\
         'Test Description\n\tWritten by virtbench\n'Run Time\n'\thours      minutes    seconds\n\
         \t{hours:<11}{minutes:<11}{rest}\n'Ramp Up Time (s)\n\t{ramp}\n\
         'Default Disk Workers to Spawn\n\t{}\n'Record Results\n\tALL\n'Test Type\n\tNORMAL\n'END test setup\n\
         'ACCESS SPECIFICATIONS =========================================================\n",
        first.load.workers
    );
    for job in jobs {
        access(&mut out, job)?;
    }
    out.push_str("'END access specifications\n");
    out.push_str("'MANAGER LIST ==================================================================\n");
    out.push_str("'Manager ID, manager name\n\t1,virtbench\n'Manager network address\n\t\n");
    for number in 1..=first.load.workers {
        worker(&mut out, number, jobs, first);
    }
    out.push_str("'End manager\n'END manager list\nVersion 1.1.0 \n");
    Ok(out)
}

fn check(job: &ImportedJob, first: &ImportedJob) -> Result<(), Inexpressible> {
    let refusal = Refusal { job: &job.name, tool: "Iometer" };
    let load = &job.load;
    refusal.unless(load.rate.is_none(), "a rate")?;
    refusal.unless(load.flush_every.is_none(), "flushes")?;
    refusal.unless(!load.verify, "verification")?;
    refusal.unless(load.content == Content::default() && load.pattern.is_empty(), "what is written")?;
    refusal.unless(load.write_sync == WriteSync::None && !load.flush_at_end, "writes that are durable")?;
    refusal.unless(load.start_bytes.is_multiple_of(SECTOR_BYTES), "a start within a sector")?;
    refusal.unless(load.engine == EngineKind::IoUring && load.direct, "buffered or blocking I/O")?;
    refusal.unless(load.processors.is_empty(), "processors")?;
    let common = |job: &ImportedJob| {
        let load = &job.load;
        (
            load.workers,
            load.outstanding,
            load.seed,
            load.time_ns,
            load.ramp_ns,
            job.size_bytes,
            job.target.clone(),
            load.start_bytes,
        )
    };
    refusal
        .unless(common(job) == common(first), "jobs that differ in more than their access specification")?;
    refusal
        .unless(job.size_bytes.is_none_or(|bytes| bytes.is_multiple_of(SECTOR_BYTES)), "part of a sector")?;
    let target = job.target.as_deref().unwrap_or("/");
    let plain = target.starts_with('/') && target.trim() == target && !target.contains(char::is_control);
    refusal.unless(plain, format!("the target {target:?}"))
}

fn access(out: &mut String, job: &ImportedJob) -> Result<(), Inexpressible> {
    let refusal = Refusal { job: &job.name, tool: "Iometer" };
    let _ = write!(
        out,
        "'Access specification name,default assignment\n\t{},NONE\n\
         'size,% of size,% reads,% random,delay,burst,align,reply\n",
        job.name
    );
    for line in &job.load.access.lines {
        refusal.unless(line.trim_percent <= 0.0, "trims")?;
        refusal.unless(line.placement == Placement::Uniform, "skewed placement")?;
        refusal.unless(line.share_percent > 0.0, "a line without a share")?;
        let delay = refusal.whole(line.delay_ns, 1_000_000, "delay")?;
        let _ = writeln!(
            out,
            "\t{},{},{},{},{delay},{},{},0",
            line.size_bytes,
            line.share_percent,
            line.read_percent,
            line.random_percent,
            line.burst,
            line.align_bytes
        );
    }
    Ok(())
}

fn worker(out: &mut String, number: u32, jobs: &[ImportedJob], first: &ImportedJob) {
    let sectors = first.size_bytes.unwrap_or(0) / SECTOR_BYTES;
    let start = first.load.start_bytes / SECTOR_BYTES;
    let _ = write!(
        out,
        "'Worker\n\tWorker {number}\n'Worker type\n\tDISK\n'Default target settings for worker\n\
         'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\
         \t{},DISABLED,1,ENABLED,{}\n'Disk maximum size,starting sector,Data pattern\n\t{sectors},{start},2\n\
         'End default target settings for worker\n'Assigned access specs\n",
        first.load.outstanding, first.load.seed
    );
    for job in jobs {
        let _ = writeln!(out, "\t{}", job.name);
    }
    out.push_str("'End assigned access specs\n'Target assignments\n");
    if let Some(target) = &first.target {
        let _ = write!(out, "'Target\n\t{target}\n'Target type\n\tDISK\n'End target\n");
    }
    out.push_str("'End target assignments\n'End worker\n");
}
