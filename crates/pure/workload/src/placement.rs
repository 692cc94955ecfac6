//! Where random seeks go: the distributions behind [`Placement`].
//!
//! A distribution draws a rank; the popular ranks of zipf and pareto are then scattered over the
//! region by a permutation, or the popular blocks would all lie at its start and be one seek apart.

use rand_distr::{Distribution, Zipf};
use serde::{Deserialize, Serialize};
use virtbench_units::{Random, parse_bytes};

/// Where random seeks go.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Every aligned offset is as likely.
    #[default]
    Uniform,
    /// The k-th most popular offset has a probability in proportion to k^-theta; popular offsets are
    /// scattered over the region.
    Zipf {
        /// The exponent, 0 < theta < 5, theta not 1.
        theta: f64,
    },
    /// Popularity follows a Pareto distribution, as fio's: h = 0.2 puts 80 % on 20 %.
    Pareto {
        /// The skew, 0 < h < 1.
        h: f64,
    },
    /// Some of the seeks go to a part at the region's start, the others to the rest.
    Hot {
        /// How much of the region is hot, in percent.
        data_percent: f64,
        /// How many of the seeks go there, in percent.
        access_percent: f64,
    },
    /// Each seek goes this far on from the one before, in bytes; beyond the end it begins again at the region's start.
    Strided {
        /// The distance, in bytes.
        stride_bytes: u64,
    },
    /// Each seek goes this far back from the one before, in bytes. The first one goes to the region's start,
    /// and what would lie before that goes this far back from the region's last position.
    Backward {
        /// The distance, in bytes.
        stride_bytes: u64,
    },
    /// Each seek goes to where the one before has ended; after so many bytes, others are left out.
    Zones {
        /// The length of a zone, in bytes.
        zone_bytes: u64,
        /// What is left out after each, in bytes.
        skip_bytes: u64,
    },
    /// Every aligned offset of one part of the region is as likely.
    Part {
        /// Where the part begins, in percent of the region.
        from_percent: f64,
        /// Where it ends.
        to_percent: f64,
    },
}

impl Placement {
    /// Checks the parameters; a stride must be a multiple of the alignment.
    pub(crate) fn validate(self, align_bytes: u64) -> Result<(), String> {
        let share = |name: &str, value: f64| {
            if value > 0.0 && value < 100.0 {
                return Ok(());
            }
            Err(format!("{name} of {value} % is not between 0 and 100, both excluded"))
        };
        match self {
            Self::Uniform => Ok(()),
            Self::Zipf { theta } if theta > 0.0 && theta <= 5.0 => Ok(()),
            Self::Zipf { theta } => Err(format!("zipf's theta {theta} is outside 0 to 5")),
            Self::Pareto { h } if h > 0.0 && h < 1.0 => Ok(()),
            Self::Pareto { h } => Err(format!("pareto's h {h} is not between 0 and 1, both excluded")),
            Self::Hot { data_percent, access_percent } => {
                share("a hot part", data_percent).and_then(|()| share("hot accesses", access_percent))
            }
            Self::Zones { zone_bytes, skip_bytes }
                if zone_bytes > 0
                    && zone_bytes.checked_add(skip_bytes).is_some()
                    && zone_bytes.is_multiple_of(align_bytes)
                    && skip_bytes.is_multiple_of(align_bytes) =>
            {
                Ok(())
            }
            Self::Zones { zone_bytes, skip_bytes } => Err(format!(
                "zones of {zone_bytes} bytes and {skip_bytes} between them are not multiples of the alignment, {align_bytes} bytes"
            )),
            Self::Part { from_percent, to_percent }
                if (0.0..to_percent).contains(&from_percent) && to_percent <= 100.0 =>
            {
                Ok(())
            }
            Self::Part { from_percent, to_percent } => {
                Err(format!("from {from_percent} % to {to_percent} % is no part of the region"))
            }
            Self::Strided { stride_bytes } | Self::Backward { stride_bytes }
                if stride_bytes > 0 && stride_bytes.is_multiple_of(align_bytes) =>
            {
                Ok(())
            }
            Self::Strided { stride_bytes } | Self::Backward { stride_bytes } => Err(format!(
                "a stride of {stride_bytes} bytes is not a positive multiple of the alignment, {align_bytes} bytes"
            )),
        }
    }
}

