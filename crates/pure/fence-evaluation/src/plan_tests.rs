use super::*;

fn estimate(mean: f64) -> Estimate {
    Estimate { mean, ..virtbench_model::mean_interval(&[1.0, 1.0, 1.0], 1).unwrap() }
}

fn trial(deviation: f64, response_ms: f64, reached: f64) -> Trial {
    let mut trial = Trial {
        plan: plans(&[1.0])[0],
        cache_bytes: 0,
        deviation: estimate(deviation),
        response_ms: estimate(response_ms),
        p99_ms: estimate(3.0 * response_ms),
        reached: estimate(reached),
    };
    for estimate in [&mut trial.deviation, &mut trial.response_ms] {
        estimate.interval = None;
    }
    trial
}

fn targets() -> Targets {
    Targets {
        workload: Personality::Webserver,
        loads: vec![10.0, 30.0],
        deviation_percent: 10.0,
        response_ms: 50.0,
    }
}

#[test]
fn the_front_holds_what_none_beats_and_what_carries_its_load() {
    let trials = [
        trial(20.0, 30.0, 1.0),
        trial(5.0, 60.0, 1.0),
        trial(6.0, 70.0, 1.0),
        trial(1.0, 1.0, 0.5),
        trial(10.0, 40.0, 0.97),
    ];
    assert_eq!(front(&trials), [1, 4, 0]);
    assert!(trials[4].meets(&targets()));
    assert!([0, 1, 2, 3].iter().all(|place| !trials[*place].meets(&targets())));
    assert_eq!(survivors(&trials, &targets(), 4), [0, 1, 2, 4]);
}

#[test]
fn slots_follow_the_loads() {
    assert_eq!(slots_by_load(&[10.0, 30.0, 300.0])[..4], [1, 3, 4, 0]);
    let equal = plans(&[5.0, 5.0]);
    let apart = plans(&[5.0, 15.0]);
    assert!(apart.len() > equal.len());
    assert!(apart.iter().any(|plan| plan.slots() == Some(4)), "{apart:?}");
}

#[test]
fn targets_that_make_no_sense_are_refused_by_name() {
    let refused = |targets: Targets| targets.check().unwrap_err().to_string();
    assert!(refused(Targets { loads: vec![], ..targets() }).contains("`loads`"));
    assert!(refused(Targets { loads: vec![1.0; 9], ..targets() }).contains("`loads`"));
    assert!(refused(Targets { loads: vec![0.0], ..targets() }).contains("`loads`"));
    assert!(refused(Targets { deviation_percent: 0.0, ..targets() }).contains("`deviation_percent`"));
    assert!(refused(Targets { response_ms: f64::NAN, ..targets() }).contains("`response_ms`"));
}
