//! What each option of diskspd means here. Options are one word: `-d30`, never `-d 30`.

use virtbench_workload::{
    AccessLine, AccessSpec, Arrivals, EngineKind, LoadSpec, Placement, Rate, Traversal, WriteSync,
};

use super::super::{
    ASSUMED_REGION_BYTES, Findings, ImportError, ImportedJob, Location, Schedule, common_alignment,
};

/// The most parts of a target.
const MAX_PARTS: usize = 100;

/// Options that change what is reported or traced.
const WITHOUT_EFFECT: [char; 9] = ['L', 'v', 'R', 'P', 'n', 'e', 'l', 'C', ':'];

/// Reads `-b`, which comes first because it is the unit `b` of other sizes.
pub fn block_size(command: &mut Command, value: &str, at: Location) -> Result<(), ImportError> {
    command.block_bytes =
        size(value, command.block_bytes).filter(|bytes| *bytes > 0).ok_or_else(|| bad(at, 'b', "a size"))?;
    Ok(())
}

/// Puts one option, without its dash, into the command.
pub fn apply(
    command: &mut Command,
    option: &str,
    at: Location,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let mut chars = option.chars();
    let Some(letter) = chars.next() else {
        return Err(ImportError::Syntax { at, why: "a dash without an option".into() });
    };
    let value = chars.as_str();
    let count =
        || value.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| bad(at, letter, "a positive number"));
    let bytes = |text: &str| size(text, command.block_bytes).ok_or_else(|| bad(at, letter, "a size"));
    let refuse = |findings: &mut Findings, why: &str| findings.ignore(at, format!("-{option:.40}: {why}"));
    match letter {
        'b' => {}
        'd' => command.time_s = count()?,
        'W' => command.warm_up_s = value.parse().map_err(|_| bad(at, letter, "seconds"))?,
        'o' => command.outstanding = count()?,
        'O' => command.outstanding_total = Some(count()?),
        't' => command.threads = count()?,
        'F' => command.threads_total = Some(count()?),
        'w' if value.is_empty() => command.write_percent = 0,
        'w' => command.write_percent = percent(value).ok_or_else(|| bad(at, letter, "a percentage"))?,
        'r' => random(command, value, at, findings)?,
        's' => sequential(command, value, at, findings)?,
        'S' | 'h' => {
            let flags = if letter == 'h' { "h" } else { value };
            caching(command, flags, option, at, findings);
        }
        'c' => command.create_bytes = Some(bytes(value)?),
        'f' if value.starts_with(|c: char| c.is_ascii_digit()) => command.end_bytes = Some(bytes(value)?),
        'f' => findings.leave_out(&format!("-{option:.20}"), at.line),
        'B' => {
            let (base, length) =
                value.split_once(':').map_or((value, None), |(base, length)| (base, Some(length)));
            command.base_bytes = bytes(base)?;
            command.length_bytes = length.map(bytes).transpose()?;
        }
        'g' => {
            let (number, iops) = value.strip_suffix('i').map_or((value, false), |number| (number, true));
            let number: u32 =
                number.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad(at, letter, "a positive number"))?;
            command.throttle = Some(if iops { Throttle::Iops(number) } else { Throttle::BytesPerMs(number) });
        }
        'i' => command.burst = Some(count()?),
        'j' => command.think_ms = Some(count()?),
        'D' => command.interval_ms = value.parse().ok().filter(|n| *n > 0),
        'z' => command.seed = value.parse().ok(),
        'a' => match super::super::processors(value) {
            _ if value.is_empty() || value == "g" => findings.leave_out("-a", at.line),
            Some(list) => command.processors.extend(list),
            None => refuse(findings, "processor groups are not known here"),
        },
        'Z' => match value {
            "" => command.zeros = true,
            "r" => command.random_content = true,
            _ if value.contains(',') => refuse(findings, "no file can be the source of what is written"),
            _ => {
                bytes(value)?;
                command.random_content = true;
            }
        },
        'X' => refuse(findings, "name the profile's own file instead"),
        'T' => refuse(findings, "threads begin evenly spread over the target"),
        'p' => refuse(findings, "operations of one thread never share an offset"),
        'x' => findings.leave_out("-x", at.line),
        'N' | 'I' | 'y' => refuse(findings, "this cannot be done here"),
        letter if WITHOUT_EFFECT.contains(&letter) => findings.leave_out(&format!("-{option:.20}"), at.line),
        _ => refuse(findings, "this option is not known"),
    }
    Ok(())
}

