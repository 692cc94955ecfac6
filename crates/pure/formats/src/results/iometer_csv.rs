//! A CSV with the columns of Iometer's results (iometer-org/iometer, ManagerList.cpp).

use std::fmt::Write as _;

use virtbench_record::DirectionStats;

use super::{ExportError, JobResult, Moment, histogram, sides};

const COLUMNS: &str = "'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,\
Write IOps,MiBps (Binary),Read MiBps (Binary),Write MiBps (Binary),MBps (Decimal),Read MBps (Decimal),\
Write MBps (Decimal),Transactions per Second,Connections per Second,Average Response Time,\
Average Read Response Time,Average Write Response Time,Average Transaction Time,Average Connection Time,\
Maximum Response Time,Maximum Read Response Time,Maximum Write Response Time,Maximum Transaction Time,\
Maximum Connection Time,Errors,Read Errors,Write Errors,Bytes Read,Bytes Written,Read I/Os,Write I/Os,\
Connections,Transactions per Connection,Total Raw Read Response Time,Total Raw Write Response Time,\
Total Raw Transaction Time,Total Raw Connection Time,Maximum Raw Read Response Time,\
Maximum Raw Write Response Time,Maximum Raw Transaction Time,Maximum Raw Connection Time,Total Raw Run Time,\
Starting Sector,Maximum Size,Queue Depth,% CPU Utilization,% User Time,% Privileged Time,% DPC Time,\
% Interrupt Time,Processor Speed,Interrupts per Second,CPU Effectiveness,Packets/Second,Packet Errors,\
Segments Retransmitted/Second,0 to 50 uS,50 to 100 uS,100 to 200 uS,200 to 500 uS,0.5 to 1 mS,1 to 2 mS,\
2 to 5 mS,5 to 10 mS,10 to 15 mS,15 to 20 mS,20 to 30 mS,30 to 50 mS,50 to 100 mS,100 to 200 mS,\
200 to 500 mS,0.5 to 1 S,1 to 2 s,2 to 4.7 s,4.7 to 5 s,5 to 10 s, >= 10 s";

/// Upper ends of the latency columns but the last, in microseconds.
const BINS_US: [u64; 20] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000, 2_000_000, 4_700_000, 5_000_000, 10_000_000,
];

/// Writes the table, one row for each job. Times are milliseconds; what was not measured (networks,
/// packets, interrupts) stays empty.
///
/// # Errors
/// A stored histogram is damaged.
pub fn iometer_csv(version: &str, jobs: &[JobResult<'_>]) -> Result<String, ExportError> {
    let mut out = format!("'Test Type,Test Description\n0,virtbench\n'Version\n{version}\n");
    let started_ns = jobs.iter().map(|job| job.started_unix_ns).min().unwrap_or(0);
    let _ = writeln!(out, "'Time Stamp\n{}", time_stamp(started_ns));
    out.push_str("'Access specifications\n");
    for job in jobs {
        let _ = writeln!(out, "'Access specification name,default assignment\n{},0", field(job.name));
        out.push_str("'size,% of size,% reads,% random,delay,burst,align,reply\n");
        for line in &job.outcome.spec.access.lines {
            let delay_ms = line.delay_ns / 1_000_000;
            let _ = writeln!(
                out,
                "{},{},{},{},{delay_ms},{},{},0",
                line.size_bytes,
                line.share_percent,
                line.read_percent,
                line.random_percent,
                line.burst,
                line.align_bytes
            );
        }
    }
    let _ = writeln!(out, "'End access specifications\n'Results\n{COLUMNS}");
    for job in jobs {
        let _ = writeln!(out, "{}", row(job)?.join(","));
    }
    let ended_ns = jobs.iter().map(|job| job.started_unix_ns + job.outcome.elapsed_ns).max().unwrap_or(0);
    let _ = writeln!(out, "'Time Stamp\n{}", time_stamp(ended_ns));
    Ok(out)
}

/// Such as `2026-11-21 08:41:15:123`, in UTC.
fn time_stamp(unix_ns: u64) -> String {
    let moment = Moment::from_unix(unix_ns / 1_000_000_000);
    let Moment { year, month, day, hour, minute, second, .. } = moment;
    let ms = unix_ns / 1_000_000 % 1000;
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}:{ms:03}")
}

