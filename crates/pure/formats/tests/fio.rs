//! fio itself reads what is written for it, and writes what is read.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use virtbench_formats::{ImportedJob, Schedule, import, trace::read_trace, write_fio};
use virtbench_workload::{
    AccessLine, AccessSpec, Amount, Arrivals, EngineKind, LoadSpec, Placement, Rate, TraceAction,
};

fn fio(folder: &Path) -> Command {
    let mut command = Command::new("fio");
    command.current_dir(folder);
    command
}

fn succeed(mut command: Command) -> String {
    let output = command.output().expect("fio is needed: run scripts/setup.sh test");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    text
}

fn job(name: &str, line: AccessLine, change: impl FnOnce(&mut LoadSpec)) -> ImportedJob {
    let mut load = LoadSpec::new(AccessSpec::single(line), 1 << 20);
    change(&mut load);
    ImportedJob {
        name: name.into(),
        load,
        target: Some("x.img".into()),
        size_bytes: Some(1 << 20),
        group: 0,
        schedule: Schedule::default(),
    }
}

#[test]
fn fio_accepts_the_job_files_that_are_written() {
    let line = |read, random| AccessLine::new(4096, read, random);
    let placed = |placement| AccessLine { placement, ..line(100.0, 100.0) };
    let mut mixed = job("mixed sizes", line(70.0, 50.0), |_| {});
    let mut second = line(70.0, 50.0);
    (second.size_bytes, second.align_bytes, second.share_percent) = (65536, 4096, 40.0);
    mixed.load.access.lines[0].share_percent = 60.0;
    mixed.load.access.lines.push(second);
    let jobs = [
        job("amount", line(100.0, 100.0), |load| {
            (load.ramp_ns, load.time_ns) = (0, 60_000_000_000);
            load.start_bytes = 65536;
            load.traversal.every_block_once = true;
            load.amount = Some(Amount { passes: Some(2), operations: Some(9), bytes: None });
        }),
        job("plain", line(100.0, 100.0), |_| {}),
        mixed,
        job("zipf", placed(Placement::Zipf { theta: 1.2 }), |load| load.verify = true),
        job("hot", placed(Placement::Hot { data_percent: 10.0, access_percent: 90.0 }), |_| {}),
        job("stride", placed(Placement::Strided { stride_bytes: 8192 }), |_| {}),
        job("slow", AccessLine { delay_ns: 2_000_000, burst: 4, ..line(0.0, 0.0) }, |load| {
            load.engine = EngineKind::Psync;
            load.outstanding = 1;
            load.flush_every = Some(4);
            load.content.compressible_percent = 50;
            load.processors = vec![0];
        }),
        job("rated", line(0.0, 100.0), |load| {
            load.rate = Some(Rate { per_second: 500.0, arrivals: Arrivals::Poisson });
        }),
    ];
    let text = write_fio(&jobs).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.fio"), &text).unwrap();
    let mut command = fio(folder.path());
    command.args(["--parse-only", "jobs.fio"]);
    let said = succeed(command);
    assert!(!said.to_lowercase().contains("bad option"), "{said}\n{text}");
    let back = import(text.as_bytes(), None, false).unwrap();
    assert_eq!(back.jobs.len(), jobs.len());
    for (back, job) in back.jobs.iter().zip(&jobs).filter(|(_, job)| job.name != "mixed sizes") {
        let mut expected = job.load.clone();
        // fio knows no other order.
        expected.traversal.position_per_direction = back.load.traversal.position_per_direction;
        assert_eq!(back.load, expected, "{text}");
    }
}

#[test]
fn a_log_that_fio_records_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = fio(folder.path());
    command.args([
        "--name=t",
        "--filename=x.img",
        "--rw=randrw",
        "--bs=4k",
        "--size=64k",
        "--ioengine=psync",
    ]);
    command.args(["--fsync=4", "--rate_iops=200", "--write_iolog=io.log"]);
    succeed(command);
    let log = fs::read(folder.path().join("io.log")).unwrap();
    let trace = read_trace(log.as_slice()).unwrap();
    let count = |action| trace.ops.iter().filter(|op| op.action == action).count();
    assert_eq!(count(TraceAction::Read) + count(TraceAction::Write), 16);
    assert!(count(TraceAction::Flush) > 0);
    assert_eq!(trace.ops.iter().map(|op| op.end()).max(), Some(65536));
    // Two rates of 200/s for 16 operations: tens of milliseconds; were the unit misread, micro- or
    // full seconds.
    let last = trace.ops.last().unwrap().time_ns;
    assert!((5_000_000..5_000_000_000).contains(&last), "{last} ns");
}
