//! Numbers that are drawn: sizes of files, of operations, widths of directories.

use rand_distr::{Distribution, Exp, Gamma, LogNormal, Normal};
use serde::{Deserialize, Serialize};
use virtbench_units::Random;

/// A row of a table: a share, and the limits between which its numbers lie evenly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableRow {
    /// How many of the numbers, in percent.
    pub percent: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Where a number comes from. Drawn numbers are rounded down and never negative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// It is always this.
    Fixed(u64),
    /// Gamma distributed (Filebench's `cvar-gamma`, where `gamma` is the shape).
    Gamma {
        /// Mean.
        mean: f64,
        /// Shape.
        shape: f64,
    },
    /// Evenly between two limits.
    Uniform {
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// Exponentially distributed.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Normally distributed.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sigma: f64,
    },
    /// Its logarithm is normally distributed.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// A table of shares.
    Table {
        /// Its rows; shares add up to 100.
        rows: Vec<TableRow>,
    },
}

/// The most rows of a table.
pub(super) const MAX_ROWS: usize = 256;
/// Larger numbers are drawn as this: the largest that both integers and floats hold exactly.
const LARGEST: f64 = 9_007_199_254_740_992.0;

impl Draw {
    /// The mean of what is drawn.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => *value as f64,
            Self::Gamma { mean, .. } | Self::Exponential { mean } | Self::Normal { mean, .. } => *mean,
            Self::Uniform { least, most } => f64::midpoint(*least, *most),
            Self::LogNormal { mu, sigma } => (mu + sigma * sigma / 2.0).exp(),
            Self::Table { rows } => {
                rows.iter().map(|row| row.percent / 100.0 * f64::midpoint(row.least, row.most)).sum()
            }
        }
    }

    /// Says why it cannot be drawn from.
    ///
    /// # Errors
    /// In words that follow the name of what is drawn.
    pub fn validate(&self) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value <= LARGEST {
                Ok(())
            } else {
                Err(format!("{name} {value} is not above 0"))
            }
        };
        let ordered = |least: f64, most: f64| {
            if (0.0..=most).contains(&least) && most <= LARGEST {
                Ok(())
            } else {
                Err(format!("the limits {least} and {most} are not in order"))
            }
        };
        match self {
            Self::Fixed(_) => Ok(()),
            Self::Gamma { mean, shape } => positive("mean", *mean).and(positive("gamma", *shape)),
            Self::Uniform { least, most } => ordered(*least, *most),
            Self::Exponential { mean } => positive("mean", *mean),
            Self::Normal { mean, sigma } => positive("mean", *mean).and(positive("sigma", *sigma)),
            Self::LogNormal { mu, sigma } if mu.abs() <= 36.0 && *sigma > 0.0 && *sigma <= 36.0 => Ok(()),
            Self::LogNormal { mu, sigma } => {
                Err(format!("mu {mu} and sigma {sigma}: both are logarithms, up to 36"))
            }
            Self::Table { rows } => {
                if rows.is_empty() || rows.len() > MAX_ROWS {
                    return Err(format!("a table has 1 to {MAX_ROWS} rows, not {}", rows.len()));
                }
                let total: f64 = rows.iter().map(|row| row.percent).sum();
                if rows.iter().any(|row| !(0.0..=100.0).contains(&row.percent))
                    || (total - 100.0).abs() > 0.01
                {
                    return Err(format!("the shares of a table add up to {total}, not to 100"));
                }
                rows.iter().try_for_each(|row| ordered(row.least, row.most))
            }
        }
    }

    /// Something that draws. What does not pass [`Draw::validate`] draws zeros.
    #[must_use]
    pub fn drawer(&self) -> Drawer {
        let made = match self {
            Self::Fixed(value) => Some(Drawer::Fixed(*value)),
            Self::Gamma { mean, shape } => Gamma::new(*shape, mean / shape).ok().map(Drawer::Gamma),
            Self::Uniform { least, most } => Some(Drawer::Uniform(*least, *most)),
            Self::Exponential { mean } => Exp::new(1.0 / mean).ok().map(Drawer::Exponential),
            Self::Normal { mean, sigma } => Normal::new(*mean, *sigma).ok().map(Drawer::Normal),
            Self::LogNormal { mu, sigma } => LogNormal::new(*mu, *sigma).ok().map(Drawer::LogNormal),
            Self::Table { rows } => Some(Drawer::Table(rows.clone())),
        };
        made.unwrap_or(Drawer::Fixed(0))
    }
}

