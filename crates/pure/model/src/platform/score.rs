//! The score of a platform, from the samples of its domains: which of them make a figure, and against what, this host or another run.

use std::collections::BTreeMap;

use virtbench_record::{
    Better, Conclusion, PlatformDomain, PlatformDomainNumbers, PlatformMetric, PlatformPlan,
    PlatformReference, PlatformSummary, Provenance, Sample, SamplesRecord,
};

use crate::interval::{Estimate, FigureKind};

/// One figure of a domain, over the repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricScore {
    /// What was measured, such as `throughput (vm / native, all points)`.
    pub name: String,
    /// Which direction of the figure is better.
    pub better: Better,
    /// The ratio, turned so that more is better; zero where one side did nothing.
    pub ratio: f64,
}

impl MetricScore {
    /// What was measured, without what it was compared with.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit_once(" (").map_or(&self.name, |(short, _)| short)
    }
}

/// One domain.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainScore {
    /// Its name.
    pub name: String,
    /// How much it counts.
    pub weight: f64,
    /// Its figures as ratios; none where it was not measured, or has nothing that it could be compared with.
    pub metrics: Vec<MetricScore>,
    /// The figures of its guests by themselves, each the mean over repetitions.
    pub figures: Vec<Sample>,
    /// Everything that was measured of it, each the mean over repetitions.
    pub samples: Vec<Sample>,
    /// The geometric mean of its figures, with its interval over the repetitions.
    pub ratio: Option<Estimate>,
    /// What its run comes to, in a sentence; nothing where there are several, of which each has its own.
    pub sentences: Vec<String>,
    /// Why it has no figure, or why repetitions have none.
    pub failures: Vec<String>,
    /// What this host lacks for it.
    pub unavailable: Option<String>,
    /// By repetition.
    by_repetition: BTreeMap<u32, f64>,
}

/// All domains, in the plan's order, and the score.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformScore {
    /// The domains.
    pub domains: Vec<DomainScore>,
    /// The weighted geometric mean of the domains that were measured; nothing where none was.
    pub score: Option<Estimate>,
}

impl DomainScore {
    /// Its figure in each repetition.
    #[must_use]
    pub fn repetitions(&self) -> Vec<f64> {
        self.by_repetition.values().copied().collect()
    }
}

impl PlatformScore {
    /// The score in each repetition that has every domain.
    #[must_use]
    pub fn repetitions(&self) -> Vec<f64> {
        whole(&self.counted().collect::<Vec<_>>())
    }

    /// The domains that have a part in the score.
    pub fn counted(&self) -> impl Iterator<Item = &DomainScore> {
        counted(&self.domains)
    }

    /// The figures of all domains that lose most against this host, the worst first.
    #[must_use]
    pub fn dearest(&self, most: usize) -> Vec<(&DomainScore, &MetricScore)> {
        let metrics =
            self.domains.iter().flat_map(|domain| domain.metrics.iter().map(move |metric| (domain, metric)));
        let mut all: Vec<(&DomainScore, &MetricScore)> = metrics.collect();
        all.sort_by(|one, other| one.1.ratio.total_cmp(&other.1.ratio));
        all.truncate(most);
        all
    }
}

fn counted(domains: &[DomainScore]) -> impl Iterator<Item = &DomainScore> {
    domains.iter().filter(|domain| domain.ratio.is_some() && domain.weight > 0.0)
}

/// The score of what was measured. The plan's seed determines the resampling.
#[must_use]
pub fn score_platform(plan: &PlatformPlan, records: &[SamplesRecord]) -> PlatformScore {
    let domains: Vec<DomainScore> = plan.domains.iter().map(|one| domain(plan, one, records)).collect();
    let score = score(&domains, plan.seed);
    PlatformScore { domains, score }
}

