//! When measuring begins, and how often it is done again.

use clap::Args;
use virtbench_model::{MAX_REPETITIONS, RepeatRule, SteadyRule, parse_steady};
use virtbench_units::parse_positive_duration_ns;

/// Steady state and repetitions of a load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Steady state and repetitions")]
pub struct RepeatArgs {
    /// Load the target until its IOPS are steady, then ramp up and measure: over a window of TIME they
    /// lie within PERCENT of their mean and their trend moves by less than half of that (SNIA's SSS
    /// PTS 2.0.2, section 2.1.24, is 20%)
    #[arg(long, value_name = "PERCENT/TIME", value_parser = parse_steady)]
    pub steady: Option<SteadyRule>,
    /// Measure all the same after this long, with a note
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_positive_duration_ns, requires = "steady")]
    pub steady_limit: u64,
    /// Measure this many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_REPETITIONS)))]
    pub repeat: Option<u32>,
    /// Measure until the 95 % confidence interval of the mean IOPS is within this share of it, either way
    #[arg(long, value_name = "PERCENT", value_parser = share, conflicts_with = "repeat")]
    pub repeat_until: Option<f64>,
    /// The most repetitions of --repeat-until
    #[arg(
        long, value_name = "N", default_value = "20", requires = "repeat_until",
        value_parser = clap::value_parser!(u32).range(3..=i64::from(MAX_REPETITIONS))
    )]
    pub repeat_max: u32,
}

impl RepeatArgs {
    /// When to stop repeating.
    pub fn rule(&self) -> RepeatRule {
        match self.repeat_until {
            Some(half_width) => RepeatRule::Until { half_width, most: self.repeat_max },
            None => RepeatRule::Times(self.repeat.unwrap_or(1)),
        }
    }
}

/// Reads a percentage above 0 and at most 100 as a share.
pub fn share(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "write a percentage above 0 and at most 100, such as 5%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_bounds() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("100"), Ok(1.0));
        for text in ["0", "101%", "-1", "nan", "%", ""] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
