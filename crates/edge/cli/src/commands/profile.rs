//! `virtbench profile` and `virtbench costs`: what an application does here, and what pieces of work cost natively and in a VM.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use virtbench_formats::{MAX_PROFILE_BYTES, read_profile};
use virtbench_lab::host_facts;
use virtbench_model::predict::kernel_work;
use virtbench_profiler::{Application, Limits, profile};
use virtbench_record::{
    Band, Capacity, Cost, Costs, CostsOrigin, LeftOut, Profile, Reference, SizeShare, Sourced,
};
use virtbench_study::{
    CommandProfile, MAX_COSTS_BYTES, NativeSide, measure_costs, parse_costs, profile_command,
    profiler_failure,
};
use virtbench_units::format_bytes;

use crate::applications::{applications_failure, with_progress};
use crate::args::predict::{CostsArgs, ProfileArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};
use crate::{interrupt, progress};

/// Limits of `--time`, in nanoseconds: a command's and a process's.
const DEFAULT_TIMES_NS: (u64, u64) = (3_600_000_000_000, 10_000_000_000);

/// Makes or reads a profile, and shows it.
pub fn execute(args: &ProfileArgs) -> Outcome {
    let mut profile = match &args.from {
        Some(path) => read(path)?,
        None => watch(args)?,
    };
    if let Some(workers) = args.workers {
        profile = profile.with_workers(workers).map_err(|error| Failure::new(Kind::Usage, error))?;
    }
    if let Some(value) = args.capacity {
        profile.capacity = Some(Capacity { name: args.capacity_name.clone(), value });
        profile.check().map_err(|error| Failure::new(Kind::Usage, error))?;
    }
    if let Some(path) = &args.out {
        let text = virtbench_formats::json::pretty_text(&profile)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        print_json(&profile)?;
    } else {
        write_table(&mut out, &profile)?;
    }
    Ok(())
}

/// Reads a profile that a user brings.
pub fn read(path: &Path) -> Result<Profile, Failure> {
    read_bytes(path, MAX_PROFILE_BYTES).and_then(|bytes| {
        read_profile(&bytes)
            .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", path.display())))
    })
}

/// Reads a file, one byte more than it may have at most.
pub fn read_bytes(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::message(Kind::Usage, format!("cannot read {}: {error}", path.display())))?;
    Ok(bytes)
}

fn watch(args: &ProfileArgs) -> Result<Profile, Failure> {
    let (of_command, of_process) = DEFAULT_TIMES_NS;
    let time_ns = args.time.unwrap_or(if args.pid.is_some() { of_process } else { of_command });
    if time_ns < 100_000_000 {
        return Err(Failure::message(Kind::Usage, "--time: at least 100ms, to tell rates"));
    }
    let limits = Limits {
        ramp: Duration::from_nanos(args.ramp),
        time: Duration::from_nanos(time_ns),
        tracing: !args.no_trace,
        io_needed: true,
        disk: None,
    };
    if let Some(process_id) = args.pid {
        let start = || Application::find(process_id);
        let profiled = progress::timed(args.ramp + time_ns, "watching the process", || {
            profile(start, &limits, interrupt::flag()).map_err(profiler_failure)
        });
        return with_host(profiled.map_err(applications_failure)?);
    }
    // The terminal is the command's.
    let metric = args.metric.as_deref();
    let inputs = CommandProfile { command: &args.command, folder: None, metric, limits, echo };
    profile_command(&inputs, interrupt::flag()).map_err(applications_failure)
}

fn with_host(mut profile: Profile) -> Result<Profile, Failure> {
    let here = std::env::current_dir().context("cannot find the current folder")?;
    profile.host = Some(host_facts(&here));
    Ok(profile)
}

/// What a command prints goes to stderr: stdout is for the profile.
fn echo(printed: &[u8]) {
    let _ = io::stderr().write_all(printed);
}

/// Writes each figure with its source.
pub fn write_table(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    writeln!(out, "{}", profile.name)?;
    if let Some(ns) = profile.elapsed_ns {
        writeln!(out, "watched for {:.1} s, on {}", ns as f64 / 1e9, list(&profile.devices))?;
    }
    let per_second = |value: &f64| format!("{value:.1} /s");
    let milliseconds = |ns: &f64| format!("{:.3} ms", ns / 1e6);
    let percent = |value: &f64| format!("{value:.1} %");
    let count = |value: &u32| value.to_string();
    row(out, "I/O rate", &profile.io_per_second, per_second)?;
    row(out, "  reads", &profile.reads_per_second, per_second)?;
    row(out, "  writes", &profile.writes_per_second, per_second)?;
    row(out, "throughput", &profile.bytes_per_second, |bytes| format!("{:.2} MB/s", bytes / 1e6))?;
    row(out, "random", &profile.random, band)?;
    row(out, "workers", &profile.workers, count)?;
    row(out, "I/Os in flight, mean", &profile.outstanding_mean, |mean| format!("{mean:.2}"))?;
    row(out, "I/Os in flight of one worker", &profile.outstanding_peak_per_worker, count)?;
    row(out, "response time", &profile.latency_ns, milliseconds)?;
    row(out, "think time", &profile.think_ns, milliseconds)?;
    row(out, "CPU, user", &profile.cpu_user_percent, percent)?;
    row(out, "CPU, system", &profile.cpu_system_percent, percent)?;
    row(out, "CPU, kernel's threads", &profile.cpu_kernel_threads_percent, percent)?;
    row(out, "copied by system calls", &profile.copied_bytes_per_second, |bytes| {
        format!("{:.2} MB/s", bytes / 1e6)
    })?;
    if let Some(footprint) = profile.footprint.value() {
        writeln!(out, "{:<30}", "where the kernel's time goes, on the whole machine")?;
        for (kind, share) in kernel_work(footprint) {
            writeln!(out, "  {kind:<28}{:<20}{}", percent(&(100.0 * share)), profile.footprint.origin())?;
        }
    }
    row(out, "processors", &profile.processors, count)?;
    row(out, "sizes", &profile.sizes, |sizes| format!("{} of them", sizes.len()))?;
    for size in profile.sizes.value().into_iter().flatten() {
        let bar = "#".repeat(bar_length(size));
        writeln!(out, "  {:>12} {:5.1} %  {bar}", size_name(size.size_bytes), size.share_percent)?;
    }
    if let Some(Capacity { name, value }) = &profile.capacity {
        writeln!(out, "{:<30}{value}", name)?;
    }
    for note in &profile.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "no disk that could be named".into() } else { names.join(", ") }
}