/// `-r`: at random, with an alignment, in part (`-rs`) or by a distribution (`-rd`).
fn random(
    command: &mut Command,
    value: &str,
    at: Location,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    if let Some(share) = value.strip_prefix('s') {
        let share = percent(share).filter(|n| *n > 0);
        command.random_percent = share.ok_or_else(|| bad(at, 'r', "a percentage"))?;
    } else if let Some(distribution) = value.strip_prefix('d') {
        match parts(distribution) {
            Some(placements) => command.placements = placements,
            None => findings.ignore(
                at,
                format!("-r{value:.39}: known are shares of the operations and of the target, such as -rdpct80/10:15/20"),
            ),
        }
    } else {
        if command.random_percent == 0 {
            command.random_percent = 100;
        }
        if !value.is_empty() {
            let bytes = size(value, command.block_bytes).ok_or_else(|| bad(at, 'r', "a size"))?;
            command.align_bytes = Some(bytes).filter(|n| *n > 0);
        }
    }
    Ok(())
}

/// `-s`: in sequence, with a stride, or interlocked among threads (`-si`).
fn sequential(
    command: &mut Command,
    value: &str,
    at: Location,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let (interlocked, stride) = value.strip_prefix('i').map_or((false, value), |rest| (true, rest));
    if interlocked {
        findings.ignore(at, format!("-s{value:.39}: threads cannot share one sequential offset"));
    }
    if !stride.is_empty() {
        let bytes = size(stride, command.block_bytes).ok_or_else(|| bad(at, 's', "a size"))?;
        command.stride_bytes = Some(bytes);
    }
    Ok(())
}

fn bad(at: Location, letter: char, what: &str) -> ImportError {
    ImportError::Syntax { at, why: format!("-{letter} takes {what} in the same word, such as -{letter}10") }
}

fn caching(command: &mut Command, flags: &str, option: &str, at: Location, findings: &mut Findings) {
    if flags.is_empty() {
        command.direct = true;
    }
    for flag in flags.chars().take(8) {
        match flag {
            'b' => command.direct = false,
            'u' => command.direct = true,
            'w' => command.write_through = true,
            'h' => (command.direct, command.write_through) = (true, true),
            _ => findings.ignore(at, format!("-{option:.40}: only the flags b, h, u and w can be honoured")),
        }
    }
}

fn percent(text: &str) -> Option<u8> {
    text.parse().ok().filter(|n| *n <= 100)
}

