//! An application on several sides, alone and beside neighbours: how many of the reference's transactions each side does, and why.

use std::collections::BTreeMap;

use virtbench_record::{
    ApplianceSide, ApplicationMeasured, ApplicationMetricNumbers, ApplicationPlan, ApplicationRatios,
    ApplicationRecord, ApplicationRow, ApplicationSideNumbers, ApplicationStudySide, ApplicationStudySummary,
    ApplicationSummary, Conclusion, PathCost, Quantity,
};

use crate::interval::{Estimate, FigureKind};
use crate::ratio::{OverExperiments, Ratio, deviation, paired_ratio};

/// One side of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationSide {
    /// Its name.
    pub name: String,
    /// What is known of it, each with its spread over repetitions.
    pub known: BTreeMap<Quantity, Estimate>,
    /// Its cycles, where they are not CPI times path length.
    pub mismatch: Option<CycleMismatch>,
    /// In how many repetitions its transactions were counted.
    pub counted: usize,
    /// In how many of these it completed none, so that no ratio to them exists.
    pub stalled: usize,
}

impl ApplicationSide {
    fn mean(&self, quantity: Quantity) -> Option<f64> {
        self.known.get(&quantity).map(|estimate| estimate.mean)
    }
}

/// A side against the first one.
#[derive(Debug, Clone, PartialEq)]
pub struct SideRatio {
    /// Which side it is.
    pub side: usize,
    /// Each quantity that both know, as a ratio to the reference.
    pub ratios: BTreeMap<Quantity, Ratio>,
    /// Why its transactions cost what they do, where that is known.
    pub growth: Option<Growth>,
}

/// Sides of an application, the first one being the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationAnalysis {
    /// The sides, in the order of the rows.
    pub sides: Vec<ApplicationSide>,
    /// All but the first against it.
    pub ratios: Vec<SideRatio>,
}

/// Compares the sides of an application. `seed` determines the resampling.
#[must_use]
pub fn analyse_application(rows: &[ApplicationRow], seed: u64) -> ApplicationAnalysis {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.configuration.as_str()) {
            names.push(&row.configuration);
        }
    }
    let samples: Vec<Samples> = names.iter().map(|name| Samples::of_side(rows, name)).collect();
    let sides: Vec<ApplicationSide> =
        names.iter().zip(&samples).map(|(name, samples)| samples.side(name, seed)).collect();
    let ratios = (1..sides.len()).map(|side| SideRatio {
        side,
        ratios: samples[side].against(&samples[0], seed),
        growth: growth(&sides[0], &sides[side]),
    });
    ApplicationAnalysis { ratios: ratios.collect(), sides }
}

/// The repetitions of one side, by quantity.
struct Samples(BTreeMap<Quantity, BTreeMap<u32, f64>>);

impl Samples {
    fn of_side(rows: &[ApplicationRow], name: &str) -> Self {
        let mut samples: BTreeMap<Quantity, BTreeMap<u32, f64>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.configuration == name) {
            for (quantity, value) in &row.known {
                samples.entry(*quantity).or_default().insert(row.repetition, *value);
            }
        }
        Self(samples)
    }

    fn side(&self, name: &str, seed: u64) -> ApplicationSide {
        let estimate = |values: &BTreeMap<u32, f64>| {
            FigureKind::Positive.estimate(&values.values().copied().collect::<Vec<_>>(), seed)
        };
        let known = self.0.iter().filter_map(|(quantity, values)| Some((*quantity, estimate(values)?)));
        let rates = self.0.get(&Quantity::TransactionsPerSecond);
        let rates = || rates.into_iter().flat_map(BTreeMap::values);
        let mut side = ApplicationSide {
            name: name.to_owned(),
            known: known.collect(),
            mismatch: None,
            counted: rates().count(),
            stalled: rates().filter(|rate| **rate <= 0.0).count(),
        };
        if let (Some(cycles), Some(cpi), Some(instructions)) = (
            side.mean(Quantity::CyclesPerTransaction),
            side.mean(Quantity::CyclesPerInstruction),
            side.mean(Quantity::InstructionsPerTransaction),
        ) {
            side.mismatch = CycleMismatch::find(cycles, cpi, instructions);
        }
        side
    }

    fn against(&self, reference: &Self, seed: u64) -> BTreeMap<Quantity, Ratio> {
        let both = self.0.iter().filter_map(|(quantity, values)| {
            Some((*quantity, paired_ratio(reference.0.get(quantity)?, values, seed)?))
        });
        both.collect()
    }
}

