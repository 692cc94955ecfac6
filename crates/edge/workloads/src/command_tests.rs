use std::time::Instant;

use virtbench_engine::Control;
use virtbench_record::WorkloadOutcome;
use virtbench_workload::{Workload, WorkloadSpec};

use super::*;
use crate::run::prepare;

fn run(script: &str, limit_ns: u64, output_bytes: u32) -> WorkloadOutcome {
    let folder = tempfile::tempdir().unwrap();
    let words = ["sh", "-c", script].map(str::to_owned).into();
    let command = CommandSpec { output_bytes, ..CommandSpec::new(words) };
    let spec = WorkloadSpec { runs: 1, limit_ns, ..WorkloadSpec::new(Workload::Command(command)) };
    let mut prepared = prepare(&spec, Some(&Storage::Path(folder.path().into()))).unwrap();
    prepared.run(&Control::new(1), 0, |_| ()).unwrap()
}

#[test]
fn a_command_runs_in_its_folder_and_its_words_and_end_are_kept() {
    let outcome = run("pwd; echo done 42; echo wrong >&2; echo x > here", 60_000_000_000, 1 << 16);
    let end = outcome.command.unwrap();
    assert_eq!((end.exit_code, end.timed_out, outcome.errors), (Some(0), false, 0));
    assert!(end.output.contains("done 42\nwrong\n") && end.output.starts_with("/"), "{end:?}");
    assert!(outcome.metrics.iter().any(|metric| metric.name == "elapsed" && metric.mean > 0.0));
}

#[test]
fn a_bad_end_is_an_error_and_long_output_keeps_its_end() {
    let outcome = run("seq 1 20000; exit 3", 60_000_000_000, 100);
    let end = outcome.command.unwrap();
    assert_eq!((end.exit_code, end.output.len()), (Some(3), 100));
    assert!(end.output.ends_with("20000\n") && end.output_bytes > 100_000);
    assert_eq!(outcome.error_kinds.keys().next().unwrap(), "ended with exit code 3");
}

#[test]
fn a_command_that_does_not_end_is_ended_with_all_it_started() {
    let begun = Instant::now();
    let outcome = run("sleep 600 & sleep 600", 200_000_000, 100);
    assert!(outcome.command.unwrap().timed_out && begun.elapsed() < Duration::from_secs(60));
    assert_eq!(outcome.errors, 1);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let words = vec!["/nonexistent/program".to_owned()];
    let spec = WorkloadSpec { runs: 1, ..WorkloadSpec::new(Workload::Command(CommandSpec::new(words))) };
    let mut prepared = prepare(&spec, Some(&Storage::Path("/".into()))).unwrap();
    let error = prepared.run(&Control::new(1), 0, |_| ()).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/program"), "{error}");
}

#[test]
fn runs_that_warm_up_are_run_and_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["sh", "-c", "echo x >> runs; wc -l < runs"].map(str::to_owned).into();
    let command = Workload::Command(CommandSpec::new(words));
    let spec = WorkloadSpec { warm_ups: 2, runs: 3, ..WorkloadSpec::new(command) };
    let mut prepared = prepare(&spec, Some(&Storage::Path(folder.path().into()))).unwrap();
    let outcome = prepared.run(&Control::new(1), 0, |_| ()).unwrap();
    assert_eq!(outcome.command.unwrap().output.trim(), "5");
    assert_eq!((outcome.runs, outcome.operations), (3, 3));
    let elapsed = outcome.metrics.iter().find(|metric| metric.name == "elapsed").unwrap();
    assert_eq!(elapsed.samples.len(), 3);
}
