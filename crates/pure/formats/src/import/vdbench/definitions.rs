//! Storage, workload and run definitions, with Vdbench's defaults.

use std::collections::BTreeMap;

use virtbench_workload::{Arrivals, WriteSync};

use super::super::{Findings, ImportError, MAX_JOBS};
use super::lines::{MOST_BYTES, Parameter, bytes, list, numbers, percent, seconds};

/// Threads of a storage definition that says nothing.
const THREADS: u64 = 8;
/// How long a run is that says nothing, in seconds, and an interval of its report.
const ELAPSED_S: u64 = 30;
const INTERVAL_S: u64 = 1;

/// `sd=`: a target.
#[derive(Debug, Clone, Default)]
pub struct Storage {
    pub target: Option<String>,
    pub size_bytes: Option<u64>,
    pub threads: Option<u64>,
    pub start_bytes: u64,
    pub align_bytes: Option<u64>,
    pub flags: Flags,
    pub range: Option<Range>,
}

/// `openflags=`: how a target is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    pub direct: bool,
    pub sync: WriteSync,
}

/// `range=`: which part of a target is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// From and to, in percent.
    Percent(f64, f64),
    /// From and to, in bytes.
    Bytes(u64, u64),
}

/// `wd=`: what is done.
#[derive(Debug, Clone)]
pub struct Workload {
    pub line: usize,
    /// Names of targets, where `*` stands for any end.
    pub storage: Vec<String>,
    /// Sizes with their shares in percent.
    pub sizes: Vec<(u64, f64)>,
    pub read_percent: f64,
    pub random_percent: f64,
    pub threads: Option<u64>,
    pub range: Option<Range>,
    pub skew: Option<f64>,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            line: 0,
            storage: vec!["*".into()],
            sizes: vec![(4096, 100.0)],
            read_percent: 100.0,
            random_percent: 100.0,
            threads: None,
            range: None,
            skew: None,
        }
    }
}

/// `rd=`: a run, or a loop of runs.
#[derive(Debug, Clone)]
pub struct Run {
    pub name: String,
    pub line: usize,
    /// Names of workloads, where `*` stands for any end.
    pub workloads: Vec<String>,
    /// Operations a second; nothing for as many as possible.
    pub rates: Vec<Option<u64>>,
    pub arrivals: Arrivals,
    pub elapsed_s: u64,
    pub warm_up_s: Option<u64>,
    pub interval_s: u64,
    pub threads: Vec<Option<u64>>,
    pub sizes: Vec<Option<u64>>,
    pub read_percents: Vec<Option<u64>>,
    pub random_percents: Vec<Option<u64>>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            name: String::new(),
            line: 0,
            workloads: vec!["*".into()],
            rates: vec![None],
            // Vdbench's own default is exponential.
            arrivals: Arrivals::Poisson,
            elapsed_s: ELAPSED_S,
            warm_up_s: None,
            interval_s: INTERVAL_S,
            threads: vec![None],
            sizes: vec![None],
            read_percents: vec![None],
            random_percents: vec![None],
        }
    }
}

/// All definitions of a file, by name.
#[derive(Debug, Default)]
pub struct Definitions {
    pub storage: Vec<(String, Storage)>,
    pub workloads: Vec<(String, Workload)>,
    pub runs: Vec<Run>,
    defaults: Defaults,
}

/// What `name=default` says of those that follow.
#[derive(Debug, Default)]
struct Defaults {
    storage: Storage,
    workload: Workload,
    run: Run,
}

impl Storage {
    /// Its threads, unless a workload or a run says otherwise.
    pub fn threads(&self) -> u64 {
        self.threads.unwrap_or(THREADS)
    }
}

