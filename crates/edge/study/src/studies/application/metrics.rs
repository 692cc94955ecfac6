//! Metrics out of what a client prints.

use std::collections::BTreeMap;

use regex::Regex;
use virtbench_record::ApplicationMetric;

use crate::studies::predictions::{last_number, number_pattern};

/// The metrics of a study, whose patterns have been read.
#[derive(Debug, Clone)]
pub(super) struct Metrics(Vec<(ApplicationMetric, Regex)>);

impl Metrics {
    /// # Errors
    /// A pattern is no regular expression, or has not exactly one group; in words.
    pub(super) fn parse(metrics: &[ApplicationMetric]) -> Result<Self, String> {
        let one = |metric: &ApplicationMetric| -> Result<(ApplicationMetric, Regex), String> {
            let failed = |why: String| format!("metric {}: {why}", metric.name);
            Ok((metric.clone(), number_pattern(&metric.pattern).map_err(failed)?))
        };
        metrics.iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    /// The value of each by its name.
    ///
    /// # Errors
    /// One is not in it; in words, with the end of what was printed.
    pub(super) fn read(&self, output: &str) -> Result<BTreeMap<String, f64>, String> {
        let one = |(metric, pattern): &(ApplicationMetric, Regex)| {
            let value = last_number(pattern, output).map_err(|why| format!("{}: {why}", metric.name))?;
            Ok((metric.name.clone(), value))
        };
        self.0.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use virtbench_record::Better;

    use super::*;

    fn metric(pattern: &str) -> ApplicationMetric {
        ApplicationMetric {
            name: "rate".into(),
            pattern: pattern.into(),
            unit: "1/s".into(),
            better: Better::Higher,
        }
    }

    #[test]
    fn the_last_number_counts_and_what_is_not_there_is_told_with_what_was_printed() {
        let metrics = Metrics::parse(&[metric(r"rate ([0-9.e+]+)")]).unwrap();
        assert_eq!(metrics.read("rate 1\nrate 2.5e3 x\n").unwrap()["rate"], 2500.0);
        let error = metrics.read("speed 7\nbye\n").unwrap_err();
        assert!(error.starts_with("rate: ") && error.contains("speed 7 / bye"), "{error}");
        let error = metrics.read("").unwrap_err();
        assert!(error.contains("nothing was printed"), "{error}");
        assert!(metrics.read("rate 1.2.3").unwrap_err().contains("\"1.2.3\" is no number"));
    }

    #[test]
    fn a_pattern_without_a_group_is_refused_by_the_metrics_name() {
        for (pattern, said) in [("x", "one group"), ("(", "unclosed"), ("(a)(b)", "one group")] {
            let error = Metrics::parse(&[metric(pattern)]).unwrap_err();
            assert!(error.starts_with("metric rate: ") && error.contains(said), "{error}");
        }
    }
}