fn row(job: &JobResult<'_>) -> Result<Vec<String>, ExportError> {
    let outcome = job.outcome;
    let sides = [&outcome.total, &outcome.read, &outcome.write];
    let mut cells = vec!["ALL".into(), "All".into(), field(job.name), "1".into()];
    cells.extend([outcome.spec.workers.to_string(), "1".into()]);
    let mut each = |value: &dyn Fn(&DirectionStats) -> f64| {
        cells.extend(sides.map(|side| format!("{:.6}", value(side))))
    };
    let latency = |side: &DirectionStats, pick: &dyn Fn(&virtbench_units::LatencySummary) -> f64| {
        side.latency_ns.as_ref().map_or(0.0, |summary| pick(summary) / 1e6)
    };
    each(&|side| side.iops);
    each(&|side| side.bytes_per_second / f64::from(1 << 20));
    each(&|side| side.bytes_per_second / 1e6);
    let blank = |count: usize| std::iter::repeat_n(String::new(), count);
    cells.extend(blank(2));
    let mut each = |value: &dyn Fn(&DirectionStats) -> f64| {
        cells.extend(sides.map(|side| format!("{:.6}", value(side))))
    };
    each(&|side| latency(side, &|summary| summary.mean));
    cells.extend(blank(2));
    let mut each = |value: &dyn Fn(&DirectionStats) -> f64| {
        cells.extend(sides.map(|side| format!("{:.6}", value(side))))
    };
    #[allow(clippy::cast_precision_loss)]
    each(&|side| latency(side, &|summary| summary.max as f64));
    cells.extend(blank(2));
    // Failed operations are not known by direction.
    cells.extend([outcome.errors.to_string(), String::new(), String::new()]);
    cells.extend([outcome.read.bytes, outcome.write.bytes].map(|n| n.to_string()));
    cells.extend([outcome.read.operations, outcome.write.operations].map(|n| n.to_string()));
    cells.extend(blank(11));
    cells.extend([
        (outcome.spec.start_bytes / 512).to_string(),
        (outcome.spec.region_bytes / 512).to_string(),
        outcome.spec.outstanding.to_string(),
    ]);
    match job.host {
        // Iometer's percentages are of all processors, not of one.
        Some(host) => {
            let processors = f64::from(host.processors.max(1));
            let parts = [host.cpu_percent, host.user_percent, host.system_percent];
            cells.extend(parts.map(|percent| format!("{:.6}", percent / processors)));
            cells.extend(blank(4));
            cells.push(
                host.per_cpu_percent(outcome.total.iops * processors)
                    .map_or(String::new(), |n| format!("{n:.6}")),
            );
        }
        None => cells.extend(blank(8)),
    }
    cells.extend(blank(3));
    cells.extend(bins(job)?.map(|count| count.to_string()));
    Ok(cells)
}

/// Operations by latency, in Iometer's bins.
fn bins(job: &JobResult<'_>) -> Result<[u64; BINS_US.len() + 1], ExportError> {
    let mut counts = [0; BINS_US.len() + 1];
    for (_, stats) in sides(job) {
        for value in histogram(stats)?.iter_recorded() {
            let bin = BINS_US.partition_point(|end_us| end_us * 1000 <= value.value_iterated_to());
            if let Some(count) = counts.get_mut(bin) {
                *count += value.count_at_value();
            }
        }
    }
    Ok(counts)
}

/// A text without what would end a field or a line.
fn field(text: &str) -> String {
    text.replace([',', '\n', '\r', '"'], " ")
}