fn domain(plan: &PlatformPlan, one: &PlatformDomain, records: &[SamplesRecord]) -> DomainScore {
    let of_domain = || records.iter().filter(|record| record.key.side == one.name);
    let mut by_metric: Vec<(String, Better, Vec<f64>)> = Vec::new();
    let mut by_repetition = BTreeMap::new();
    for record in of_domain() {
        let Some(measured) = record.measured() else { continue };
        let ratios = ratios(plan, one, &measured.samples);
        let values: Vec<f64> = ratios.iter().map(|one| one.ratio).collect();
        if let Some(mean) = geometric(&values, |_| 1.0) {
            by_repetition.insert(record.key.repetition, mean);
        }
        for Turned { name, better, ratio } in ratios {
            match by_metric.iter_mut().find(|(other, ..)| *other == name) {
                Some((.., values)) => values.push(ratio),
                None => by_metric.push((name, better, vec![ratio])),
            }
        }
    }
    let metrics = by_metric.into_iter().filter_map(|(name, better, values)| {
        Some(MetricScore { name, better, ratio: geometric(&values, |_| 1.0)? })
    });
    // What was tried again with success is no failure.
    let is_measured = |repetition: u32| {
        of_domain().any(|record| record.key.repetition == repetition && record.measured().is_some())
    };
    let sentences = match of_domain().filter_map(SamplesRecord::measured).collect::<Vec<_>>().as_slice() {
        [only] => only.notes.clone(),
        _ => Vec::new(),
    };
    let failures =
        of_domain().filter(|record| !is_measured(record.key.repetition)).filter_map(SamplesRecord::failure);
    DomainScore {
        name: one.name.clone(),
        weight: plan.weight(&one.name),
        metrics: metrics.collect(),
        figures: figures(of_domain()),
        samples: means(of_domain(), |_| true),
        ratio: estimate(&by_repetition.values().copied().collect::<Vec<_>>(), plan.seed),
        sentences,
        failures: failures.map(str::to_owned).collect(),
        unavailable: of_domain().find_map(|record| record.unavailable().map(str::to_owned)),
        by_repetition,
    }
}

/// The figures of guests by themselves, each the mean over the repetitions.
pub(super) fn figures<'r>(records: impl Iterator<Item = &'r SamplesRecord>) -> Vec<Sample> {
    means(records, is_own)
}

/// The samples that are wanted, each the mean over the repetitions.
fn means<'r>(
    records: impl Iterator<Item = &'r SamplesRecord>,
    is_wanted: impl Fn(&Sample) -> bool,
) -> Vec<Sample> {
    let mut figures: Vec<(Sample, Vec<f64>)> = Vec::new();
    let measured = records.filter_map(|record| record.measured());
    for figure in measured.flat_map(|measured| &measured.samples).filter(|one| is_wanted(one)) {
        match figures.iter_mut().find(|(other, _)| other.name == figure.name) {
            Some((_, values)) => values.push(figure.value),
            None => figures.push((figure.clone(), vec![figure.value])),
        }
    }
    // What did nothing once is not passed over.
    let whole = |values: &[f64]| match values.contains(&f64::INFINITY) {
        true => Some(f64::INFINITY),
        false => geometric(values, |_| 1.0),
    };
    let mean = |(figure, values): (Sample, Vec<f64>)| Some(Sample { value: whole(&values)?, ..figure });
    figures.into_iter().filter_map(mean).collect()
}

/// The mean over domains in each repetition that has all of them.
fn whole(counted: &[&DomainScore]) -> Vec<f64> {
    let Some(first) = counted.first() else { return Vec::new() };
    let whole = first.by_repetition.keys().filter_map(|repetition| {
        let values: Option<Vec<f64>> =
            counted.iter().map(|domain| domain.by_repetition.get(repetition).copied()).collect();
        geometric(&values?, |index| counted[index].weight)
    });
    whole.collect()
}

/// The mean over domains in each repetition that has all of them, and then over repetitions: domains of one repetition were measured
/// next to each other.
fn score(domains: &[DomainScore], seed: u64) -> Option<Estimate> {
    let counted: Vec<&DomainScore> = counted(domains).collect();
    let whole = whole(&counted);
    if !whole.is_empty() {
        return estimate(&whole, seed);
    }
    // No repetition has all domains: their means are all there is, and how far they spread is not known.
    let means: Vec<f64> = counted.iter().filter_map(|domain| Some(domain.ratio?.mean)).collect();
    let mean = geometric(&means, |index| counted[index].weight)?;
    Some(Estimate { mean, samples: 1, interval: None })
}

/// The weighted mean by logarithms: zero where one is zero. Nothing of no values, and of values that are no numbers.
fn geometric(values: &[f64], weight: impl Fn(usize) -> f64) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite() || *value < 0.0) {
        return None;
    }
    let total: f64 = (0..values.len()).map(&weight).sum();
    let sum: f64 = values.iter().enumerate().map(|(index, value)| weight(index) * value.ln()).sum();
    (total > 0.0).then(|| (sum / total).exp())
}

/// Zero in one repetition is zero in all: a ratio of nothing has no logarithm, and is not passed over.
fn estimate(ratios: &[f64], seed: u64) -> Option<Estimate> {
    if ratios.contains(&0.0) {
        return Some(Estimate { mean: 0.0, samples: ratios.len(), interval: None });
    }
    FigureKind::Ratio.estimate(ratios, seed)
}

