//! Two runs of a platform, which domain moved and which of its figures; and of one run, what to change first.

use serde::Serialize;
use virtbench_record::{Better, PlatformPlan, Provenance, Sample, SamplesRecord};

use super::insights::{Insight, Outcome, all_disks};
use super::score::{DomainScore, PlatformScore, score_platform, turned};
use crate::before_after::{LogRatio, differences};
use crate::interval::{Span, geometric_mean};
use crate::pairwise::{LEVEL, Margin, VERDICT_CONFIDENCE};
use crate::quantity::Direction;

/// A run of a platform.
#[derive(Debug, Clone, Copy)]
pub struct PlatformRunOf<'a> {
    /// Where its figures come from.
    pub provenance: &'a Provenance,
    /// What it measured.
    pub plan: &'a PlatformPlan,
    /// What became of each measurement.
    pub records: &'a [SamplesRecord],
}

/// A figure in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovedFigure {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// How much it was before, and after.
    pub values: [f64; 2],
    /// How many times as good it is.
    pub times: f64,
}

/// A domain, or the score, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// The domain's name, or what the score is of.
    pub name: String,
    /// How much of what it is compared with it was before, and after; none where it has no counterpart, and its own figures are compared.
    pub ratios: Option<[f64; 2]>,
    /// After as a multiple of before.
    pub times: f64,
    /// Its ends at 90 % confidence; none where a run has one repetition.
    pub interval: Option<[f64; 2]>,
    /// What follows for it by itself.
    pub verdict: Direction,
    /// Whether it is worse even when it is allowed for how many domains were looked at.
    pub regression: bool,
    /// The figures behind it that moved by more than the margin, those first that moved most.
    pub figures: Vec<MovedFigure>,
}

/// Two runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlatformsCompared {
    /// How much more or less counts as the same, as a share.
    pub margin: f64,
    /// What else differs between the runs.
    pub differences: Vec<String>,
    /// What executed the guests before and after, where that is not the same: nothing is judged then.
    pub executed_by: Option<[String; 2]>,
    /// The score; none where it is of other domains.
    pub score: Option<Moved>,
    /// Each domain that both have.
    pub domains: Vec<Moved>,
    /// Domains of one run only.
    pub unmatched: Vec<String>,
    /// Domains that both have measured, without a figure in common.
    pub nothing_in_common: Vec<String>,
}

impl PlatformsCompared {
    /// Whether a domain became worse.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.score.iter().chain(&self.domains).any(|moved| moved.regression)
    }

    /// Whether anything was judged, by more than single values.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.executed_by.is_none() && self.domains.iter().any(|moved| moved.interval.is_some())
    }

    /// What could not be judged, each in words.
    #[must_use]
    pub fn undecided(&self) -> Vec<String> {
        let mut undecided: Vec<String> =
            self.unmatched.iter().map(|name| format!("{name} is in one run only")).collect();
        undecided.extend(
            self.nothing_in_common.iter().map(|name| format!("of {name} the runs have no figure in common")),
        );
        if self.score.is_none() {
            undecided.push("the scores are of other domains".into());
        }
        let open = self.domains.iter().filter(|moved| moved.verdict == Direction::Undecided);
        undecided.extend(open.map(|moved| format!("{}: more repetitions would tell", moved.name)));
        undecided
    }
}

