//! Numbers on the command line: percentages, lists of what is raised, and when and how often something is measured.

use clap::Args;
use virtbench_model::{MAX_REPETITIONS, RepeatRule, SteadyRule, parse_steady};
use virtbench_units::parse_positive_duration_ns;

/// Reads `70` or `33.5%`.
pub fn percent(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .trim()
        .parse()
        .ok()
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| "a percentage lies between 0 and 100".to_owned())
}

/// Numbers with commas between them, ascending and each once; none where the text is `auto`.
///
/// # Errors
/// One of them is no number from 1 to `most`: what it is, in the words of `what`.
pub fn auto_or_list(text: &str, what: &str, most: u32) -> Result<Option<Vec<u32>>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let number = |word: &str| {
        let number = word.trim().parse::<u32>().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            format!("{word:?} is no number of {what} from 1 to {most}: write auto, or such as 1,4,16")
        })
    };
    let mut numbers = text.split(',').map(number).collect::<Result<Vec<u32>, String>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Some(numbers))
}

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
    fn percentages_have_bounds() {
        assert_eq!(percent("70"), Ok(70.0));
        assert_eq!(percent("33.5%"), Ok(33.5));
        for text in ["101", "-1", "NaN", "x", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_ascend_and_stand_once() {
        assert_eq!(auto_or_list("auto", "users", 9).unwrap(), None);
        assert_eq!(auto_or_list("4, 1,4", "users", 9).unwrap(), Some(vec![1, 4]));
        for wrong in ["0", "10", "1,,2", "all", ""] {
            let refused = auto_or_list(wrong, "users", 9).unwrap_err();
            assert!(refused.contains("no number of users from 1 to 9"), "{refused}");
        }
    }

    #[test]
    fn shares_have_bounds() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("100"), Ok(1.0));
        for text in ["0", "101%", "-1", "nan", "%", ""] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