/// `4K`, `10G`, or `8b` for eight blocks; units are binary.
fn size(text: &str, block_bytes: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let unit = match suffix {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        "b" | "B" => block_bytes,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// `pct80/10:15/20`: 80 % of the operations on the first 10 % of the target, 15 % on the next 20 %, the
/// others on the rest.
fn parts(text: &str) -> Option<Vec<(f64, Placement)>> {
    let (mut left, mut from_percent) = (100.0, 0.0);
    let mut parts = Vec::new();
    for part in text.strip_prefix("pct")?.split(':').take(MAX_PARTS) {
        let (access, data) = part.split_once('/')?;
        let (access, data) = (f64::from(percent(access)?), f64::from(percent(data)?));
        let to_percent = from_percent + data;
        if data <= 0.0 || access > left || to_percent > 100.0 {
            return None;
        }
        parts.push((access, Placement::Part { from_percent, to_percent }));
        (left, from_percent) = (left - access, to_percent);
    }
    match (left > 0.0, from_percent < 100.0) {
        (true, true) => parts.push((left, Placement::Part { from_percent, to_percent: 100.0 })),
        (true, false) => return None,
        _ => {}
    }
    parts.retain(|(access, _)| *access > 0.0);
    if let [(access_percent, Placement::Part { from_percent, to_percent }), (_, Placement::Part { .. })] =
        parts[..]
        && from_percent <= 0.0
    {
        return Some(vec![(100.0, Placement::Hot { data_percent: to_percent, access_percent })]);
    }
    Some(parts)
}

/// `-g`, of each thread on each target.
#[derive(Debug, Clone, Copy)]
pub enum Throttle {
    /// Bytes in a millisecond.
    BytesPerMs(u32),
    /// Operations in a second.
    Iops(u32),
}

/// The options, with diskspd's defaults.
#[derive(Debug)]
#[allow(missing_docs, clippy::struct_excessive_bools)]
pub struct Command {
    pub block_bytes: u64,
    pub time_s: u32,
    pub warm_up_s: u32,
    pub outstanding: u32,
    pub outstanding_total: Option<u32>,
    pub threads: u32,
    pub threads_total: Option<u32>,
    pub write_percent: u8,
    pub random_percent: u8,
    /// Where random operations go: placements with their shares, in percent.
    pub placements: Vec<(f64, Placement)>,
    /// `-B`, in bytes.
    pub base_bytes: u64,
    pub length_bytes: Option<u64>,
    pub align_bytes: Option<u64>,
    pub stride_bytes: Option<u64>,
    pub direct: bool,
    pub write_through: bool,
    pub create_bytes: Option<u64>,
    pub end_bytes: Option<u64>,
    pub throttle: Option<Throttle>,
    pub burst: Option<u32>,
    pub think_ms: Option<u32>,
    pub interval_ms: Option<u32>,
    pub seed: Option<u64>,
    pub processors: Vec<u32>,
    pub zeros: bool,
    pub random_content: bool,
    pub targets: Vec<String>,
}

impl Default for Command {
    fn default() -> Self {
        Self {
            block_bytes: 64 << 10,
            time_s: 10,
            warm_up_s: 5,
            outstanding: 2,
            outstanding_total: None,
            threads: 1,
            threads_total: None,
            write_percent: 0,
            random_percent: 0,
            placements: vec![(100.0, Placement::Uniform)],
            base_bytes: 0,
            length_bytes: None,
            align_bytes: None,
            stride_bytes: None,
            direct: false,
            write_through: false,
            create_bytes: None,
            end_bytes: None,
            throttle: None,
            burst: None,
            think_ms: None,
            interval_ms: None,
            seed: None,
            processors: Vec::new(),
            zeros: false,
            random_content: false,
            targets: Vec::new(),
        }
    }
}

impl Command {
    /// One job for each target, or one without.
    pub fn finish(self, line: usize, group: u32, findings: &mut Findings) -> Vec<ImportedJob> {
        let load = self.load(findings);
        let size_bytes = self.size_bytes();
        let job = |target: Option<&String>| ImportedJob {
            name: target.map_or_else(|| format!("line {line}"), Clone::clone),
            load: load.clone(),
            target: target.filter(|target| !of_windows(target)).cloned(),
            size_bytes,
            group,
            schedule: Schedule::default(),
        };
        if let Some(target) = self.targets.iter().find(|target| of_windows(target)) {
            findings.note(format!(
                "{target:.60?} is a target of Windows and is not used: another one stands for it"
            ));
        }
        if self.targets.is_empty() {
            vec![job(None)]
        } else {
            self.targets.iter().map(|t| job(Some(t))).collect()
        }
    }

    /// How much of a target is used.
    fn size_bytes(&self) -> Option<u64> {
        let rest = self.end_bytes.or(self.create_bytes).map(|end| end.saturating_sub(self.base_bytes));
        self.length_bytes.or(rest)
    }

    fn load(&self, findings: &mut Findings) -> LoadSpec {
        let writes = self.write_percent > 0;
        let workers = self.threads_total.unwrap_or(self.threads);
        let outstanding =
            self.outstanding_total.filter(|_| self.threads_total.is_some()).unwrap_or(self.outstanding);
        if self.threads_total.is_some() && self.targets.len() > 1 {
            findings.note("-F: threads that go round all targets become threads of each target");
        }
        let size = self.size_bytes().unwrap_or(ASSUMED_REGION_BYTES);
        let synchronous = outstanding == 1 && workers == 1;
        LoadSpec {
            outstanding,
            workers,
            ramp_ns: u64::from(self.warm_up_s) * 1_000_000_000,
            time_ns: u64::from(self.time_s) * 1_000_000_000,
            interval_ns: u64::from(self.interval_ms.unwrap_or(1000)) * 1_000_000,
            engine: if synchronous { EngineKind::Psync } else { EngineKind::IoUring },
            direct: self.direct,
            // Without -z diskspd's seed is 0.
            seed: self.seed.unwrap_or(0),
            rate: self.rate(workers, findings),
            write_sync: if writes && self.write_through { WriteSync::Data } else { WriteSync::None },
            // Bytes that count up, or zeros, unless it is told to draw them.
            pattern: match (self.zeros, self.random_content) {
                _ if !writes => Vec::new(),
                (true, _) => vec![0],
                (false, true) => Vec::new(),
                (false, false) => (0..=255).collect(),
            },
            start_bytes: self.base_bytes,
            traversal: Traversal {
                same_start: workers > 1 && self.random_percent < 100,
                ..Traversal::default()
            },
            processors: self.processors.clone(),
            ..LoadSpec::new(self.access(), size)
        }
    }

    fn access(&self) -> AccessSpec {
        let read_percent = f64::from(100 - self.write_percent);
        let stride =
            self.stride_bytes.filter(|stride| *stride != self.block_bytes && self.random_percent == 0);
        let (random_percent, placements) = match stride {
            Some(stride_bytes) => (100.0, vec![(100.0, Placement::Strided { stride_bytes })]),
            None => (f64::from(self.random_percent), self.placements.clone()),
        };
        let thinks = self.think_ms.is_some() && self.burst.is_some();
        let line = |(share_percent, placement): (f64, Placement)| AccessLine {
            share_percent,
            delay_ns: if thinks { u64::from(self.think_ms.unwrap_or(0)) * 1_000_000 } else { 0 },
            burst: if thinks { self.burst.unwrap_or(1) } else { 1 },
            align_bytes: common_alignment(self.align_bytes.unwrap_or(self.block_bytes), placement),
            placement,
            ..AccessLine::new(self.block_bytes, read_percent, random_percent)
        };
        AccessSpec { lines: placements.into_iter().map(line).collect() }
    }

    #[allow(clippy::cast_precision_loss)]
    fn rate(&self, workers: u32, findings: &mut Findings) -> Option<Rate> {
        let each = match self.throttle? {
            Throttle::Iops(iops) => f64::from(iops),
            Throttle::BytesPerMs(bytes) => f64::from(bytes) * 1000.0 / self.block_bytes as f64,
        };
        findings.note("diskspd throttles its threads; here operations arrive at the rate, and latency counts from when each was due");
        Some(Rate { per_second: each * f64::from(workers), arrivals: Arrivals::Constant })
    }
}

/// `D:\data\x.dat`, `D:`, `#1`, `\\server\share`: names that mean nothing here, or worse, a file's.
fn of_windows(target: &str) -> bool {
    let mut chars = target.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    drive || target.starts_with(['#', '\\'])
}
