//! Predictions held against what happened: how far off they were, and whether intervals hold the truth as
//! often as they say.

use virtbench_record::{FORMAT, Trial};

use super::Prediction;
use super::storage::STORAGE_RATE;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The application's capacity on the subject.
    pub capacity: f64,
    /// What the reference did in turn with it, as a multiple of what it did when the application was profiled, where that is known.
    pub in_turn: Option<f64>,
}

/// A prediction beside what happened, for a storage where there are several. It moves with the reference, unless a storage's rate limits it:
/// that is the same whatever its host does.
#[must_use]
pub fn trial(
    case: &str,
    storage: Option<&str>,
    trial: u32,
    prediction: &Prediction,
    Outcome { capacity, in_turn }: Outcome,
) -> Trial {
    let moved = in_turn.unwrap_or(1.0);
    let times = if prediction.bottleneck == STORAGE_RATE { 1.0 } else { moved };
    let interval = |confidence: &f64| {
        let span = prediction.capacity_interval_at(*confidence);
        span.map_or([prediction.capacity(); 2], |span| [span.low, span.high]).map(|bound| times * bound)
    };
    Trial {
        format: FORMAT,
        case: case.to_owned(),
        storage: storage.map(str::to_owned),
        trial,
        capacity_name: prediction.reference.name.clone(),
        reference: moved * prediction.reference.value,
        predicted: times * prediction.capacity(),
        truth: capacity,
        intervals: Trial::CONFIDENCES.iter().map(interval).collect(),
        in_turn,
        bottleneck: prediction.bottleneck.clone(),
        machine_percent: None,
        reference_percent: None,
        reference_host: None,
        machine_host: None,
    }
}

/// A case over its trials, for one storage where there are several.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseResult<'a> {
    /// Its trials, one at least.
    pub trials: Vec<&'a Trial>,
}

impl CaseResult<'_> {
    fn mean(&self, of: impl Fn(&Trial) -> f64) -> f64 {
        self.trials.iter().map(|trial| of(trial)).sum::<f64>() / self.trials.len() as f64
    }

    /// Its name, with what it was predicted for.
    #[must_use]
    pub fn name(&self) -> String {
        self.trials.first().map_or_else(String::new, |trial| trial.name())
    }

    /// Mean capacities: on the reference, predicted, and in fact.
    #[must_use]
    pub fn capacities(&self) -> [f64; 3] {
        [self.mean(|t| t.reference), self.mean(|t| t.predicted), self.mean(|t| t.truth)]
    }

    /// Mean of the errors, signs kept, in percent.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        self.mean(Trial::error_percent)
    }

    /// Mean of the errors' sizes, in percent.
    #[must_use]
    pub fn absolute_error_percent(&self) -> f64 {
        self.mean(|trial| trial.error_percent().abs())
    }
}

/// The trials by case, in the order in which cases first came.
#[must_use]
pub fn by_case(trials: &[Trial]) -> Vec<CaseResult<'_>> {
    let mut cases: Vec<CaseResult<'_>> = Vec::new();
    for trial in trials {
        let is_of = |case: &&mut CaseResult<'_>| {
            case.trials
                .first()
                .is_some_and(|first| (&first.case, &first.storage) == (&trial.case, &trial.storage))
        };
        match cases.iter_mut().find(is_of) {
            Some(case) => case.trials.push(trial),
            None => cases.push(CaseResult { trials: vec![trial] }),
        }
    }
    cases
}

/// Mean over the cases of how far single predictions were off, in percent; 0 without any.
#[must_use]
pub fn mean_absolute_error_percent(trials: &[Trial]) -> f64 {
    let cases = by_case(trials);
    cases.iter().map(CaseResult::absolute_error_percent).sum::<f64>() / cases.len().max(1) as f64
}

/// The same with the trials of each case averaged before: what is left when chance, of the truth too, has evened out.
#[must_use]
pub fn mean_error_of_averages_percent(trials: &[Trial]) -> f64 {
    let cases = by_case(trials);
    cases.iter().map(|case| case.error_percent().abs()).sum::<f64>() / cases.len().max(1) as f64
}

/// At each stated confidence the share of trials whose interval held the truth.
#[must_use]
pub fn coverage(trials: &[Trial]) -> Vec<(f64, f64)> {
    let share = |index: usize| {
        trials.iter().filter(|trial| trial.holds(index)).count() as f64 / trials.len().max(1) as f64
    };
    Trial::CONFIDENCES.iter().enumerate().map(|(index, confidence)| (*confidence, share(index))).collect()
}

