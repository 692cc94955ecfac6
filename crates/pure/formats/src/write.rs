//! Loads into other tools' formats.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use thiserror::Error;
use virtbench_workload::{
    AccessSpec, Amount, Arrivals, Content, EngineKind, FlushKind, LoadSpec, Placement, WriteSync,
};

use crate::import::{FORMAT_VERSION, ImportedJob, JsonJob, JsonLoad};

/// A load that a format cannot say.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("job {job:?}: {tool} cannot say {what}")]
pub struct Inexpressible {
    /// The job's name.
    pub job: String,
    /// The tool whose format it is.
    pub tool: &'static str,
    /// What cannot be said.
    pub what: String,
}

/// Writes virtbench's own format (docs/formats.md).
///
/// # Errors
/// Only where a number is not finite, which a valid load does not have.
pub fn write_json(jobs: &[ImportedJob]) -> Result<String, serde_json::Error> {
    let jobs = jobs.iter().cloned().map(|ImportedJob { name, load, target, size_bytes, .. }| JsonJob {
        name,
        target,
        size_bytes,
        load,
    });
    let mut text = serde_json::to_string_pretty(&JsonLoad { format: FORMAT_VERSION, jobs: jobs.collect() })?;
    text.push('\n');
    Ok(text)
}

/// Refuses with the job and the tool named.
struct Refusal<'a> {
    job: &'a str,
    tool: &'static str,
}

impl Refusal<'_> {
    fn unless(&self, can: bool, what: impl Into<String>) -> Result<(), Inexpressible> {
        if can { Ok(()) } else { Err(self.error(what)) }
    }

    fn error(&self, what: impl Into<String>) -> Inexpressible {
        Inexpressible { job: self.job.to_owned(), tool: self.tool, what: what.into() }
    }

    /// A number of whole units.
    fn whole(&self, ns: u64, unit_ns: u64, what: &str) -> Result<u64, Inexpressible> {
        self.unless(ns.is_multiple_of(unit_ns), format!("a {what} of {ns} ns"))?;
        Ok(ns / unit_ns)
    }

    /// A name that stands on a line of its own.
    fn name(&self, forbidden: &[char]) -> Result<&str, Inexpressible> {
        let name = self.job.trim();
        let plain = !name.is_empty()
            && name.len() == self.job.len()
            && !name.contains(|c: char| c.is_control() || forbidden.contains(&c));
        self.unless(plain, "that name")?;
        Ok(name)
    }
}

/// Whether all lines agree in everything but size, share, direction and alignment to the size.
fn alike(access: &AccessSpec) -> bool {
    access.lines.first().is_none_or(|first| {
        access.lines.iter().all(|line| {
            line.random_percent.to_bits() == first.random_percent.to_bits()
                && line.delay_ns == first.delay_ns
                && line.burst == first.burst
                && line.placement == first.placement
                && line.trim_percent.to_bits() == first.trim_percent.to_bits()
        })
    })
}

/// Writes a job file in which the jobs run one after another.
///
/// # Errors
/// Something fio has no words for: shares that are no whole percentages, a hot part, mixed trims,
/// lines of a mix that differ in more than size and direction.
pub fn write_fio(jobs: &[ImportedJob]) -> Result<String, Inexpressible> {
    let mut out = String::from("[global]\nthread\ngroup_reporting\n");
    for job in jobs {
        let refusal = Refusal { job: &job.name, tool: "fio" };
        let name = refusal.name(&['[', ']', ';', '#', '$', '='])?;
        refusal.unless(!name.starts_with("global"), "that name")?;
        let mut lines = vec![format!("[{name}]"), "stonewall".into()];
        lines.extend(pass_lines(job));
        lines.extend(durability_lines(&job.load));
        lines.extend(load_lines(job, &refusal)?);
        lines.extend(access_lines(&job.load.access, job.load.traversal.every_block_once, &refusal)?);
        let _ = write!(out, "\n{}\n", lines.join("\n"));
    }
    Ok(out)
}