/// What the name of a ratio has between the two that it is of.
pub(super) const OF: &str = " / ";

/// How a sample names what was measured beside guests.
const NATIVE: &str = "native";

/// A figure of a domain as a multiple of what it is compared with, turned so that more is better.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turned {
    pub(super) name: String,
    pub(super) better: Better,
    pub(super) ratio: f64,
}

/// The ratios of a domain's samples: those that its runs have made themselves, or to the figures of another run where the plan has one.
pub(super) fn ratios(plan: &PlatformPlan, domain: &PlatformDomain, samples: &[Sample]) -> Vec<Turned> {
    let turned = |sample: &Sample, value: f64| Turned {
        name: sample.name.clone(),
        better: sample.better,
        ratio: turned(value, sample.better),
    };
    if let Some(reference) = &plan.reference {
        let others = reference.domains.get(&domain.name).map(Vec::as_slice).unwrap_or_default();
        let against = samples.iter().filter(|one| is_own(one)).filter_map(|one| {
            let other = others.iter().find(|other| other.name == one.name && other.unit == one.unit)?;
            Some(turned(one, quotient(other.value, one.value, one.better)))
        });
        return against.collect();
    }
    let is_counted = |sample: &&Sample| !domain.absolute && is_ratio(sample);
    samples.iter().filter(is_counted).map(|sample| turned(sample, sample.value)).collect()
}

/// Whether a sample of a domain is a ratio of two that its runs have compared.
pub(super) fn is_ratio(sample: &Sample) -> bool {
    sample.unit.is_empty() && sample.better != Better::Neither && sample.name.contains(OF)
}

/// Whether a sample is a figure of guests by itself: neither a ratio nor of what was measured beside them.
pub(super) fn is_own(sample: &Sample) -> bool {
    let of = sample.name.rsplit_once(" (").map_or("", |(_, subject)| subject);
    sample.better != Better::Neither && !is_ratio(sample) && !of.starts_with(NATIVE)
}

/// How many times the first the second is. Where the second has done nothing, it is the worst there is.
pub(super) fn quotient(first: f64, second: f64, better: Better) -> f64 {
    match better {
        Better::Lower if second.is_infinite() => f64::MAX,
        _ if first > 0.0 => second / first,
        _ => f64::NAN,
    }
}

/// The value, or one divided by it, so that more is better.
pub(super) fn turned(ratio: f64, better: Better) -> f64 {
    match better {
        Better::Higher => ratio,
        Better::Lower if ratio > 0.0 => 1.0 / ratio,
        Better::Lower | Better::Neither => f64::NAN,
    }
}

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_platform(conclusion: Conclusion, found: &PlatformScore) -> PlatformSummary {
    PlatformSummary {
        conclusion,
        score: found.score.map(Into::into),
        of_domains: found.counted().map(|domain| domain.name.clone()).collect(),
        domains: found.domains.iter().map(domain_numbers).collect(),
    }
}

fn domain_numbers(one: &DomainScore) -> PlatformDomainNumbers {
    let metrics = one.metrics.iter().map(|metric| PlatformMetric {
        name: metric.name.clone(),
        better: metric.better,
        ratio: metric.ratio,
    });
    PlatformDomainNumbers {
        name: one.name.clone(),
        weight: one.weight,
        ratio: one.ratio.map(Into::into),
        metrics: metrics.collect(),
        sentences: one.sentences.clone(),
        failures: one.failures.clone(),
        unavailable: one.unavailable.clone(),
    }
}