/// Storages are told apart where they differ by more than this share.
pub const TOLD_APART: f64 = 0.1;

/// Of how many pairs of storages the better one was named rightly: for each trial of an application every two of the storages that it was
/// tried on, that included which it was predicted from, where what it did on them differs by more than [`TOLD_APART`], all as shares of what
/// it did on that in turn with them. How many were right, and how many there were.
#[must_use]
pub fn better_named(trials: &[Trial]) -> (usize, usize) {
    let mut of_trial: Vec<(&Trial, Vec<[f64; 2]>)> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.storage.is_some()) {
        let one = [trial.predicted, trial.truth].map(|value| value / trial.reference);
        let is_of = |(first, _): &&mut (&Trial, _)| (&first.case, first.trial) == (&trial.case, trial.trial);
        match of_trial.iter_mut().find(is_of) {
            Some((_, tried)) => tried.push(one),
            None => of_trial.push((trial, vec![[1.0; 2], one])),
        }
    }
    let (mut right, mut all) = (0, 0);
    for (_, tried) in &of_trial {
        for (index, [predicted, truth]) in tried.iter().enumerate() {
            for [other_predicted, other_truth] in &tried[index + 1..] {
                let (low, high) = (truth.min(*other_truth), truth.max(*other_truth));
                if high > low * (1.0 + TOLD_APART) {
                    all += 1;
                    right += usize::from((predicted > other_predicted) == (truth > other_truth));
                }
            }
        }
    }
    (right, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_of_two_storages_counts_where_they_differ() {
        let on = |storage: &str, predicted, truth| Trial {
            storage: Some(storage.into()),
            ..trial("db", predicted, truth)
        };
        // The reference did 100. Of six pairs 100 and 104 are as good as one another; 50 and 40 were told the wrong way.
        let trials = [on("a", 101.0, 104.0), on("b", 50.0, 40.0), on("c", 45.0, 52.0)];
        assert_eq!(better_named(&trials), (4, 5));
        // A host that was twice as fast when one of them was measured makes that no better.
        let [a, b, c] = trials.clone();
        assert_eq!(
            better_named(&[a, Trial { reference: 200.0, predicted: 100.0, truth: 80.0, ..b }, c]),
            (4, 5)
        );
        assert_eq!(better_named(&[trial("db", 1.0, 2.0)]), (0, 0));
        assert_eq!(by_case(&trials)[1].name(), "db on b");
    }

    fn trial(case: &str, predicted: f64, truth: f64) -> Trial {
        let interval = |confidence: &f64| [predicted * (1.0 - confidence), predicted * (1.0 + confidence)];
        Trial {
            format: FORMAT,
            case: case.into(),
            storage: None,
            trial: 1,
            capacity_name: "x".into(),
            reference: 100.0,
            predicted,
            truth,
            intervals: Trial::CONFIDENCES.iter().map(interval).collect(),
            in_turn: None,
            bottleneck: String::new(),
            machine_percent: None,
            reference_percent: None,
            reference_host: None,
            machine_host: None,
        }
    }

    #[test]
    fn every_case_counts_once_however_many_trials_it_has() {
        let trials = [trial("a", 110.0, 100.0), trial("a", 90.0, 100.0), trial("b", 150.0, 100.0)];
        let cases = by_case(&trials);
        assert_eq!(cases.len(), 2);
        assert!(cases[0].error_percent().abs() < 1e-9);
        assert!((cases[0].absolute_error_percent() - 10.0).abs() < 1e-9);
        assert!((mean_absolute_error_percent(&trials) - 30.0).abs() < 1e-9);
        assert!((mean_error_of_averages_percent(&trials) - 25.0).abs() < 1e-9);
    }

    #[test]
    fn coverage_counts_the_truths_inside() {
        // Off by 65 %: outside at 50 and 60, inside from 70 on.
        let trials = [trial("a", 100.0, 165.0), trial("b", 100.0, 101.0)];
        let shares: Vec<f64> = coverage(&trials).iter().map(|(_, share)| *share).collect();
        assert_eq!(shares, [0.5, 0.5, 1.0, 1.0, 1.0, 1.0]);
    }
}
