//! What ran, in words: the head of a load's table.

use virtbench_record::{LoadOutcome, TargetKind};
use virtbench_units::{format_bytes, format_duration_ns};
use virtbench_workload::{AccessLine, EngineKind, LoadSpec};

/// The target with how much of it was used and how, the load, and for how long.
pub fn lines(outcome: &LoadOutcome) -> [String; 3] {
    let spec = &outcome.spec;
    [
        format!("target    {}", target(outcome)),
        format!("load      {}", load(spec)),
        format!("measured  {}", time(outcome)),
    ]
}

/// A line of a mix in short.
pub fn access_line(line: &AccessLine) -> String {
    let mut words = vec![format_bytes(line.size_bytes)];
    words.push(match (line.read_percent, line.trim_percent) {
        (100.0, _) => "read".into(),
        (0.0, 0.0) => "write".into(),
        (0.0, 100.0) => "trim".into(),
        (read, 0.0) => format!("{read} % read"),
        (read, trim) => format!("{read} % read, rest {trim} % trim"),
    });
    words.push(match line.random_percent {
        100.0 => "random".into(),
        0.0 => "sequential".into(),
        random => format!("{random} % random"),
    });
    if line.delay_ns > 0 {
        words.push(format!("{} after {}", format_duration_ns(line.delay_ns), line.burst));
    }
    words.join(", ")
}

fn target(outcome: &LoadOutcome) -> String {
    let facts = &outcome.target;
    let kind = match facts.kind {
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::Null => "the engine alone",
        TargetKind::Nbd => "NBD",
        TargetKind::VhostUser => "vhost-user",
    };
    let start_bytes = outcome.spec.start_bytes;
    let size = match (outcome.spec.region_bytes, facts.size_bytes) {
        (used, all) if start_bytes > 0 => {
            format!("{} from {} of {}", format_bytes(used), format_bytes(start_bytes), format_bytes(all))
        }
        (used, all) if used < all => format!("the first {} of {}", format_bytes(used), format_bytes(all)),
        (_, all) => format_bytes(all),
    };
    let cache = match (facts.kind.is_local(), facts.direct) {
        (false, _) => "",
        (true, true) => ", direct I/O",
        (true, false) => ", through the page cache",
    };
    format!("{} ({kind}, {size}{cache})", facts.path)
}

fn load(spec: &LoadSpec) -> String {
    let what = match (&spec.trace, spec.access.lines.as_slice()) {
        (Some(trace), _) => format!("trace {} at pace {}", trace.name, trace.pace),
        (None, [line]) => access_line(line),
        (None, lines) => format!("a mix of {} lines", lines.len()),
    };
    let engine = match spec.engine {
        EngineKind::IoUring => "io_uring",
        EngineKind::Psync => "psync",
    };
    let rate = spec.rate.map_or_else(String::new, |rate| format!(", {} a second offered", rate.per_second));
    let workers = if spec.workers == 1 { "1 worker".into() } else { format!("{} workers", spec.workers) };
    format!("{what}; {workers} x queue depth {}{rate}, {engine}", spec.outstanding)
}

fn time(outcome: &LoadOutcome) -> String {
    let ramp = match outcome.spec.ramp_ns {
        0 => "without ramp-up".into(),
        ramp_ns => format!("after {} of ramp-up", format_duration_ns(ramp_ns)),
    };
    format!("{:.3} s {ramp}, seed {}", outcome.elapsed_ns as f64 / 1e9, outcome.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_record::TargetFacts;
    use virtbench_workload::AccessSpec;

    #[test]
    fn a_reader_learns_what_ran() {
        let line = AccessLine::new(4096, 70.0, 100.0);
        let spec = LoadSpec { seed: 7, ..LoadSpec::new(AccessSpec::single(line), 1 << 20) };
        let mut outcome = LoadOutcome::empty(spec, TargetFacts::null(1 << 30));
        assert_eq!(
            lines(&outcome),
            [
                "target    null (the engine alone, the first 1 MiB of 1 GiB)",
                "load      4 KiB, 70 % read, random; 1 worker x queue depth 16, io_uring",
                "measured  5.000 s after 1s of ramp-up, seed 7",
            ]
        );
        outcome.spec.start_bytes = 32 << 20;
        assert_eq!(lines(&outcome)[0], "target    null (the engine alone, 1 MiB from 32 MiB of 1 GiB)");
        outcome.target = TargetFacts { kind: TargetKind::File, path: "t".into(), ..outcome.target };
        assert!(lines(&outcome)[0].ends_with("through the page cache)"));
        outcome.spec.access.lines.push(AccessLine::new(65536, 0.0, 0.0));
        assert!(lines(&outcome)[1].contains("a mix of 2 lines"));
        assert_eq!(access_line(&outcome.spec.access.lines[1]), "64 KiB, write, sequential");
    }
}
