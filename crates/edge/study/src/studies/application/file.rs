//! A study of an application as a user writes it, with the metrics that are read out of what a client prints.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;
use thiserror::Error;
use virtbench_record::{ApplicationMetric, Better};
use virtbench_units::{parse_bytes, parse_duration_ns};

use super::load::DataPlace;
use crate::appliances::joined::is_host_name;
use crate::studies::predictions::{last_number, number_pattern};
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// The study that comes with virtbench: the name that stands for its file, and the file.
const SUPPLIED: (&str, &str) = ("redis", include_str!("../../../../../../docs/applications/redis.toml"));

/// How long a client may take where nothing is said, in nanoseconds.
const LIMIT_NS: u64 = 600_000_000_000;

/// The most further tiers: each pair has a cable.
const MOST_TIERS: usize = 4;

/// The most neighbours.
const MOST_NEIGHBOURS: u32 = 64;

/// An invalid file.
#[derive(Debug, Error)]
pub enum ApplicationFileError {
    /// It is no TOML, or has an unknown field, or lacks one.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An invalid value.
    #[error("{0}")]
    Value(String),
}

/// Where a side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideKind {
    /// On this host, in namespaces.
    Native,
    /// In a VM.
    Vm,
}

/// What else loads the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeighbourFile {
    /// The recipe; the same as what is measured where nothing is said.
    pub appliance: Option<String>,
    /// Commands that fill its data.
    pub prepare: Vec<Vec<String>>,
    /// Its client.
    pub client: Vec<String>,
}

/// Another tier of the application.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierFile {
    /// The name by which those before it reach it.
    pub name: String,
    /// The recipe, by name or file.
    pub appliance: String,
    /// Commands of this host that fill its data.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
}