fn row<T>(
    out: &mut impl Write,
    name: &str,
    figure: &Sourced<T>,
    text: impl Fn(&T) -> String,
) -> io::Result<()> {
    let value = figure.value().map_or_else(|| "-".into(), text);
    writeln!(out, "{name:<30}{value:<20}{}", figure.origin())
}

fn band(band: &Band) -> String {
    if band.is_exact() {
        format!("{:.1} %", band.low_percent)
    } else {
        format!("{:.0} to {:.0} %", band.low_percent, band.high_percent)
    }
}

/// Half a character for each percent.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 50
fn bar_length(size: &SizeShare) -> usize {
    (size.share_percent.clamp(0.0, 100.0) / 2.0).round() as usize
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // sizes are positive, and below 2^53
fn size_name(bytes: f64) -> String {
    if bytes.fract() == 0.0 { format_bytes(bytes as u64) } else { format!("{:.1} KiB", bytes / 1024.0) }
}

/// Measures and shows them.
pub fn execute_costs(args: &CostsArgs) -> Outcome {
    let options = args.vm.options(args.vcpus, args.vm.folder()?)?;
    let costs = with_progress(|progress| {
        let native = NativeSide::new(&options, progress)?;
        measure_costs(&options, &native, progress)
    })?;
    let costs = match &args.export {
        Some(platform) => {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let day = now.split('T').next().unwrap_or_default();
            costs.exported(CostsOrigin { platform: platform.clone(), measured: day.to_owned() })
        }
        None => costs,
    };
    if let Some(path) = &args.out {
        write(path, &costs)?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        print_json(&costs)?;
    } else {
        table(&mut out, &costs)?;
    }
    Ok(())
}

/// Writes them as JSON, the whole file or none.
fn write(path: &Path, costs: &Costs) -> Outcome {
    let written = || -> anyhow::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        virtbench_formats::json::write_pretty(&mut file, costs)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    Ok(written().with_context(|| format!("cannot write {}", path.display()))?)
}

/// Reads what `virtbench costs --out` has written.
pub fn read_costs(path: &Path) -> Result<Costs, Failure> {
    let bytes = read_bytes(path, MAX_COSTS_BYTES)?;
    parse_costs(&bytes).map_err(|why| Failure::message(Kind::Usage, format!("{}: {why}", path.display())))
}

fn table(out: &mut impl Write, costs: &Costs) -> io::Result<()> {
    let mut table = TextTable::new(0, &[left(14), left(8), right(14), right(14), right(9)]);
    table.row(["", "part", "native, ns", "vm, ns", "factor"]);
    for Cost { name, part, reference_ns, subject_ns } in &costs.costs {
        let part = format!("{part:?}").to_lowercase();
        let [reference, subject, factor] =
            [*reference_ns, *subject_ns, subject_ns / reference_ns].map(|value| format!("{value:.2}"));
        table.row([name.clone(), part, reference, subject, factor]);
    }
    writeln!(out, "{table}")?;
    if !costs.crowded.is_empty() {
        let mut table = TextTable::new(0, &[left(36), right(14), right(14)]);
        table.row(["slower with every processor busy", "native", "vm"]);
        for (name, [native, vm]) in costs.slowdowns() {
            table.row([name.to_owned(), format!("{native:.2}"), format!("{vm:.2}")]);
        }
        writeln!(out, "\n{table}")?;
    }
    references_table(out, &costs.references)?;
    for LeftOut { name, why } in &costs.left_out {
        writeln!(out, "not measured: {name}: {why}")?;
    }
    writeln!(out, "{}, {} vCPUs, {}", costs.accelerator, costs.vcpus, costs.adapter)
}

/// Reference applications: how often a second, and what user code and kernel code of one take longer in the VM.
fn references_table(out: &mut impl Write, references: &[Reference]) -> io::Result<()> {
    if references.is_empty() {
        return Ok(());
    }
    let widths = [left(14), right(8), right(14), right(14), right(9), right(9), right(9), right(9)];
    let mut table = TextTable::new(0, &widths);
    table.row(["reference", "workers", "native, /s", "vm, /s", "factor", "user", "kernel", "sampled"]);
    for Reference { name, workers, reference, subject } in references {
        let factor = |mode: usize| {
            let both = subject.cpu_s(mode).zip(reference.cpu_s(mode));
            both.map_or_else(
                || "-".to_owned(),
                |(subject_s, reference_s)| format!("{:.2}", subject_s / reference_s),
            )
        };
        let sampled = if reference.footprint.functions.is_empty() { "no" } else { "yes" };
        table.row([
            name.clone(),
            workers.to_string(),
            format!("{:.1}", reference.per_second),
            format!("{:.1}", subject.per_second),
            format!("{:.2}", reference.per_second / subject.per_second),
            factor(0),
            factor(1),
            sampled.to_owned(),
        ]);
    }
    writeln!(out, "\n{table}")
}