/// Reads `uniform`, `zipf:1.1`, `pareto:0.2`, `hot:10/90` (10 % of the region takes 90 % of the
/// seeks), `part:20/40` (from 20 to 40 % of the region), `stride:1MiB` or `backward:4k`.
///
/// # Errors
/// What cannot be read, with what could have been written. Limits are checked with the whole mix.
pub fn parse_placement(text: &str) -> Result<Placement, String> {
    let wrong = || {
        format!(
            "{text:?} is none of uniform, zipf:THETA, pareto:H, hot:DATA/ACCESSES (percent), part:FROM/TO (percent), stride:SIZE, backward:SIZE"
        )
    };
    let number = |text: &str| text.trim().trim_end_matches('%').parse::<f64>().map_err(|_| wrong());
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    match name.trim() {
        "uniform" if value.is_empty() => Ok(Placement::Uniform),
        "zipf" => Ok(Placement::Zipf { theta: number(value)? }),
        "pareto" => Ok(Placement::Pareto { h: number(value)? }),
        "hot" => {
            let (data, accesses) = value.split_once('/').ok_or_else(wrong)?;
            Ok(Placement::Hot { data_percent: number(data)?, access_percent: number(accesses)? })
        }
        "part" => {
            let (from, to) = value.split_once('/').ok_or_else(wrong)?;
            Ok(Placement::Part { from_percent: number(from)?, to_percent: number(to)? })
        }
        "stride" | "backward" => {
            let stride_bytes = parse_bytes(value).map_err(|error| error.to_string())?;
            Ok(match name.trim() {
                "stride" => Placement::Strided { stride_bytes },
                _ => Placement::Backward { stride_bytes },
            })
        }
        _ => Err(wrong()),
    }
}

/// Draws positions `0..positions`, a position being an aligned offset divided by the alignment.
#[derive(Debug, Clone)]
pub(crate) enum Chooser {
    Uniform { positions: u64 },
    Zipf { ranks: Zipf<f64>, scatter: Scatter },
    Pareto { positions: f64, power: f64, scatter: Scatter },
    Hot { hot: u64, cold: u64, hot_below: f64 },
    Strided { next: u64, first: u64, step: u64, positions: u64 },
    Backward { next: u64, step: u64, last: u64 },
    Part { first: u64, count: u64 },
    Zones { next: u64, zone: u64, skip: u64, positions: u64 },
}

impl Chooser {
    /// `start` is where a strided worker begins. `seed` fixes which offsets are popular: the
    /// same ones for every worker of a load.
    pub(crate) fn new(placement: Placement, positions: u64, align_bytes: u64, start: u64, seed: u64) -> Self {
        let scatter = || Scatter::new(positions, seed);
        match placement {
            Placement::Uniform => Self::Uniform { positions },
            Placement::Zipf { theta } => match Zipf::new(positions as f64, theta) {
                Ok(ranks) => Self::Zipf { ranks, scatter: scatter() },
                // Refused by `validate` already.
                Err(_) => Self::Uniform { positions },
            },
            // As fio: a rank below x of all ranks has the probability x^(ln(1-h)/ln h).
            Placement::Pareto { h } => Self::Pareto {
                positions: positions as f64,
                power: h.ln() / (1.0 - h).ln(),
                scatter: scatter(),
            },
            Placement::Hot { data_percent, access_percent } => {
                let hot = whole(positions as f64 * data_percent / 100.0).clamp(1, positions);
                Self::Hot { hot, cold: positions - hot, hot_below: access_percent / 100.0 }
            }
            Placement::Strided { stride_bytes } => Self::Strided {
                next: start % positions,
                first: start % positions % (stride_bytes / align_bytes).max(1),
                step: (stride_bytes / align_bytes).max(1),
                positions,
            },
            Placement::Backward { stride_bytes } => {
                Self::Backward { next: 0, step: (stride_bytes / align_bytes).max(1), last: positions - 1 }
            }
            Placement::Zones { zone_bytes, skip_bytes } => Self::Zones {
                next: 0,
                zone: zone_bytes / align_bytes,
                skip: skip_bytes / align_bytes,
                positions,
            },
            Placement::Part { from_percent, to_percent } => {
                let at = |percent: f64| whole(positions as f64 * percent / 100.0).min(positions);
                let first = at(from_percent).min(positions - 1);
                Self::Part { first, count: at(to_percent).saturating_sub(first).max(1) }
            }
        }
    }

