//! The page and the sentences of a run of predictions.

#![allow(clippy::unwrap_used)]

use crate::pages::synthetic;

use synthetic::{described, predictions_html, predictions_takeaway};
use virtbench_record::{Case, CaseSet, FORMAT, HostUse, Plan, PredictionsPlan, Provenance, Trial};
use virtbench_report::trials_csv;
use virtbench_samples::host::host_use;

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
        storages: Vec::new(),
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
        storage: None,
        trial,
        capacity_name: "runs/h".into(),
        reference: 1000.0,
        predicted,
        truth: 100.0,
        intervals: vec![[predicted - 15.0, predicted + 15.0]; 6],
        in_turn: None,
        bottleneck: String::new(),
        machine_percent: None,
        reference_percent: None,
        reference_host: None,
        machine_host: None,
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
fn trials_beside_other_programs_are_said_and_quiet_ones_are_not() {
    let host = |others_percent: f64| HostUse {
        others_percent: Some(others_percent),
        ..host_use(190.0, 100.0, 90.0)
    };
    let beside = |native: f64, vm: f64| Trial {
        reference_host: Some(host(native)),
        machine_host: Some(host(vm)),
        ..trial("git", 1, 120.0)
    };
    let provenance = of_set(None);
    let quiet = [beside(1.0, 2.0), trial("xz <b>", 1, 90.0)];
    assert!(
        !predictions_takeaway(&provenance, &quiet)
            .cautions
            .iter()
            .any(|caution| caution.contains("programs"))
    );
    // The first second was quiet, and so was every native side.
    let busy = [beside(1.0, 2.0), Trial { trial: 2, ..beside(2.0, 150.0) }];
    let said = predictions_takeaway(&provenance, &busy).cautions;
    let told =
        said.iter().find(|caution| caution.contains("Other programs used 0.4 of the host's 2 processors"));
    assert!(told.is_some_and(|told| told.contains("beside 1 of 4 measurements")), "{said:?}");
    let page = predictions_html(&provenance, &busy);
    assert!(
        page.contains("Other programs used 0.4") && page.contains("<td class=\"number\">75</td>"),
        "{page}"
    );
    let table = trials_csv(&busy);
    assert!(table.lines().nth(2).is_some_and(|row| row.ends_with(",2,150")), "{table}");
}

#[test]
fn a_run_of_predictions_without_a_trial_is_a_page_that_says_so() {
    for trials in [vec![], vec![trial("git", 1, 50.0)]] {
        let page = predictions_html(&of_set(Some(CaseSet::HeldOut)), &trials);
        assert!(page.contains("Case by case: the held-out set") && page.contains("xz &lt;b&gt;"));
        assert!(page.contains("No application has been tried yet") == trials.is_empty());
    }
}