/// The figures of a run of a platform, for a plan that measures the same as it.
///
/// # Errors
/// It has measured other domains or in another way, or nothing, in words.
pub fn reference_of(
    run: &str,
    provenance: &Provenance,
    records: &[SamplesRecord],
    plan: &PlatformPlan,
) -> Result<PlatformReference, String> {
    let other = provenance
        .plan
        .platform()
        .ok_or_else(|| format!("it is a run of study {}, not of study platform", provenance.plan.study()))?;
    if !other.environments.is_empty() {
        return Err("it compares two environments, and says nothing of one platform".into());
    }
    let executes = provenance.guest.as_ref().map(|guest| guest.accelerator.name.clone());
    if let Some(name) =
        executes.as_ref().filter(|name| plan.accelerator != "auto" && plan.accelerator != **name)
    {
        return Err(format!(
            "its guests were executed by {}, those of this run are to be by {}: name the same accelerator for both",
            name.to_uppercase(),
            plan.accelerator.to_uppercase()
        ));
    }
    let mut domains = BTreeMap::new();
    for domain in &plan.domains {
        let Some(same) = other.domains.iter().find(|one| one.name == domain.name) else {
            let names: Vec<&str> = other.domains.iter().map(|one| one.name.as_str()).collect();
            return Err(format!(
                "it has no domain {}, it has {}: choose the domains that both have",
                domain.name,
                names.join(", ")
            ));
        };
        if let Some(what) = difference(domain, same) {
            return Err(format!("its domain {} was measured in another way: {what}", domain.name));
        }
        let found = figures(records.iter().filter(|record| record.key.side == domain.name));
        if !found.is_empty() {
            domains.insert(domain.name.clone(), found);
        }
    }
    if domains.is_empty() {
        return Err("it has measured nothing".into());
    }
    let host = &provenance.host;
    let host = format!("{}, {} processors, Linux {}", host.cpu, host.processors, host.kernel);
    Ok(PlatformReference { run: run.to_owned(), host, accelerator: executes, domains })
}

/// The first word in which two domains differ, but for where they were measured.
fn difference(domain: &PlatformDomain, other: &PlatformDomain) -> Option<String> {
    let words = |domain: &PlatformDomain| -> Vec<String> {
        domain.runs.iter().flat_map(|run| run.words.clone()).collect()
    };
    let (one, two) = (words(domain), words(other));
    match one.iter().zip(&two).find(|(one, two)| one != two) {
        Some((one, two)) => Some(format!("{two} there, {one} here")),
        None => (one.len() != two.len()).then(|| "its command lines differ".into()),
    }
}

#[cfg(test)]
mod tests {
    use virtbench_record::{NoDetail, PlatformDomain, Sample, SamplesMeasured, Status};
    use virtbench_samples::samples::record;

    use super::*;

    fn plan(weights: &[(&str, f64)]) -> PlatformPlan {
        let domain = |name: &str| PlatformDomain {
            name: name.into(),
            runs: Vec::new(),
            takes_ns: 0,
            absolute: false,
            left_out: None,
        };
        PlatformPlan {
            profile: "minute".into(),
            domains: ["storage", "memory", "network"].map(domain).into(),
            repetitions: 2,
            weights: weights.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect(),
            accelerator: "tcg".into(),
            environments: Vec::new(),
            reference: None,
            seed: 1,
        }
    }

    fn measured(domain: &str, repetition: u32, ratios: &[(&str, Better, f64)]) -> SamplesRecord {
        let samples = ratios.iter().map(|(name, better, value)| Sample {
            name: format!("{name} (vm / native)"),
            unit: String::new(),
            better: *better,
            value: *value,
        });
        let own = Sample::new("vm: rate", "1/s", Better::Higher, 5.0);
        let samples = samples.chain([own]).collect();
        let measured =
            SamplesMeasured { samples, notes: vec!["It is so.".into()], ..SamplesMeasured::default() };
        let status = Status::measured(measured);
        SamplesRecord { status, ..record(domain, repetition, 1.0) }
    }

    fn failed(domain: &str, status: Status<SamplesMeasured>) -> SamplesRecord {
        SamplesRecord { status, ..record(domain, 0, 1.0) }
    }

    #[test]
    fn the_score_is_the_geometric_mean_of_domains_whose_figures_are_turned_so_that_more_is_better() {
        // Storage: the root of 0.5 times 1 / 2, which is 0.5. Memory 0.9. The score: the root of 0.45.
        let storage = [("rate", Better::Higher, 0.5), ("time", Better::Lower, 2.0)];
        let records =
            [measured("storage", 0, &storage), measured("memory", 0, &[("copy", Better::Higher, 0.9)])];
        let found = score_platform(&plan(&[]), &records);
        let ratio = |index: usize| found.domains[index].ratio.map(|ratio| ratio.mean);
        assert!((ratio(0).unwrap() - 0.5).abs() < 1e-12 && (ratio(1).unwrap() - 0.9).abs() < 1e-12);
        assert_eq!((ratio(2), found.counted().count()), (None, 2), "the network takes no part");
        let score = found.score.unwrap();
        assert!((score.mean - 0.45f64.sqrt()).abs() < 1e-12 && score.interval.is_none(), "{score:?}");
        assert_eq!(found.domains[0].sentences, ["It is so."]);
    }