/// Draws numbers.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Drawer {
    Fixed(u64),
    Gamma(Gamma<f64>),
    Uniform(f64, f64),
    Exponential(Exp<f64>),
    Normal(Normal<f64>),
    LogNormal(LogNormal<f64>),
    Table(Vec<TableRow>),
}

impl Drawer {
    /// The next number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn next(&self, random: &mut Random) -> u64 {
        let even = |random: &mut Random, least: f64, most: f64| least + random.unit() * (most - least);
        let value = match self {
            Self::Fixed(value) => return *value,
            Self::Gamma(gamma) => gamma.sample(random),
            Self::Uniform(least, most) => even(random, *least, most + 1.0),
            Self::Exponential(exponential) => exponential.sample(random),
            Self::Normal(normal) => normal.sample(random),
            Self::LogNormal(log_normal) => log_normal.sample(random),
            Self::Table(rows) => {
                let mut point = random.unit() * 100.0;
                let row = rows.iter().find(|row| {
                    point -= row.percent;
                    point < 0.0
                });
                row.or(rows.last()).map_or(0.0, |row| even(random, row.least, row.most))
            }
        };
        value.clamp(0.0, LARGEST) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mean_of(draw: &Draw) -> (f64, f64) {
        let (drawer, mut random) = (draw.drawer(), Random::new(3));
        let values: Vec<f64> = (0..200_000).map(|_| drawer.next(&mut random) as f64).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn gamma_has_the_mean_and_spread_of_its_shape() {
        let (mean, deviation) = mean_of(&Draw::Gamma { mean: 131_072.0, shape: 1.5 });
        assert!((mean / 131_072.0 - 1.0).abs() < 0.01, "{mean}");
        // A gamma distribution's deviation is its mean over the root of its shape.
        assert!((deviation / (131_072.0 / 1.5f64.sqrt()) - 1.0).abs() < 0.02, "{deviation}");
    }

    #[test]
    fn every_distribution_has_its_mean() {
        let rows = vec![
            TableRow { percent: 50.0, least: 1024.0, most: 2048.0 },
            TableRow { percent: 50.0, least: 8192.0, most: 8192.0 },
        ];
        for draw in [
            Draw::Fixed(7),
            Draw::Uniform { least: 100.0, most: 300.0 },
            Draw::Exponential { mean: 5000.0 },
            Draw::Normal { mean: 5000.0, sigma: 500.0 },
            Draw::LogNormal { mu: 8.0, sigma: 0.5 },
            Draw::Table { rows },
        ] {
            draw.validate().unwrap();
            let (mean, _) = mean_of(&draw);
            assert!((mean / draw.mean() - 1.0).abs() < 0.02, "{draw:?}: {mean}");
        }
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), 0.0..1e6f64, Just(f64::NAN), Just(f64::INFINITY)]
    }

    proptest! {
        #[test]
        fn whatever_passes_can_be_drawn_from(a in number(), b in number(), kind in 0..5, seed in any::<u64>()) {
            let draw = match kind {
                0 => Draw::Gamma { mean: a, shape: b },
                1 => Draw::Uniform { least: a, most: b },
                2 => Draw::Exponential { mean: a },
                3 => Draw::Normal { mean: a, sigma: b },
                _ => Draw::LogNormal { mu: a, sigma: b },
            };
            let mut random = Random::new(seed);
            // Also what does not pass must not panic.
            let value = draw.drawer().next(&mut random);
            if draw.validate().is_ok() {
                prop_assert!(value as f64 <= LARGEST);
            }
        }
    }
}