/// A study of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationFile {
    /// The recipe, by name or file.
    pub appliance: String,
    /// Commands of this host that fill the data.
    pub prepare: Vec<Vec<String>>,
    /// Further tiers, each reached by those before it.
    pub tiers: Vec<TierFile>,
    /// The command that loads it.
    pub client: Vec<String>,
    /// What is read from what it prints.
    pub metrics: Vec<ApplicationMetric>,
    /// How long a client may take, in nanoseconds.
    pub limit_ns: u64,
    /// About how long it takes, in nanoseconds.
    pub takes_ns: Option<u64>,
    /// Whether natively, and whether in a VM.
    pub sides: Vec<SideKind>,
    /// Processors of each side.
    pub vcpus: Vec<u32>,
    /// Memory of each side, in bytes; the least that the recipe needs where nothing is said.
    pub memory_bytes: Option<u64>,
    /// Repetitions.
    pub repetitions: u32,
    /// How many run beside it.
    pub neighbours: u32,
    /// What they run; the same where nothing is said.
    pub neighbour: Option<NeighbourFile>,
    /// Where data are kept.
    pub disk: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    appliance: String,
    client: Vec<String>,
    #[serde(default)]
    prepare: Vec<Vec<String>>,
    #[serde(default)]
    tier: Vec<TierFile>,
    metric: Vec<MetricTable>,
    limit: Option<String>,
    takes: Option<String>,
    sides: Option<Vec<SideKind>>,
    vcpus: Option<Vec<u32>>,
    memory: Option<String>,
    repetitions: Option<u32>,
    neighbours: Option<u32>,
    neighbour: Option<NeighbourTable>,
    disk: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricTable {
    name: String,
    pattern: String,
    #[serde(default)]
    unit: String,
    better: Better,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NeighbourTable {
    appliance: Option<String>,
    #[serde(default)]
    prepare: Vec<Vec<String>>,
    client: Vec<String>,
}

impl ApplicationFile {
    /// The file at `path`, or the one that comes with virtbench by this name.
    ///
    /// # Errors
    /// It cannot be read, or is invalid.
    pub fn find(path: &Path) -> Result<Self, StudyError> {
        let usage = |why: String| StudyError::input(format!("{}: {why}", path.display()));
        let text = match path == Path::new(SUPPLIED.0) && !path.exists() {
            true => SUPPLIED.1.to_owned(),
            false => read_user_file(path).map_err(usage)?,
        };
        Self::parse(&text).map_err(|error| usage(error.to_string()))
    }

    /// So many run beside it instead; without any there is no other load.
    pub fn set_neighbours(&mut self, neighbours: u32) {
        self.neighbours = neighbours;
        self.neighbour = self.neighbour.take().filter(|_| neighbours > 0);
    }

    /// Reads it.
    ///
    /// # Errors
    /// The first line that cannot be read, or an invalid value.
    pub fn parse(text: &str) -> Result<Self, ApplicationFileError> {
        let table: Table = toml::from_str(text)?;
        let metric = |one: MetricTable| {
            let MetricTable { name, pattern, unit, better } = one;
            ApplicationMetric { name, pattern, unit, better }
        };
        let neighbour = |one: NeighbourTable| {
            let NeighbourTable { appliance, prepare, client } = one;
            NeighbourFile { appliance, prepare, client }
        };
        let file = Self {
            appliance: table.appliance,
            prepare: table.prepare,
            tiers: table.tier,
            client: table.client,
            metrics: table.metric.into_iter().map(metric).collect(),
            limit_ns: duration("limit", table.limit)?.unwrap_or(LIMIT_NS),
            takes_ns: duration("takes", table.takes)?,
            sides: table.sides.unwrap_or_else(|| vec![SideKind::Native, SideKind::Vm]),
            vcpus: table.vcpus.unwrap_or_else(|| vec![1]),
            memory_bytes: table
                .memory
                .map(|text| parse_bytes(&text))
                .transpose()
                .map_err(|error| value("memory", &error))?,
            repetitions: table.repetitions.unwrap_or(3),
            neighbours: table.neighbours.unwrap_or(0),
            neighbour: table.neighbour.map(neighbour),
            disk: table.disk.unwrap_or_else(|| "file".into()),
        };
        file.check().map_err(ApplicationFileError::Value)?;
        Ok(file)
    }

    /// Whether it is valid.
    ///
    /// # Errors
    /// The first value that cannot; in words.
    pub fn check(&self) -> Result<(), String> {
        let ensure = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
        let of_tiers = self.tiers.iter().flat_map(|tier| &tier.prepare);
        let commands = self.prepare.iter().chain(of_tiers).chain([&self.client]);
        let commands =
            commands.chain(self.neighbour.iter().flat_map(|one| one.prepare.iter().chain([&one.client])));
        for words in commands {
            ensure(
                words.first().is_some_and(|name| !name.is_empty()),
                "client and prepare: a command needs a program",
            )?;
        }
        self.check_tiers()?;
        ensure(!self.metrics.is_empty(), "metric: there is none, so nothing would be measured")?;
        for (index, metric) in self.metrics.iter().enumerate() {
            ensure(!metric.name.is_empty(), "metric: one has no name")?;
            let is_twice = self.metrics[..index].iter().any(|other| other.name == metric.name);
            ensure(!is_twice, &format!("metric {}: it is there twice", metric.name))?;
        }
        ensure(
            !self.vcpus.is_empty() && self.vcpus.iter().all(|vcpus| (1..=1024).contains(vcpus)),
            "vcpus: numbers from 1 to 1024",
        )?;
        let is_twice = self.sides.len() > 1 && self.sides[0] == self.sides[1];
        ensure((1..=2).contains(&self.sides.len()) && !is_twice, "sides: native, vm, or both")?;
        ensure((1..=1000).contains(&self.repetitions), "repetitions: a number from 1 to 1000")?;
        ensure(self.neighbours <= MOST_NEIGHBOURS, &format!("neighbours: {MOST_NEIGHBOURS} at most"))?;
        ensure(self.neighbour.is_none() || self.neighbours > 0, "neighbour: say how many by neighbours = N")?;
        DataPlace::parse(&self.disk)?;
        Metrics::parse(&self.metrics).map(drop)
    }

    fn check_tiers(&self) -> Result<(), String> {
        if self.tiers.len() > MOST_TIERS {
            return Err(format!("tier: {MOST_TIERS} at most beside what the client loads"));
        }
        if self.neighbours > 0 && !self.tiers.is_empty() {
            return Err(
                "tier: an application of several tiers is measured alone: leave neighbours out".into()
            );
        }
        for (index, tier) in self.tiers.iter().enumerate() {
            if !is_host_name(&tier.name) {
                return Err(format!("tier {:?}: a host's name of a-z, 0-9 and -", tier.name));
            }
            if self.tiers[..index].iter().any(|other| other.name == tier.name) {
                return Err(format!("tier {}: it is there twice", tier.name));
            }
        }
        Ok(())
    }
}

fn value(name: &str, error: &dyn std::fmt::Display) -> ApplicationFileError {
    ApplicationFileError::Value(format!("{name}: {error}"))
}

fn duration(name: &str, text: Option<String>) -> Result<Option<u64>, ApplicationFileError> {
    text.map(|text| parse_duration_ns(&text)).transpose().map_err(|error| value(name, &error))
}

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
    use proptest::prelude::*;
    use virtbench_record::Better;

    use super::*;

    const FILE: &str = "appliance = 'redis'\nclient = ['redis-benchmark', '-p', '{port}']\n\
                        [[metric]]\nname = 'SET'\npattern = 'SET ([0-9.]+)'\nunit = '1/s'\nbetter = 'higher'\n";

    const TIER: &str = "[[tier]]\nname = 'db'\nappliance = 'redis'\n";

    #[test]
    fn what_is_not_said_has_its_default() {
        let file = ApplicationFile::parse(FILE).unwrap();
        assert_eq!((file.repetitions, file.neighbours, file.vcpus), (3, 0, vec![1]));
        assert_eq!((file.disk.as_str(), file.limit_ns, file.takes_ns), ("file", LIMIT_NS, None));
        assert_eq!(file.metrics[0].better, Better::Higher);
    }

    #[test]
    fn what_is_invalid_is_named() {
        let with = |line: &str| format!("{line}\n{FILE}");
        for (text, said) in [
            (with("speed = 1"), "unknown field `speed`"),
            (with("limit = 'soon'"), "limit: "),
            (with("memory = 'much'"), "memory: "),
            (with("vcpus = []"), "vcpus: "),
            (with("sides = []"), "sides: "),
            (with("sides = ['vm', 'vm']"), "sides: "),
            (with("repetitions = 0"), "repetitions: "),
            (with("neighbours = 65"), "neighbours: 64 at most"),
            (with("disk = 'tape'"), "disk \"tape\": file, or fence"),
            (with("disk = 'fence,slow=tape'"), "disk: "),
            (with("disk = 'fence,throttle=on'"), "throttle is for guests alone"),
            (FILE.replace("([0-9.]+)", "x"), "metric SET: "),
            (FILE.replace("higher", "faster"), "unknown variant `faster`"),
            (FILE.replace("'redis-benchmark', '-p', '{port}'", ""), "a command needs a program"),
            (
                format!("{FILE}[[metric]]\nname = 'SET'\npattern = '(1)'\nbetter = 'lower'\n"),
                "SET: it is there twice",
            ),
            (format!("{FILE}[[tier]]\nname = 'd b'\nappliance = 'redis'\n"), "tier \"d b\": a host's name"),
            (format!("{FILE}{TIER}{TIER}"), "tier db: it is there twice"),
            (with("neighbours = 1") + TIER, "measured alone: leave neighbours out"),
            (format!("{FILE}[neighbour]\nclient = ['x']\n"), "say how many"),
        ] {
            let error = ApplicationFile::parse(&text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_of_a_study_panics(text in "(appliance = 'redis'\n)?[a-z='\\[\\] 0-9{}\n]{0,80}") {
            let _ = ApplicationFile::parse(&text);
        }
    }

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