impl Definitions {
    pub fn storage(&mut self, all: &[Parameter], findings: &mut Findings) -> Result<(), ImportError> {
        let mut storage = self.defaults.storage.clone();
        for one in all.iter().skip(1) {
            match one.name.as_str() {
                "lun" => storage.target = Some(target(one, findings)),
                "size" => storage.size_bytes = Some(of(bytes(&one.value), one, "no size")?),
                "threads" => storage.threads = Some(of(count(&one.value), one, "no number of threads")?),
                "offset" => storage.start_bytes = of(bytes(&one.value), one, "no offset")?,
                "align" => storage.align_bytes = Some(of(bytes(&one.value), one, "no size")?),
                "openflags" => storage.flags = flags(one, findings),
                "range" => storage.range = Some(of(range(&one.value), one, "write (from,to)")?),
                "hitarea" | "host" => findings.leave_out(&one.name, one.line),
                _ => unknown(one, findings),
            }
        }
        self.named(all, |this, name| match name {
            "default" => this.defaults.storage = storage,
            name => this.storage.push((name.to_owned(), storage)),
        })
    }

    pub fn workload(&mut self, all: &[Parameter], findings: &mut Findings) -> Result<(), ImportError> {
        let mut workload = self.defaults.workload.clone();
        workload.line = all.first().map_or(0, |one| one.line);
        for one in all.iter().skip(1) {
            match one.name.as_str() {
                "sd" => workload.storage = list(&one.value).into_iter().map(str::to_owned).collect(),
                "xfersize" => {
                    workload.sizes = of(sizes(&one.value), one, "write a size, or (size,percent,...)")?
                }
                "rdpct" => workload.read_percent = of(percent(&one.value), one, "no part in percent")?,
                "seekpct" => workload.random_percent = of(seek(&one.value), one, "0 to 100, random or seq")?,
                "threads" => workload.threads = Some(of(count(&one.value), one, "no number of threads")?),
                "range" => workload.range = Some(of(range(&one.value), one, "write (from,to)")?),
                "skew" => workload.skew = Some(of(percent(&one.value), one, "no part in percent")?),
                "rhpct" | "whpct" if one.value == "0" => findings.leave_out(&one.name, one.line),
                "host" => findings.leave_out(&one.name, one.line),
                _ => unknown(one, findings),
            }
        }
        self.named(all, |this, name| match name {
            "default" => this.defaults.workload = workload,
            name => this.workloads.push((name.to_owned(), workload)),
        })
    }

    pub fn run(&mut self, all: &[Parameter], findings: &mut Findings) -> Result<(), ImportError> {
        let mut run = self.defaults.run.clone();
        run.line = all.first().map_or(0, |one| one.line);
        let each = |one: &Parameter| -> Result<Vec<Option<u64>>, ImportError> {
            let all = of(numbers(&one.value, MAX_JOBS), one, "write a number, or a list of them")?;
            Ok(all.into_iter().map(Some).collect())
        };
        for one in all.iter().skip(1) {
            match one.name.as_str() {
                "wd" => run.workloads = list(&one.value).into_iter().map(str::to_owned).collect(),
                "iorate" | "foriorate" => match one.value.as_str() {
                    "max" => run.rates = vec![None],
                    "curve" => findings.refuse(
                        one.at(),
                        "iorate=curve: `virtbench saturate` finds the highest rate and measures below it",
                    ),
                    _ => run.rates = each(one)?,
                },
                "elapsed" => run.elapsed_s = of(seconds(&one.value), one, "no time")?,
                "warmup" => run.warm_up_s = Some(of(seconds(&one.value), one, "no time")?),
                "interval" => run.interval_s = of(seconds(&one.value), one, "no time")?.max(1),
                "threads" | "forthreads" => run.threads = each(one)?,
                "xfersize" | "forxfersize" => run.sizes = each(one)?,
                "rdpct" | "forrdpct" => run.read_percents = each(one)?,
                "seekpct" | "forseekpct" => run.random_percents = each(one)?,
                "distribution" => {
                    run.arrivals = of(arrivals(&one.value), one, "exponential or deterministic")?
                }
                "pause" | "monitor" | "report" => findings.leave_out(&one.name, one.line),
                _ => unknown(one, findings),
            }
        }
        self.named(all, |this, name| match name {
            "default" => this.defaults.run = run,
            name => this.runs.push(Run { name: name.to_owned(), ..run }),
        })
    }

