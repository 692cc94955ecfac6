//! What is asked of the kernel: polling, pinning, time limits; and what it answers.

#![allow(clippy::unwrap_used)]

use crate::common;

use common::{apply, attempt, folder, spec, target};
use virtbench_workload::{LoadSpec, UringOptions};

#[test]
fn submission_polling_works_or_says_why_not() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let uring = UringOptions { submission_polling: true, completion_polling: false };
    match attempt(&LoadSpec { uring, ..spec(50.0) }, &target) {
        Ok(outcome) => assert!(outcome.total.operations > 0 && outcome.errors == 0, "{outcome:?}"),
        Err(error) => assert!(error.to_string().contains("--sqpoll"), "{error}"),
    }
}

#[test]
fn completion_polling_works_or_says_why_not() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let uring = UringOptions { submission_polling: false, completion_polling: true };
    match attempt(&LoadSpec { uring, ..spec(50.0) }, &target) {
        Ok(outcome) => assert!(outcome.total.operations > 0 && outcome.errors == 0, "{outcome:?}"),
        Err(error) => assert!(error.to_string().contains("refuses --iopoll"), "{error}"),
    }
}

#[test]
fn workers_are_pinned_and_a_processor_that_does_not_exist_is_named() {
    let folder = folder();
    let target = target(&folder.path().join("t.img"));
    let own = rustix::thread::sched_getaffinity(None).unwrap();
    let allowed = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| own.is_set(*cpu)).unwrap();
    let load = LoadSpec { processors: vec![u32::try_from(allowed).unwrap()], workers: 2, ..spec(100.0) };
    assert!(apply(&load, &target).total.operations > 0);
    for missing in [1023, 4_000_000] {
        let load = LoadSpec { processors: vec![missing], ..spec(100.0) };
        let message = attempt(&load, &target).unwrap_err().to_string();
        assert!(message.contains(&format!("--pin {missing}")), "{message}");
    }
}
