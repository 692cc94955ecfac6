//! The numbers of a run of predictions.

use virtbench_model::predict::trials::{
    by_case, coverage, mean_absolute_error_percent, mean_error_of_averages_percent,
};
use virtbench_record::{Conclusion, Coverage, PredictedCase, PredictionsSummary, Provenance, Trial};

/// Everything that `study predictions --json` prints.
#[must_use]
pub fn summarise_predictions(
    conclusion: Conclusion,
    provenance: &Provenance,
    trials: &[Trial],
) -> PredictionsSummary {
    let cases = by_case(trials).into_iter().map(|case| {
        let [native, predicted, measured] = case.capacities();
        PredictedCase {
            case: case.name().to_owned(),
            unit: case.trials.first().map_or_else(String::new, |trial| trial.capacity_name.clone()),
            trials: case.trials.len(),
            native,
            predicted,
            measured,
            error_percent: case.error_percent(),
            absolute_error_percent: case.absolute_error_percent(),
        }
    });
    let plan = provenance.plan.predictions();
    let planned = plan.iter().flat_map(|plan| &plan.cases).map(|case| &case.name);
    let known = |value: f64| (!trials.is_empty()).then_some(value);
    PredictionsSummary {
        conclusion,
        set: plan.and_then(|plan| plan.set),
        mean_absolute_error_percent: known(mean_absolute_error_percent(trials)),
        mean_error_of_averages_percent: known(mean_error_of_averages_percent(trials)),
        coverage: coverage(trials)
            .into_iter()
            .map(|(confidence, held)| Coverage { confidence, held: known(held) })
            .collect(),
        cases: cases.collect(),
        cases_without_trials: planned
            .filter(|name| !trials.iter().any(|trial| trial.case == **name))
            .cloned()
            .collect(),
        trials: trials.to_vec(),
    }
}