/// Compares two runs of a platform. Repetitions have no counterpart in the other run.
#[must_use]
pub fn compare_platforms(runs: [PlatformRunOf<'_>; 2], margin: Margin) -> PlatformsCompared {
    let found = runs.map(|run| score_platform(run.plan, run.records));
    let executes =
        runs.map(|run| run.provenance.guest.as_ref().map(|guest| guest.accelerator.name.to_uppercase()));
    let executed_by = match executes {
        [Some(before), Some(after)] if before != after => Some([before, after]),
        _ => None,
    };
    let is_in = |found: &PlatformScore, name: &str| {
        let is_measured = |domain: &DomainScore| domain.ratio.is_some() || !domain.figures.is_empty();
        found.domains.iter().any(|domain| domain.name == name && is_measured(domain))
    };
    let names: Vec<&String> = found[0].domains.iter().map(|domain| &domain.name).collect();
    let others = found[1].domains.iter().map(|domain| &domain.name).filter(|name| !names.contains(name));
    let all: Vec<&String> = names.iter().copied().chain(others).collect();
    let (both, one): (Vec<&String>, Vec<&String>) = all
        .into_iter()
        .filter(|name| found.iter().any(|found| is_in(found, name)))
        .partition(|name| found.iter().all(|found| is_in(found, name)));
    let careful = 1.0 - LEVEL / (both.len() + 1) as f64;
    let judge = |name: String, values: [Vec<f64>; 2], are_ratios: bool, figures| {
        let judged = Moved {
            ratios: are_ratios.then(|| values.each_ref().map(|values| geometric_mean(values))),
            ..moved(name, &values, margin, careful, figures)?
        };
        Some(if executed_by.is_some() { withheld(judged) } else { judged })
    };
    let domains = both.iter().filter_map(|name| {
        let pair = [0, 1].map(|run| found[run].domains.iter().find(|domain| domain.name == **name));
        let [Some(before), Some(after)] = pair else { return None };
        let are_ratios = before.ratio.is_some() && after.ratio.is_some();
        let values = match are_ratios {
            true => [before, after].map(DomainScore::repetitions),
            false => levels(runs.map(|run| run.records), [before, after]),
        };
        judge((*name).clone(), values, are_ratios, figures(before, after, margin))
    });
    let domains: Vec<Moved> = domains.collect();
    let is_compared = |name: &&&String| domains.iter().any(|moved| moved.name == ***name);
    let nothing_in_common =
        both.iter().filter(|name| !is_compared(name)).map(|name| (*name).clone()).collect();
    let of = found.each_ref().map(|found| {
        found.counted().map(|domain| (domain.name.clone(), domain.weight.to_bits())).collect::<Vec<_>>()
    });
    let score = (of[0] == of[1] && !of[0].is_empty())
        .then(|| {
            let names: Vec<&str> = of[0].iter().map(|(name, _)| name.as_str()).collect();
            let name = format!("score of {}", names.join(", "));
            judge(name, found.each_ref().map(PlatformScore::repetitions), true, Vec::new())
        })
        .flatten();
    PlatformsCompared {
        margin: margin.share(),
        differences: differences(runs[0].provenance, runs[1].provenance),
        executed_by,
        score,
        domains,
        unmatched: one.into_iter().cloned().collect(),
        nothing_in_common,
    }
}

fn moved(
    name: String,
    values: &[Vec<f64>; 2],
    margin: Margin,
    careful: f64,
    figures: Vec<MovedFigure>,
) -> Option<Moved> {
    let found = LogRatio::new(&values[0], &values[1])?;
    let judged = |span: Option<Span>| {
        let times = found.ratio();
        let span = span.unwrap_or(Span { low: times, high: times });
        Direction::of(margin.finding(span), Better::Higher)
    };
    let interval = found.interval(VERDICT_CONFIDENCE);
    let wide = found.interval(careful);
    Some(Moved {
        name,
        ratios: None,
        times: found.ratio(),
        interval: interval.map(|span| [span.low, span.high]),
        verdict: judged(interval),
        regression: wide.is_some() && judged(wide) == Direction::Worse,
        figures,
    })
}

/// Of a domain without a counterpart: in each repetition the geometric mean of the figures that both runs have, turned so that more is better.
/// Its units say nothing, but that of one run is a multiple of that of the other.
fn levels(records: [&[SamplesRecord]; 2], domains: [&DomainScore; 2]) -> [Vec<f64>; 2] {
    let is_in = |domain: &DomainScore, sample: &Sample| {
        domain.figures.iter().any(|other| other.name == sample.name && other.unit == sample.unit)
    };
    let common: Vec<&Sample> = domains[0].figures.iter().filter(|one| is_in(domains[1], one)).collect();
    let level = |samples: &[Sample]| {
        let values = common.iter().map(|wanted| {
            let found = samples.iter().find(|sample| sample.name == wanted.name)?;
            Some(turned(found.value, found.better))
        });
        let values: Option<Vec<f64>> = values.collect();
        values.filter(|all| !all.is_empty()).map(|all| geometric_mean(&all))
    };
    [0, 1].map(|run| {
        let own = records[run].iter().filter(|record| record.key.side == domains[run].name);
        own.filter_map(|record| level(&record.measured()?.samples)).collect()
    })
}

/// The same figures, of which nothing follows.
fn withheld(moved: Moved) -> Moved {
    Moved { verdict: Direction::Undecided, regression: false, ..moved }
}

/// The ratios of a domain that moved, and what each side of them did.
fn figures(before: &DomainScore, after: &DomainScore, margin: Margin) -> Vec<MovedFigure> {
    let inside = margin.span();
    let moved = |name: &str, unit: &str, better: Better, values: [f64; 2]| {
        let times = match better {
            Better::Higher => values[1] / values[0],
            Better::Lower => values[0] / values[1],
            Better::Neither => return None,
        };
        let has_moved = times.is_finite() && !inside.contains(times);
        has_moved.then(|| MovedFigure { name: name.to_owned(), unit: unit.to_owned(), values, times })
    };
    let find = |sample: &Sample| after.samples.iter().find(|other| other.name == sample.name);
    let both = before.samples.iter().filter_map(|sample| Some((sample, find(sample)?)));
    let mut all: Vec<MovedFigure> = both
        .filter_map(|(one, other)| moved(&one.name, &one.unit, one.better, [one.value, other.value]))
        .collect();
    all.sort_by(|one, other| other.times.ln().abs().total_cmp(&one.times.ln().abs()));
    all
}

/// An adapter has to do so many times as much as the usual one.
const BETTER: f64 = 1.05;

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// What to do, and what speaks for it.
    pub sentence: String,
    /// How many times as much was measured with it; nothing where it was not tried.
    pub gain: Option<f64>,
}

/// The changes, the greatest measured gain first.
#[must_use]
pub fn advice(records: &[SamplesRecord], insights: &[Insight]) -> Vec<Advice> {
    let mut all: Vec<Advice> = best_adapter(records).into_iter().collect();
    all.extend(insights.iter().filter_map(|insight| {
        let Outcome::Fires(finding) = &insight.outcome else { return None };
        Some(Advice { sentence: finding.change.clone(), gain: finding.gain })
    }));
    all.sort_by(|one, other| other.gain.unwrap_or(0.0).total_cmp(&one.gain.unwrap_or(0.0)));
    all
}

/// The adapter that did most, where that is not the first one.
fn best_adapter(records: &[SamplesRecord]) -> Option<Advice> {
    let disks = all_disks(records);
    let first = disks.first()?;
    let best = disks
        .iter()
        .max_by(|one, other| one.throughput_bytes_per_s.total_cmp(&other.throughput_bytes_per_s))?;
    let gain = best.throughput_bytes_per_s / first.throughput_bytes_per_s;
    (gain >= BETTER).then(|| Advice {
        sentence: format!("Give VMs the disk adapter {} instead of {}.", best.setup, first.setup),
        gain: Some(gain),
    })
}

#[cfg(test)]
#[path = "compared_tests.rs"]
mod tests;