fn growth(reference: &ApplicationSide, side: &ApplicationSide) -> Option<Growth> {
    let ratio = |quantity: Quantity| {
        let (below, above) = (reference.mean(quantity)?, side.mean(quantity)?);
        (below > 0.0 && above > 0.0).then_some(above / below)
    };
    Some(Growth {
        cycles: ratio(Quantity::CyclesPerTransaction)?,
        cycles_per_instruction: ratio(Quantity::CyclesPerInstruction)?,
        instructions: ratio(Quantity::InstructionsPerTransaction)?,
    })
}

/// How far CPI x path length may be from the cycles before it is said, as a share. Published figures have three digits, and
/// counters that take turns on a processor are extrapolated.
const TOLERANCE: f64 = 0.01;

/// Three figures of one side that cannot all be right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CycleMismatch {
    /// Cycles a transaction, as counted.
    pub cycles: f64,
    /// Cycles an instruction times instructions a transaction.
    pub product: f64,
}

impl CycleMismatch {
    /// What is wrong with these figures: cycles a transaction, cycles an instruction, instructions a transaction.
    pub(crate) fn find(cycles: f64, cpi: f64, instructions: f64) -> Option<Self> {
        let product = cpi * instructions;
        ((product / cycles - 1.0).abs() > TOLERANCE).then_some(Self { cycles, product })
    }

    /// How far the product is off, in percent of the cycles; below zero where it is less.
    #[must_use]
    pub fn off_percent(&self) -> f64 {
        100.0 * (self.product / self.cycles - 1.0)
    }
}

/// How many times the reference's cycles a transaction takes, and the two factors of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Cycles a transaction, as a ratio to the reference.
    pub cycles: f64,
    /// Cycles an instruction, likewise.
    pub cycles_per_instruction: f64,
    /// Instructions a transaction, likewise.
    pub instructions: f64,
}

impl Growth {
    /// The part of the growth that is slower instructions, in percent; the rest is more of them. Parts of a product are
    /// those of its logarithm. `None` where the cycles are the same.
    #[must_use]
    pub fn slower_percent(&self) -> Option<f64> {
        let all = self.cycles_per_instruction.ln() + self.instructions.ln();
        (all.abs() > f64::EPSILON).then(|| 100.0 * self.cycles_per_instruction.ln() / all)
    }
}

/// The numbers of a comparison that comes to this conclusion.
#[must_use]
pub fn summarise_application(conclusion: Conclusion, analysis: &ApplicationAnalysis) -> ApplicationSummary {
    let (sides, ratios) = application_numbers(analysis);
    ApplicationSummary { conclusion, sides, ratios }
}

/// The sides, and all but the first against it.
pub(crate) fn application_numbers(
    analysis: &ApplicationAnalysis,
) -> (Vec<ApplicationSideNumbers>, Vec<ApplicationRatios>) {
    let sides = analysis.sides.iter().map(|side| ApplicationSideNumbers {
        configuration: side.name.clone(),
        known: side.known.iter().map(|(quantity, known)| (*quantity, (*known).into())).collect(),
        mismatch_percent: side.mismatch.map(|mismatch| mismatch.off_percent()),
    });
    let ratios = analysis.ratios.iter().map(|against| ApplicationRatios {
        configuration: analysis.sides[against.side].name.clone(),
        reference: analysis.sides[0].name.clone(),
        ratios: against.ratios.iter().map(|(quantity, ratio)| (*quantity, (*ratio).into())).collect(),
        slower_percent: against.growth.and_then(|growth| growth.slower_percent()),
    });
    (sides.collect(), ratios.collect())
}

/// One metric of one side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricFound {
    /// Alone.
    pub alone: Option<Estimate>,
    /// Against the native side of as many processors, repetition by repetition; nothing natively.
    pub against_native: Option<Ratio>,
    /// Beside the neighbours.
    pub beside: Option<Estimate>,
    /// That against its value alone, repetition by repetition.
    pub against_alone: Option<Ratio>,
    /// How far it is from alone, in percent.
    pub deviation: Option<OverExperiments>,
}

/// One side.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationSideFound {
    /// The side.
    pub side: ApplianceSide,
    /// Its metrics, in the plan's order.
    pub metrics: Vec<MetricFound>,
    /// What the path to it costs, as it was measured last.
    pub path: Option<PathCost>,
    /// What the path from it to each further tier costs, by the tier's name, as it was measured last.
    pub tier_paths: BTreeMap<String, PathCost>,
    /// Use of the host's processors alone, in percent of one.
    pub host_cpu_percent: Option<Estimate>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
}

