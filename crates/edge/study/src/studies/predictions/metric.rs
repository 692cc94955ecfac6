//! What an application's throughput is read from, and which of several runs counts.

use regex::Regex;
use virtbench_record::{Capacity, WorkloadOutcome};

/// A metric, as `--metric` names it.
#[derive(Debug, Clone)]
pub enum Metric {
    /// The time it takes: runs an hour.
    Elapsed,
    /// Its I/O rate.
    Io,
    /// A number in its output; the last match counts.
    Output(Regex),
}

impl Metric {
    /// Reads `elapsed`, `io`, or a regular expression with one group, such as `tps = ([0-9.]+)`.
    ///
    /// # Errors
    /// It is no regular expression, or has no group; in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "elapsed" => Ok(Self::Elapsed),
            "io" => Ok(Self::Io),
            text => {
                let pattern = Regex::new(text).map_err(|error| error.to_string())?;
                if pattern.captures_len() != 2 {
                    return Err(format!(
                        "{text:?} is neither elapsed nor io, and as a regular expression it needs one group around the \
                         number, such as 'tps = ([0-9.]+)'"
                    ));
                }
                Ok(Self::Output(pattern))
            }
        }
    }

    /// The capacity of a run that took so long, in seconds, did so many I/Os a second, and printed this.
    ///
    /// # Errors
    /// The output holds no such number; in words.
    pub fn read(&self, seconds: f64, io_per_second: Option<f64>, output: &str) -> Result<Capacity, String> {
        let (name, value) = match self {
            Self::Elapsed => ("runs/h", 3600.0 / seconds),
            Self::Io => ("I/O per second", io_per_second.ok_or("its I/O rate is not known")?),
            Self::Output(pattern) => (name(pattern.as_str()), last_number(pattern, output)?),
        };
        Ok(Capacity { name: name.to_owned(), value })
    }

    /// The capacity of a command that was run by an agent.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn capacity(&self, outcome: &WorkloadOutcome) -> Result<Capacity, String> {
        let mean = |name: &str| outcome.metric(name).map(|metric| metric.mean);
        let output = outcome.command.as_ref().map_or("", |end| end.output.as_str());
        self.read(mean("elapsed").unwrap_or(f64::NAN), mean("disk operations"), output)
    }
}

/// A regular expression with one group, around a number.
///
/// # Errors
/// It is none; in words.
pub(crate) fn number_pattern(text: &str) -> Result<Regex, String> {
    let pattern = Regex::new(text).map_err(|error| error.to_string())?;
    if pattern.captures_len() != 2 {
        return Err(format!("{text:?} needs one group around the number, such as 'tps = ([0-9.]+)'"));
    }
    Ok(pattern)
}

/// The number in the first group of a pattern's last match.
///
/// # Errors
/// There is none; in words, with the end of what was printed.
pub(crate) fn last_number(pattern: &Regex, output: &str) -> Result<f64, String> {
    let found = pattern.captures_iter(output).last().and_then(|found| found.get(1));
    let found = found.ok_or_else(|| match output.trim() {
        "" => format!("nothing was printed in which {:?} could be looked for", pattern.as_str()),
        _ => {
            format!("nothing in its output matches {:?}; it ended with: {}", pattern.as_str(), end(output))
        }
    })?;
    let value: Option<f64> = found.as_str().parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| format!("{:?} is no number", found.as_str()))
}

/// A word of a pattern for what it counts: the first letters in it.
fn name(pattern: &str) -> &str {
    let word = pattern.split(|c: char| !c.is_alphabetic()).find(|word| word.len() > 1);
    word.unwrap_or("capacity")
}

fn end(output: &str) -> String {
    let lines: Vec<&str> = output.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}

/// The one in the middle by a figure, the upper of two; `None` of none.
pub(super) fn middle<T>(mut runs: Vec<T>, figure: impl Fn(&T) -> f64) -> Option<T> {
    runs.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let place = runs.len() / 2;
    (place < runs.len()).then(|| runs.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_time_rate_and_output() {
        let read = |text: &str| Metric::parse(text).unwrap().read(10.0, Some(7.0), "tps = 1\ntps = 2.5 x\n");
        assert_eq!(read("elapsed").unwrap().value, 360.0);
        assert_eq!(read("io").unwrap().value, 7.0);
        let found = read("tps = ([0-9.]+)").unwrap();
        assert_eq!((found.name.as_str(), found.value), ("tps", 2.5));
        assert!(read("rate ([0-9]+)").unwrap_err().contains("tps = 2.5 x"));
    }

    #[test]
    fn what_is_no_metric_is_told_what_is_missing() {
        for (text, said) in [("time", "one group"), ("(", "unclosed"), ("(a)(b)", "one group")] {
            assert!(Metric::parse(text).unwrap_err().contains(said), "{text}");
        }
    }

    #[test]
    fn the_one_in_the_middle_counts() {
        assert_eq!(middle(vec![3.0, 1.0, 2.0], |run| *run), Some(2.0));
        assert_eq!(middle(vec![1.0, 4.0], |run| *run), Some(4.0));
        assert_eq!(middle(Vec::<f64>::new(), |run| *run), None);
    }
}
