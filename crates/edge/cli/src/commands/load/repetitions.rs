//! The same load several times.

use std::fmt;

use serde::Serialize;
use virtbench_model::{Estimate, Progress, RepeatRule, relative_half_width};
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_units::LatencySummary;
use virtbench_workload::LoadSpec;

use crate::exit::Failure;
use crate::interrupt;

/// What was measured, in order; never empty.
pub struct Repetitions {
    runs: Vec<(LoadOutcome, HostUse)>,
    rule: RepeatRule,
    end: Progress,
}

impl Repetitions {
    /// Measures `spec` as often as the rule asks for, each time with a seed of its own, or until
    /// interrupted.
    ///
    /// # Errors
    /// The load cannot be applied.
    pub fn measure(
        rule: RepeatRule,
        spec: &LoadSpec,
        mut measure: impl FnMut(&LoadSpec) -> Result<(LoadOutcome, HostUse), Failure>,
    ) -> Result<Self, Failure> {
        let mut runs = vec![measure(spec)?];
        let mut end = rule.judge(&iops(&runs), spec.seed);
        while end == Progress::More && !interrupt::requested() {
            let seed = spec.seed.wrapping_add(runs.len() as u64);
            let run = measure(&LoadSpec { seed, ..spec.clone() })?;
            // A repetition that was cut short would only blur the others.
            if !interrupt::requested() {
                runs.push(run);
            }
            end = rule.judge(&iops(&runs), spec.seed);
        }
        Ok(Self { runs, rule, end })
    }

    /// A load that was measured once.
    pub fn once(outcome: LoadOutcome, host: HostUse) -> Self {
        Self { runs: vec![(outcome, host)], rule: RepeatRule::Times(1), end: Progress::Enough }
    }

    /// Adds a note to every repetition.
    pub fn note(&mut self, note: &str) {
        self.runs.iter_mut().for_each(|(outcome, _)| outcome.notes.push(note.to_owned()));
    }

    /// The repetition of median IOPS, which stands for all: a run that really happened, where a mean
    /// of percentiles is nobody's.
    pub fn median(&self) -> (&LoadOutcome, &HostUse) {
        let (outcome, host) = &self.runs[self.median_index()];
        (outcome, host)
    }

    /// Which repetition that is.
    pub fn median_index(&self) -> usize {
        let mut order: Vec<usize> = (0..self.runs.len()).collect();
        order.sort_by(|a, b| self.runs[*a].0.total.iops.total_cmp(&self.runs[*b].0.total.iops));
        order[order.len() / 2]
    }

    /// Every outcome, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = &LoadOutcome> {
        self.runs.iter().map(|(outcome, _)| outcome)
    }

    /// The repetitions in short; `None` if there was but one.
    pub fn summary(&self) -> Option<Summary> {
        let seed = self.runs[0].0.seed;
        let estimate = self.rule.estimate(&iops(&self.runs), seed).filter(|_| self.runs.len() > 1)?;
        let wanted = match self.rule {
            RepeatRule::Until { half_width, .. } => Some(100.0 * half_width),
            RepeatRule::Times(_) => None,
        };
        Some(Summary {
            iops_interval: IopsInterval::new(&estimate, wanted, self.end == Progress::Enough),
            median_repetition: self.median_index(),
            repetitions: self.runs.iter().map(|(outcome, host)| Repetition::new(outcome, host)).collect(),
        })
    }
}

fn iops(runs: &[(LoadOutcome, HostUse)]) -> Vec<f64> {
    runs.iter().map(|(outcome, _)| outcome.total.iops).collect()
}

/// Mean IOPS over repetitions with its 95 % confidence interval.
#[derive(Debug, Serialize)]
struct IopsInterval {
    mean: f64,
    low: Option<f64>,
    high: Option<f64>,
    half_width_percent: Option<f64>,
    wanted_half_width_percent: Option<f64>,
    reached: bool,
    method: Option<&'static str>,
}

impl IopsInterval {
    fn new(estimate: &Estimate, wanted_half_width_percent: Option<f64>, reached: bool) -> Self {
        Self {
            mean: estimate.mean,
            low: estimate.span().map(|span| span.low),
            high: estimate.span().map(|span| span.high),
            half_width_percent: relative_half_width(estimate).map(|share| 100.0 * share),
            wanted_half_width_percent,
            reached,
            method: estimate.interval.map(|(_, method)| method.name()),
        }
    }
}