    /// Whether every position is as likely.
    #[inline]
    pub(crate) fn is_uniform(&self) -> bool {
        matches!(self, Self::Uniform { .. })
    }

    /// How many operations a pass takes that leaves something out.
    pub(crate) fn pass_operations(&self) -> Option<u64> {
        match *self {
            Self::Strided { step, positions, .. } => Some(positions.div_ceil(step)),
            Self::Backward { step, last, .. } => Some((last + 1).div_ceil(step)),
            Self::Zones { zone, skip, positions, .. } => {
                let (whole, rest) = (positions / (zone + skip), positions % (zone + skip));
                Some(whole * zone + rest.min(zone))
            }
            _ => None,
        }
    }

    /// Has a strided worker begin at the region's start.
    pub(crate) fn begin_at_start(&mut self) {
        if let Self::Strided { next, first, .. } = self {
            (*next, *first) = (0, 0);
        }
    }

    /// The next position.
    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { positions } => random.below(*positions),
            skewed => skewed.draw_skewed(random),
        }
    }

    fn draw_skewed(&mut self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { positions } => random.below(*positions),
            Self::Zipf { ranks, scatter } => scatter.place(whole(ranks.sample(random)) - 1),
            Self::Pareto { positions, power, scatter } => {
                scatter.place(whole(*positions * random.unit().powf(*power)))
            }
            Self::Hot { hot, cold, hot_below } => {
                if *cold == 0 || random.unit() < *hot_below {
                    random.below(*hot)
                } else {
                    *hot + random.below(*cold)
                }
            }
            Self::Zones { next, zone, skip, positions } => {
                let position = *next;
                *next += 1;
                if *next % (*zone + *skip) >= *zone {
                    *next += *skip;
                }
                if *next >= *positions {
                    *next = 0;
                }
                position
            }
            Self::Part { first, count } => *first + random.below(*count),
            Self::Strided { next, first, step, positions } => {
                let position = *next;
                let beyond = position.saturating_add(*step);
                *next = if beyond < *positions { beyond } else { *first };
                position
            }
            Self::Backward { next, step, last } => {
                let position = *next;
                *next = position.checked_sub(*step).unwrap_or(last.saturating_sub(*step));
                position
            }
        }
    }
}

/// The whole part; the callers' values are never negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// A permutation of `0..count` that leaves no neighbours together.
///
/// Two rounds of multiply and shift permute the next power of two; whatever falls outside `count`
/// goes round again (cycle walking), which takes fewer than two rounds on average.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scatter {
    count: u64,
    mask: u64,
    shift: u32,
    key: u64,
}

impl Scatter {
    fn new(count: u64, seed: u64) -> Self {
        let mask = count.max(2).next_power_of_two() - 1;
        Self {
            count: count.max(1),
            mask,
            shift: mask.count_ones().div_ceil(2),
            key: Random::new(seed).next_u64(),
        }
    }

    /// Where a rank below `count` lies (one beyond it is taken for the last).
    fn place(self, rank: u64) -> u64 {
        let mut x = rank.min(self.count - 1);
        loop {
            x = (x ^ self.key) & self.mask;
            x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
            x ^= x >> self.shift;
            x = x.wrapping_mul(0xd6e8_feb8_6659_fd93) & self.mask;
            x ^= x >> self.shift;
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
