//! The kernel's events of a busy disk, all of them.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use virtbench_profiler::{EventKind, Tracing, parse_line};

/// Bytes of one read, and what its place and its buffer are aligned to.
const READ_BYTES: usize = 4096;
/// Reads: their events are several times what one call to `drain` hands over.
const READS: u64 = 8000;

#[test]
fn events_that_are_more_than_one_call_reads_are_all_handed_over_after_the_end() {
    assert!(rustix::process::geteuid().is_root(), "this test needs the block layer's events: run it as root");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("read");
    fs::write(&path, vec![1; READ_BYTES * 16]).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed())
        .open(&path)
        .unwrap();
    file.sync_all().unwrap();
    let mut memory = vec![0; READ_BYTES * 2];
    let aligned = memory.as_ptr().align_offset(READ_BYTES);
    let buffer = &mut memory[aligned..aligned + READ_BYTES];
    let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();

    let mut tracing = Tracing::start().unwrap();
    for read in 0..READS {
        file.read_exact_at(buffer, read % 16 * READ_BYTES as u64).unwrap();
    }
    tracing.stop();
    file.read_exact_at(buffer, 0).unwrap();

    let (mut seen, mut calls) = (0, 1);
    let mut take = |line: &str| {
        let event = parse_line(line).filter(|event| event.thread == own);
        seen += u64::from(event.is_some_and(|event| matches!(event.kind, EventKind::Queued { .. })));
    };
    while !tracing.drain(&mut take).unwrap() {
        calls += 1;
    }
    assert!(calls > 1, "one call read all: this test has too few reads");
    assert_eq!(seen, READS);
}
