//! Sides of an application against the first of them.

use std::collections::BTreeMap;

use virtbench_record::{ApplicationRow, Quantity};

use super::growth::{CycleMismatch, Growth};
use crate::interval::Estimate;
use crate::kind::FigureKind;
use crate::ratio::{Ratio, paired_ratio};

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