fn load_lines(job: &ImportedJob, refusal: &Refusal<'_>) -> Result<Vec<String>, Inexpressible> {
    let load = &job.load;
    let mut lines = Vec::new();
    let mut say = |key: &str, value: &dyn std::fmt::Display| lines.push(format!("{key}={value}"));
    match job.target.as_deref() {
        Some("null") => say("ioengine", &"null"),
        Some(target) if target.contains("://") || target.starts_with("vhost-user:") => {
            return Err(refusal.error(format!("the target {target:?}")));
        }
        Some(target) => {
            let plain =
                target.trim() == target && !target.contains(|c: char| c.is_control() || ";#$\\".contains(c));
            refusal.unless(plain && !target.is_empty(), format!("the target {target:?}"))?;
            say("filename", &target.replace(':', "\\:"));
        }
        None => {}
    }
    if job.target.as_deref() != Some("null") {
        say("ioengine", &if load.engine == EngineKind::Psync { "psync" } else { "io_uring" });
    }
    if let Some(size) = job.size_bytes {
        say("size", &size);
    }
    let microseconds = |ns, what| refusal.whole(ns, 1000, what);
    say("iodepth", &load.outstanding);
    say("numjobs", &load.workers);
    say("runtime", &format!("{}us", microseconds(load.time_ns, "measuring time")?));
    say("ramp_time", &format!("{}us", microseconds(load.ramp_ns, "ramp-up")?));
    say("direct", &u8::from(load.direct));
    say("randseed", &load.seed);
    if let Some(rate) = load.rate {
        let each = rate.per_second / f64::from(load.workers);
        let one_way = load.access.reads() != load.access.writes();
        refusal.unless(whole(each) && one_way, format!("{} operations/s of this mix", rate.per_second))?;
        say("rate_iops", &each);
        say("rate_process", &if rate.arrivals == Arrivals::Poisson { "poisson" } else { "linear" });
    }
    refusal.unless(load.traversal.more_positions == 0, "positions that take turns")?;
    if load.verify {
        say("verify", &"crc32c");
    }
    if load.content.compressible_percent > 0 {
        say("buffer_compress_percentage", &load.content.compressible_percent);
    }
    if load.content.duplicate_percent > 0 {
        say("dedupe_percentage", &load.content.duplicate_percent);
    }
    if load.uring.submission_polling {
        say("sqthread_poll", &1);
    }
    if load.uring.completion_polling {
        say("hipri", &1);
    }
    if !load.processors.is_empty() {
        let list: Vec<String> = load.processors.iter().map(ToString::to_string).collect();
        say("cpus_allowed", &list.join(","));
        say("cpus_allowed_policy", &"split");
    }
    Ok(lines)
}

/// When what is written is durable, and what it is.
fn durability_lines(load: &LoadSpec) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |key: &str, value: &dyn std::fmt::Display| lines.push(format!("{key}={value}"));
    if let Some(every) = load.flush_every {
        say(if load.flush == FlushKind::All { "fsync" } else { "fdatasync" }, &every);
    }
    if load.flush_at_end {
        say("end_fsync", &1);
    }
    match load.write_sync {
        WriteSync::None => {}
        WriteSync::Data => say("sync", &"dsync"),
        WriteSync::All => say("sync", &1),
    }
    if !load.pattern.is_empty() {
        let digits: String = load.pattern.iter().map(|byte| format!("{byte:02x}")).collect();
        say("buffer_pattern", &format!("0x{digits}"));
    }
    lines
}

/// Where the job works and how much it does.
fn pass_lines(job: &ImportedJob) -> Vec<String> {
    let load = &job.load;
    let mut lines = Vec::new();
    let mut say = |key: &str, value: u64| lines.push(format!("{key}={value}"));
    if load.start_bytes > 0 {
        say("offset", load.start_bytes);
    }
    if load.worker_step_bytes > 0 {
        say("offset_increment", load.worker_step_bytes);
    }
    match load.amount {
        None => say("time_based", 1),
        Some(Amount { passes, bytes, operations }) => {
            passes.into_iter().for_each(|passes| say("loops", passes.into()));
            bytes.into_iter().for_each(|bytes| say("io_size", bytes));
            operations.into_iter().for_each(|operations| say("number_ios", operations));
        }
    }
    lines
}

/// Where random operations go; nothing where they go everywhere alike.
fn distribution(placement: Placement, refusal: &Refusal<'_>) -> Result<Option<String>, Inexpressible> {
    match placement {
        Placement::Uniform | Placement::Strided { .. } => Ok(None),
        Placement::Backward { .. } | Placement::Part { .. } | Placement::Zones { .. } => {
            Err(refusal.error("this placement"))
        }
        Placement::Zipf { theta } => Ok(Some(format!("random_distribution=zipf:{theta}"))),
        Placement::Pareto { h } => Ok(Some(format!("random_distribution=pareto:{h}"))),
        Placement::Hot { data_percent, access_percent } => {
            refusal.unless(whole(data_percent) && whole(access_percent), "this hot part")?;
            let (rest, others) = (100.0 - data_percent, 100.0 - access_percent);
            Ok(Some(format!("random_distribution=zoned:{access_percent}/{data_percent}:{others}/{rest}")))
        }
    }
}