#[derive(Debug, Serialize)]
struct Repetition {
    seed: u64,
    iops: f64,
    bytes_per_second: f64,
    latency_ns: Option<LatencySummary>,
    errors: u64,
    host_cpu_percent: f64,
}

impl Repetition {
    fn new(outcome: &LoadOutcome, host: &HostUse) -> Self {
        Self {
            seed: outcome.seed,
            iops: outcome.total.iops,
            bytes_per_second: outcome.total.bytes_per_second,
            latency_ns: outcome.total.latency_ns,
            errors: outcome.errors,
            host_cpu_percent: host.cpu_percent,
        }
    }
}

/// What several repetitions say together.
#[derive(Debug, Serialize)]
pub struct Summary {
    iops_interval: IopsInterval,
    /// Index of the repetition whose figures stand for all.
    median_repetition: usize,
    repetitions: Vec<Repetition>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = &self.iops_interval;
        let count = self.repetitions.len();
        write!(f, "{count} repetitions: mean {:.0} IOPS", interval.mean)?;
        if let (Some(low), Some(high), Some(half)) =
            (interval.low, interval.high, interval.half_width_percent)
        {
            write!(f, ", 95 % confidence {low:.0} to {high:.0} (+-{half:.1} %)")?;
        } else {
            write!(f, ", too few for an interval")?;
        }
        writeln!(f, "; the table is of repetition {}, the median one", self.median_repetition + 1)?;
        match interval.wanted_half_width_percent {
            Some(wanted) if !interval.reached => writeln!(
                f,
                "note: +-{wanted} % was not reached in {count} repetitions: measure longer (--time) or more often (--repeat-max)"
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_record::{DirectionStats, TargetFacts};
    use virtbench_workload::{AccessLine, AccessSpec};

    fn run(spec: &LoadSpec, iops: f64) -> (LoadOutcome, HostUse) {
        let total = DirectionStats { iops, ..DirectionStats::default() };
        let outcome = LoadOutcome { total, ..LoadOutcome::empty(spec.clone(), TargetFacts::null(1)) };
        let host = HostUse {
            cpu_percent: 0.0,
            user_percent: 0.0,
            system_percent: 0.0,
            steal_percent: 0.0,
            others_percent: None,
            runnable: None,
            processors: 1,
            each_percent: Vec::new(),
            each_user_percent: Vec::new(),
        };
        (outcome, host)
    }

    fn repeat(rule: RepeatRule, values: &[f64]) -> Repetitions {
        let spec = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20);
        let mut values = values.iter().cycle();
        Repetitions::measure(rule, &spec, |spec| Ok(run(spec, *values.next().unwrap()))).unwrap()
    }

    #[test]
    fn one_repetition_needs_no_summary() {
        let one = repeat(RepeatRule::Times(1), &[5.0]);
        assert!(one.summary().is_none());
        assert!((one.median().0.total.iops - 5.0).abs() < 1e-9);
    }

    #[test]
    fn every_sample_is_kept_and_the_median_stands_for_all() {
        let five = repeat(RepeatRule::Times(5), &[10.0, 50.0, 30.0, 20.0, 40.0]);
        let summary = five.summary().unwrap();
        assert_eq!((summary.repetitions.len(), summary.median_repetition), (5, 2));
        assert_eq!(summary.repetitions.iter().map(|r| r.seed).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["iops_interval"]["mean"], 30.0);
    }

    #[test]
    fn an_interval_that_stays_wide_is_said_to_be() {
        let wide = repeat(RepeatRule::Until { half_width: 0.02, most: 6 }, &[10.0, 50.0]);
        let text = wide.summary().unwrap().to_string();
        assert!(text.starts_with("6 repetitions") && text.contains("+-2 % was not reached"), "{text}");
        let narrow = repeat(RepeatRule::Until { half_width: 0.02, most: 6 }, &[10.0]);
        let text = narrow.summary().unwrap().to_string();
        assert!(text.starts_with("3 repetitions") && !text.contains("note"), "{text}");
    }
}
