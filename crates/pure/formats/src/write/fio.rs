//! A fio job file from a load.

use std::fmt::Write as _;

use virtbench_workload::{
    AccessSpec, Amount, Arrivals, EngineKind, FlushKind, LoadSpec, Placement, WriteSync,
};

use super::{Inexpressible, Refusal, alike};
use crate::import::ImportedJob;

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
