//! What a reader takes away from predictions that were held against what happened.

use virtbench_model::busy_host;
use virtbench_model::predict::trials::{
    by_case, coverage, mean_absolute_error_percent, mean_error_of_averages_percent,
};
use virtbench_record::{CaseSet, Provenance, Trial};

use super::Takeaway;
use crate::format::count;

/// An application is predicted well if single trials are off by no more than this on average, in percent.
const WELL: f64 = 10.0;
/// Intervals that are named.
const TOLD: [f64; 3] = [0.5, 0.8, 0.95];

/// What a reader takes away from a run of predictions.
pub(crate) fn predictions_takeaway(provenance: &Provenance, trials: &[Trial]) -> Takeaway {
    let set = provenance.plan.predictions().and_then(|plan| plan.set);
    Takeaway {
        headline: headline(set, trials),
        details: details(trials),
        cautions: cautions(provenance, set, trials),
    }
}

/// Mean absolute error of single trials: what somebody has to expect who predicts once.
fn headline(set: Option<CaseSet>, trials: &[Trial]) -> String {
    let cases = by_case(trials);
    if cases.is_empty() {
        return "No application has been tried yet.".into();
    }
    let well = cases.iter().filter(|case| case.absolute_error_percent() <= WELL).count();
    let over = count(cases.len(), "application");
    let whose =
        set.map_or_else(|| format!("Over {over}"), |set| format!("Over {over} of the {} set", set.name()));
    format!(
        "{whose} predictions of single trials were {:.0} % off on average (mean absolute error of {}); {well} of \
         {} within {WELL:.0} %.",
        mean_absolute_error_percent(trials),
        count(trials.len(), "trial"),
        cases.len()
    )
}

fn details(trials: &[Trial]) -> Vec<String> {
    let averaged = (trials.len() > by_case(trials).len()).then(|| {
        let averaged = mean_error_of_averages_percent(trials);
        format!("With the trials of each averaged, so that chance evens out, {averaged:.0} %.")
    });
    let told = coverage(trials)
        .into_iter()
        .filter(|(confidence, _)| !trials.is_empty() && TOLD.contains(confidence));
    let held = told.map(|(confidence, share)| {
        format!(
            "Intervals stated at {:.0} % held the truth in {:.0} % of {}.",
            100.0 * confidence,
            100.0 * share,
            count(trials.len(), "trial")
        )
    });
    averaged.into_iter().chain(held).collect()
}

fn cautions(provenance: &Provenance, set: Option<CaseSet>, trials: &[Trial]) -> Vec<String> {
    let mut said = Vec::new();
    if set == Some(CaseSet::Tuning) {
        said.push(
            "Ideas for the model were compared on the tuning set: expect larger errors of other applications.".into(),
        );
    }
    if provenance.guest.as_ref().is_some_and(|guest| guest.accelerator.name == "tcg") {
        said.push("The VM ran under TCG, software emulation: this says nothing of virtualization.".into());
    }
    said.extend(busy_host(trials.iter().flat_map(Trial::hosts)).map(|busy| busy.words()));
    let planned = provenance.plan.predictions().into_iter().flat_map(|plan| &plan.cases);
    let missing: Vec<&str> = planned
        .map(|case| case.name.as_str())
        .filter(|name| !trials.iter().any(|trial| trial.case == *name))
        .collect();
    if !missing.is_empty() {
        said.push(format!("Without any trial: {}.", missing.join(", ")));
    }
    said.extend(provenance.notes.iter().cloned());
    said
}