    /// Keeps what a statement defines under its name.
    fn named(&mut self, all: &[Parameter], keep: impl FnOnce(&mut Self, &str)) -> Result<(), ImportError> {
        match all.first() {
            Some(first) if first.value.len() > MOST_BYTES => Err(first.wrong("a name is shorter")),
            Some(first) => {
                keep(self, &first.value);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Those whose names are meant by a list, in the file's order.
    pub fn chosen<'a, T>(all: &'a [(String, T)], names: &[String]) -> Vec<&'a (String, T)> {
        let is_meant = |name: &str| {
            names.iter().any(|wanted| match wanted.strip_suffix('*') {
                Some(begin) => name.starts_with(begin),
                None => in_range(wanted, name) || wanted == name,
            })
        };
        let mut chosen: BTreeMap<usize, &(String, T)> = BTreeMap::new();
        chosen.extend(all.iter().enumerate().filter(|(_, (name, _))| is_meant(name)));
        chosen.into_values().collect()
    }
}

/// `sd1-sd4`: names that end with a number.
fn in_range(wanted: &str, name: &str) -> bool {
    let parts = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        Some((name[stem.len()..].parse::<u64>().ok()?, stem))
    };
    let Some((first, last)) = wanted.split_once('-') else { return false };
    match (parts(first), parts(last), parts(name)) {
        (Some((first, stem)), Some((last, _)), Some((number, of))) => {
            stem == of && (first..=last).contains(&number)
        }
        _ => false,
    }
}

fn of<T>(value: Option<T>, one: &Parameter, why: &str) -> Result<T, ImportError> {
    value.ok_or_else(|| one.wrong(why))
}

fn unknown(one: &Parameter, findings: &mut Findings) {
    findings.ignore(one.at(), format!("{}={:.60}: nothing here does that", one.name, one.value));
}

fn target(one: &Parameter, findings: &mut Findings) -> String {
    if one.value.contains('$') {
        findings.refuse(one.at(), format!("lun={:.60}: write the target in the variable's place", one.value));
    }
    one.value.clone()
}

fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| (1..=4096).contains(count))
}

fn flags(one: &Parameter, findings: &mut Findings) -> Flags {
    let mut flags = Flags::default();
    for flag in list(&one.value) {
        match flag.to_ascii_lowercase().as_str() {
            "o_direct" | "directio" | "directio_on" => flags.direct = true,
            "o_dsync" => flags.sync = WriteSync::Data,
            "o_sync" | "o_rsync" => flags.sync = WriteSync::All,
            "none" => {}
            other => findings.ignore(one.at(), format!("openflags={other:.40}: nothing here does that")),
        }
    }
    flags
}

fn sizes(text: &str) -> Option<Vec<(u64, f64)>> {
    let items = list(text);
    if let [one] = items[..] {
        return Some(vec![(bytes(one)?, 100.0)]);
    }
    let pairs: Option<Vec<(u64, f64)>> = items
        .chunks(2)
        .map(|pair| if let [size, share] = pair { Some((bytes(size)?, percent(share)?)) } else { None })
        .collect();
    pairs.filter(|pairs| !pairs.is_empty() && pairs.len() <= 100)
}

fn seek(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "random" | "rand" => Some(100.0),
        "seq" | "sequential" => Some(0.0),
        other => percent(other),
    }
}

fn range(text: &str) -> Option<Range> {
    let items = list(text);
    let [from, to] = items[..] else { return None };
    match (from.parse::<f64>(), to.parse::<f64>()) {
        (Ok(from), Ok(to)) if (0.0..=100.0).contains(&from) && from < to && to <= 100.0 => {
            Some(Range::Percent(from, to))
        }
        _ => Some((bytes(from)?, bytes(to)?))
            .filter(|(from, to)| from < to)
            .map(|(from, to)| Range::Bytes(from, to)),
    }
}

fn arrivals(text: &str) -> Option<Arrivals> {
    match list(text).first().map(|word| word.to_ascii_lowercase()).as_deref() {
        Some("exponential" | "exp" | "e") => Some(Arrivals::Poisson),
        Some("deterministic" | "d") => Some(Arrivals::Constant),
        _ => None,
    }
}
