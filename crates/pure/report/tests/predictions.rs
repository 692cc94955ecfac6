//! The page and the sentences of a run of predictions.

#![allow(clippy::unwrap_used)]

mod synthetic;

use synthetic::{described, predictions_html, predictions_takeaway};
use virtbench_record::{Case, CaseSet, FORMAT, Plan, PredictionsPlan, Provenance, Trial};

fn of_set(set: Option<CaseSet>) -> Provenance {
    let case = |name: &str| Case {
        name: name.into(),
        command: vec![name.into()],
        metric: Some("elapsed".into()),
        workers: 1,
        with: Vec::new(),
        prepare: None,
    };
    described(Plan::Predictions(PredictionsPlan {
        set,
        cases: vec![case("git"), case("xz <b>")],
        trials: 3,
        runs: 3,
        method: None,
        vcpus: 2,
        memory_bytes: 1 << 30,
        adapter: "virtio-blk".into(),
        size_bytes: 1 << 30,
        filesystem: "ext4".into(),
        accelerator: "auto".into(),
        limit_ns: 1,
    }))
}

fn trial(case: &str, trial: u32, predicted: f64) -> Trial {
    Trial {
        format: FORMAT,
        case: case.into(),
        trial,
        capacity_name: "runs/h".into(),
        reference: 1000.0,
        predicted,
        truth: 100.0,
        intervals: vec![[predicted - 15.0, predicted + 15.0]; 6],
        bottleneck: String::new(),
        machine_percent: None,
        reference_percent: None,
    }
}

#[test]
fn the_headline_is_the_mean_absolute_error_of_single_trials_of_the_set_that_is_named() {
    // Off by 20 and -10 %: 15 % in single trials, 5 % on average.
    let trials = [trial("git", 1, 120.0), trial("git", 2, 90.0)];
    let said = predictions_takeaway(&of_set(Some(CaseSet::HeldOut)), &trials);
    assert!(said.headline.contains("of the held-out set") && said.headline.contains("15 % off"), "{said:?}");
    assert!(said.details[0].contains("5 %"), "{said:?}");
    assert!(said.cautions.iter().any(|caution| caution.contains("Without any trial: xz <b>")), "{said:?}");
    assert!(said.cautions.iter().any(|caution| caution.contains("TCG")), "{said:?}");
    let tuned = predictions_takeaway(&of_set(Some(CaseSet::Tuning)), &trials);
    assert!(tuned.headline.contains("of the tuning set") && tuned.cautions[0].contains("larger errors"));
    let unnamed = predictions_takeaway(&of_set(None), &trials);
    assert!(!unnamed.headline.contains("set"), "{unnamed:?}");
}

#[test]
fn a_run_of_predictions_without_a_trial_is_a_page_that_says_so() {
    for trials in [vec![], vec![trial("git", 1, 50.0)]] {
        let page = predictions_html(&of_set(Some(CaseSet::HeldOut)), &trials);
        assert!(page.contains("Case by case: the held-out set") && page.contains("xz &lt;b&gt;"));
        assert!(page.contains("No application has been tried yet") == trials.is_empty());
    }
}
