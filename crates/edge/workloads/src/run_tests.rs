use super::*;
use crate::prepare;
use virtbench_workload::{WorkloadSpec, parse_workload};

fn spec(text: &str) -> WorkloadSpec {
    parse_workload(text).unwrap()
}

fn run(text: &str) -> WorkloadOutcome {
    prepare(&spec(text), None).unwrap().run(&Control::new(1), 0, |_| {}).unwrap()
}

#[test]
fn every_run_gives_a_sample_of_every_figure() {
    let outcome = run("memory:array=1MiB,kernel=2ms,threads=2,runs=3,ramp=5ms,interval=5ms");
    assert_eq!((outcome.runs, outcome.threads, outcome.errors), (3, 2, 0));
    assert!(!outcome.interrupted && outcome.operations > 0 && outcome.own_cpu_ns[0] > 0);
    for name in ["copy", "scale", "add", "triad"] {
        let metric = outcome.metric(name).unwrap();
        assert!(metric.samples.len() == 3 && metric.mean > 0.0 && metric.stddev.is_some(), "{metric:?}");
    }
    let sum = |of: fn(&virtbench_record::Interval) -> u64| outcome.intervals.iter().map(of).sum::<u64>();
    assert_eq!(sum(|interval| interval.operations), outcome.operations);
    assert_eq!(sum(|interval| interval.bytes), outcome.bytes);
}

#[test]
fn a_stop_keeps_what_was_measured() {
    let control = Control::new(1);
    let outcome = thread::scope(|scope| {
        let run = scope.spawn(|| {
            let spec = spec("memory:array=1MiB,kernel=1ms,threads=1,time=1h");
            prepare(&spec, None).unwrap().run(&control, 0, |_| {}).unwrap()
        });
        while control.completed() < 100 {
            thread::sleep(Duration::from_millis(1));
        }
        control.stop();
        run.join().unwrap()
    });
    assert!(outcome.interrupted && outcome.operations >= 100);
}

#[test]
fn a_limit_ends_a_workload_that_takes_too_long_and_that_is_told() {
    let outcome = run("memory:array=1MiB,kernel=20ms,threads=1,runs=1000,limit=50ms");
    assert!(outcome.interrupted && outcome.runs < 1000);
    let outcome = run("memory:array=1MiB,kernel=1ms,threads=1,time=50ms");
    assert!(!outcome.interrupted);
}