    #[test]
    fn weights_count_and_a_domain_of_no_weight_has_no_part() {
        let records = [
            measured("storage", 0, &[("rate", Better::Higher, 0.25)]),
            measured("memory", 0, &[("copy", Better::Higher, 1.0)]),
            measured("network", 0, &[("rate", Better::Higher, 0.001)]),
        ];
        // The cube root of 0.25 x 1 x 1.
        let found = score_platform(&plan(&[("memory", 2.0), ("network", 0.0)]), &records);
        assert!((found.score.unwrap().mean - 0.25f64.cbrt()).abs() < 1e-12);
        assert_eq!(found.counted().count(), 2);
    }

    #[test]
    fn a_side_that_did_nothing_makes_the_score_nothing() {
        let records = [
            measured("storage", 0, &[("rate", Better::Higher, 0.0)]),
            measured("memory", 0, &[("copy", Better::Higher, 0.9)]),
        ];
        assert_eq!(score_platform(&plan(&[]), &records).score.map(|score| score.mean), Some(0.0));
    }

    #[test]
    fn the_interval_is_over_repetitions_that_have_every_domain() {
        let mut records = Vec::new();
        for (repetition, storage) in [(0, 0.5), (1, 0.4), (2, 0.45)] {
            records.push(measured("storage", repetition, &[("rate", Better::Higher, storage)]));
            if repetition < 2 {
                records.push(measured("memory", repetition, &[("copy", Better::Higher, 0.9)]));
            }
        }
        let score = score_platform(&plan(&[]), &records).score.unwrap();
        assert!((score.mean - (0.5f64 * 0.4).sqrt().mul_add(0.9, 0.0).sqrt()).abs() < 1e-12, "{score:?}");
        assert!(score.samples == 2 && score.span().is_some_and(|span| span.contains(score.mean)));
    }

    #[test]
    fn a_domain_that_failed_or_is_not_to_be_had_says_so_and_nothing_measured_is_no_score() {
        let records = [
            failed("storage", Status::Failed { why: "the guest died".into(), detail: NoDetail::default() }),
            failed("memory", Status::Unavailable { why: "not in this build".into() }),
        ];
        let found = score_platform(&plan(&[]), &records);
        assert_eq!(found.domains[0].failures, ["the guest died"]);
        assert_eq!(found.domains[1].unavailable.as_deref(), Some("not in this build"));
        assert!(found.score.is_none() && found.dearest(3).is_empty());
    }

    #[test]
    fn history_follows_the_score_under_the_names_of_its_domains() {
        let provenance = virtbench_samples::grid::described(virtbench_record::Plan::Platform(plan(&[])));
        let mut records = vec![measured("storage", 0, &[("rate", Better::Higher, 0.25)])];
        let score = |records: &[SamplesRecord]| {
            let all =
                crate::history::measures(&provenance, &virtbench_record::Records::Samples(records.to_vec()));
            let score =
                all.into_iter().find(|one| one.subject.starts_with("score of ")).expect("there is a score");
            (score.subject, score.value)
        };
        assert_eq!(score(&records), ("score of storage under TCG".into(), 0.25));
        records.push(measured("memory", 0, &[("copy", Better::Higher, 1.0)]));
        assert_eq!(score(&records), ("score of storage, memory under TCG".into(), 0.5));
    }

    #[test]
    fn what_costs_most_is_named_first() {
        let records = [
            measured("storage", 0, &[("rate", Better::Higher, 0.5), ("time", Better::Lower, 10.0)]),
            measured("memory", 0, &[("copy", Better::Higher, 0.9)]),
        ];
        let found = score_platform(&plan(&[]), &records);
        let names: Vec<&str> = found.dearest(2).iter().map(|(_, metric)| metric.name.as_str()).collect();
        assert_eq!(names, ["time (vm / native)", "rate (vm / native)"]);
    }

    #[test]
    fn a_side_that_never_answered_is_the_worst_there_is() {
        assert_eq!(quotient(10.0, f64::INFINITY, Better::Lower), f64::MAX);
        assert_eq!(quotient(10.0, 0.0, Better::Higher), 0.0);
        assert!(quotient(0.0, 0.0, Better::Higher).is_nan());
    }

    #[test]
    fn what_is_native_and_what_is_a_ratio_is_no_figure_of_guests() {
        let own = |name: &str, unit: &str| is_own(&Sample::new(name, unit, Better::Higher, 1.0));
        assert!(own("throughput (vm, all points)", "B/s") && own("desktops (users content)", ""));
        assert!(!own("throughput (native, all points)", "B/s") && !own("requests (native)", "1/s"));
        assert!(!own("throughput (vm / native, all points)", ""));
    }
}
