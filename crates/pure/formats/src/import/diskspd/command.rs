//! A command line as it was read, and the jobs it becomes.

use virtbench_workload::{
    AccessLine, AccessSpec, Arrivals, EngineKind, LoadSpec, Placement, Rate, Traversal, WriteSync,
};

use super::super::{ASSUMED_REGION_BYTES, Findings, ImportedJob, Schedule, common_alignment};

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