/// All sides, in the plan's order.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationStudyAnalysis {
    /// The sides.
    pub sides: Vec<ApplicationSideFound>,
}

/// Values of one metric by repetition.
type Values = BTreeMap<u32, f64>;

/// What the records of a study come to. The plan's seed determines the resampling.
#[must_use]
pub fn analyse_application_study(
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
) -> ApplicationStudyAnalysis {
    let side = |side: &ApplianceSide| {
        let of_side = || records.iter().filter(|record| record.key.side == side.name);
        let alone = of_side().filter(|record| record.key.neighbours == 0);
        let uses: Vec<f64> = alone.filter_map(|record| Some(record.measured()?.host.cpu_percent)).collect();
        let last = of_side().rev().find_map(ApplicationRecord::measured);
        ApplicationSideFound {
            side: side.clone(),
            metrics: plan.metrics.iter().map(|metric| found(plan, records, side, &metric.name)).collect(),
            path: last.and_then(|measured| measured.appliance.path.clone()),
            tier_paths: last
                .iter()
                .flat_map(|measured| &measured.tiers)
                .map(|tier| (tier.name.clone(), tier.path.clone()))
                .collect(),
            host_cpu_percent: FigureKind::Positive.estimate(&uses, plan.seed),
            failures: of_side().filter_map(|record| record.failure().map(str::to_owned)).collect(),
        }
    };
    ApplicationStudyAnalysis { sides: plan.sides.iter().map(side).collect() }
}

fn found(
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
    side: &ApplianceSide,
    metric: &str,
) -> MetricFound {
    let values = |side: &ApplianceSide, neighbours: u32| -> Values {
        let of = records
            .iter()
            .filter(|record| record.key.side == side.name && record.key.neighbours == neighbours);
        of.filter_map(|record| Some((record.key.repetition, value(record.measured()?, metric)?))).collect()
    };
    let estimate = |values: &Values| {
        FigureKind::Positive.estimate(&values.values().copied().collect::<Vec<_>>(), plan.seed)
    };
    let alone = values(side, 0);
    let native = plan.sides.iter().find(|other| side.vm && !other.vm && other.vcpus == side.vcpus);
    let mut found = MetricFound {
        alone: estimate(&alone),
        against_native: native.and_then(|native| paired_ratio(&values(native, 0), &alone, plan.seed)),
        ..MetricFound::default()
    };
    if plan.neighbours > 0 {
        let beside = values(side, plan.neighbours);
        let pairs = beside.iter().filter_map(|(repetition, beside)| Some((*alone.get(repetition)?, *beside)));
        found.deviation = deviation(pairs, plan.seed);
        found.against_alone = paired_ratio(&alone, &beside, plan.seed);
        found.beside = estimate(&beside);
    }
    found
}

fn value(measured: &ApplicationMeasured, metric: &str) -> Option<f64> {
    measured.values.get(metric).copied()
}

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_application_study(
    conclusion: Conclusion,
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
) -> ApplicationStudySummary {
    let sides = analysis.sides.iter().map(|one| side(plan, one));
    ApplicationStudySummary {
        conclusion,
        metrics: plan.metrics.clone(),
        neighbours: plan.neighbours,
        sides: sides.collect(),
    }
}

fn side(plan: &ApplicationPlan, one: &ApplicationSideFound) -> ApplicationStudySide {
    let named = plan.metrics.iter().map(|metric| metric.name.clone()).zip(one.metrics.iter().map(numbers));
    ApplicationStudySide {
        side: one.side.clone(),
        metrics: named.collect(),
        path: one.path.clone(),
        tier_paths: one.tier_paths.clone(),
        host_cpu_percent: one.host_cpu_percent.map(Into::into),
        failures: one.failures.clone(),
    }
}

fn numbers(found: &MetricFound) -> ApplicationMetricNumbers {
    ApplicationMetricNumbers {
        alone: found.alone.map(Into::into),
        ratio: found.against_native.map(Into::into),
        beside: found.beside.map(Into::into),
        beside_ratio: found.against_alone.map(Into::into),
        deviation_percent: found.deviation.map(|deviation| deviation.estimate.into()),
    }
}

#[cfg(test)]
#[path = "application_tests.rs"]
mod application_tests;

#[cfg(test)]
#[path = "application_analysis_tests.rs"]
mod tests;