fn access_lines(
    access: &AccessSpec,
    once: bool,
    refusal: &Refusal<'_>,
) -> Result<Vec<String>, Inexpressible> {
    refusal.unless(alike(access), "lines of a mix that differ in more than size and direction")?;
    let Some(first) = access.lines.first() else { return Err(refusal.error("a load without operations")) };
    let trims = first.trim_percent >= 100.0;
    refusal.unless(trims || first.trim_percent <= 0.0, "trims among writes")?;
    let read: f64 = access.lines.iter().map(|line| line.share_percent * line.read_percent / 100.0).sum();
    let read = rounded(read);
    refusal.unless(whole(read), format!("{read} % reads"))?;
    let mut lines = Vec::new();
    let stride = match first.placement {
        Placement::Strided { stride_bytes } => {
            let hole = stride_bytes.checked_sub(first.size_bytes).filter(|hole| *hole > 0);
            refusal.unless(access.lines.len() == 1 && first.random_percent >= 100.0, "this stride")?;
            Some(hole.ok_or_else(|| refusal.error("a stride of less than a block"))?)
        }
        _ => None,
    };
    let random = first.random_percent > 0.0 && stride.is_none();
    let kind = match (read >= 100.0, read <= 0.0, trims) {
        (true, ..) => "read",
        (_, true, false) => "write",
        (_, true, true) => "trim",
        (false, false, false) => "rw",
        (false, false, true) => return Err(refusal.error("reads and trims in one job")),
    };
    let hole = stride.map_or_else(String::new, |hole| format!(":{hole}"));
    lines.push(format!("rw={}{kind}{hole}", if random { "rand" } else { "" }));
    if kind == "rw" {
        lines.push(format!("rwmixread={read}"));
    }
    if random {
        lines.push(format!("norandommap={}", u8::from(!once)));
        refusal.unless(whole(first.random_percent), format!("{} % random", first.random_percent))?;
        lines.push(format!("percentage_random={}", first.random_percent));
        lines.extend(distribution(first.placement, refusal)?);
    }
    if let [line] = access.lines.as_slice() {
        lines.push(format!("bs={}", line.size_bytes));
        lines.push(format!("blockalign={}", line.align_bytes));
    } else {
        let alike = access.lines.iter().all(|line| line.align_bytes == first.align_bytes);
        refusal.unless(alike, "alignments that differ in a mix")?;
        lines.push(format!("blockalign={}", first.align_bytes));
        let reads = split(access, read, |line| line.read_percent, refusal)?;
        let writes = split(access, 100.0 - read, |line| 100.0 - line.read_percent, refusal)?;
        lines.push(match (reads, writes) {
            (Some(reads), Some(writes)) => format!("bssplit={reads},{writes}"),
            (Some(one), None) | (None, Some(one)) => format!("bssplit={one}"),
            (None, None) => return Err(refusal.error("a load without operations")),
        });
    }
    if first.delay_ns > 0 {
        lines.push(format!("thinktime={}us", refusal.whole(first.delay_ns, 1000, "delay")?));
        lines.push(format!("thinktime_blocks={}", first.burst));
    } else {
        refusal.unless(first.burst == 1, "bursts without a delay")?;
    }
    Ok(lines)
}

/// The sizes of one direction with their shares of it; nothing where the direction is unused.
fn split(
    access: &AccessSpec,
    total: f64,
    part: impl Fn(&virtbench_workload::AccessLine) -> f64,
    refusal: &Refusal<'_>,
) -> Result<Option<String>, Inexpressible> {
    let mut entries = Vec::new();
    for line in &access.lines {
        let share = rounded(line.share_percent * part(line) / total.max(f64::MIN_POSITIVE));
        if total > 0.0 && share > 0.0 {
            refusal.unless(whole(share), format!("a share of {share} %"))?;
            entries.push(format!("{}/{share}", line.size_bytes));
        }
    }
    Ok((!entries.is_empty()).then(|| entries.join(":")))
}

/// Without the last digits, in which sums of shares differ.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

fn whole(value: f64) -> bool {
    value.fract() == 0.0 && value >= 0.0
}

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
