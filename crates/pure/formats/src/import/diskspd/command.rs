//! A command line as it was read, and the jobs it becomes.

use virtbench_workload::{AccessLine, AccessSpec, Arrivals, Content, EngineKind, LoadSpec, Placement, Rate};

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
    pub placement: Placement,
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
            placement: Placement::Uniform,
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
        let size_bytes = self.end_bytes.or(self.create_bytes);
        let job = |target: Option<&String>| ImportedJob {
            name: target.map_or_else(|| format!("line {line}"), Clone::clone),
            load: load.clone(),
            target: target.filter(|target| !of_windows(target)).cloned(),
            size_bytes,
            group,
            schedule: Schedule::default(),
        };
        if let Some(target) = self.targets.iter().find(|target| of_windows(target)) {
            findings.note(format!("{target:.60?} is a target of Windows: name one of this machine"));
        }
        if self.targets.is_empty() {
            vec![job(None)]
        } else {
            self.targets.iter().map(|t| job(Some(t))).collect()
        }
    }

    fn load(&self, findings: &mut Findings) -> LoadSpec {
        let writes = self.write_percent > 0;
        let workers = self.threads_total.unwrap_or(self.threads);
        let outstanding =
            self.outstanding_total.filter(|_| self.threads_total.is_some()).unwrap_or(self.outstanding);
        if self.threads_total.is_some() && self.targets.len() > 1 {
            findings.note("-F: threads that go round all targets become threads of each target");
        }
        if writes && self.write_through {
            findings.note("write-through (-Sh, -Sw): each write is followed by a flush, which is as durable but one more operation");
        }
        if writes && !self.zeros && !self.random_content {
            findings.note(
                "diskspd writes a repeating pattern unless told otherwise; here blocks do not compress",
            );
        }
        if self.random_percent == 0 && workers > 1 {
            findings.note("sequential threads begin evenly spread over the target; in diskspd they overlap");
        }
        let size = self.end_bytes.or(self.create_bytes).unwrap_or(ASSUMED_REGION_BYTES);
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
            flush_every: (writes && self.write_through).then_some(1),
            content: Content {
                compressible_percent: if self.zeros { 100 } else { 0 },
                duplicate_percent: if self.zeros { 100 } else { 0 },
            },
            processors: self.processors.clone(),
            ..LoadSpec::new(self.access(), size)
        }
    }

    fn access(&self) -> AccessSpec {
        let read_percent = f64::from(100 - self.write_percent);
        let stride =
            self.stride_bytes.filter(|stride| *stride != self.block_bytes && self.random_percent == 0);
        let (random_percent, placement) = match stride {
            Some(stride_bytes) => (100.0, Placement::Strided { stride_bytes }),
            None => (f64::from(self.random_percent), self.placement),
        };
        let thinks = self.think_ms.is_some() && self.burst.is_some();
        AccessSpec::single(AccessLine {
            delay_ns: if thinks { u64::from(self.think_ms.unwrap_or(0)) * 1_000_000 } else { 0 },
            burst: if thinks { self.burst.unwrap_or(1) } else { 1 },
            align_bytes: common_alignment(self.align_bytes.unwrap_or(self.block_bytes), placement),
            placement,
            ..AccessLine::new(self.block_bytes, read_percent, random_percent)
        })
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
