//! A job while its options are read, and the load it becomes.

use virtbench_workload::{
    AccessLine, AccessSpec, Arrivals, Content, EngineKind, LoadSpec, Placement, Rate, UringOptions,
};

use super::super::{ASSUMED_REGION_BYTES, Findings, ImportedJob, Place, common_alignment};
use super::values::{bytes, integer};

/// Measuring time of a job without one, in nanoseconds.
const DEFAULT_TIME_NS: u64 = 5_000_000_000;
/// fio's block size where none is given, in bytes.
const DEFAULT_BLOCK_BYTES: u64 = 4096;
/// The most sizes of one direction (fio's own limit).
const MAX_SPLIT: usize = 64;
const READ: usize = 0;
const WRITE: usize = 1;
const TRIM: usize = 2;

/// The `rw` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    random: bool,
    reads: bool,
    writes: bool,
    trims: bool,
    /// Bytes left out after each sequential operation.
    hole_bytes: u64,
}

impl Pattern {
    /// Reads `randrw`, `write:4k` and the like.
    pub fn read(text: &str) -> Result<Self, String> {
        let (name, modifier) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let (random, kind) = name.strip_prefix("rand").map_or((false, name), |kind| (true, kind));
        let (reads, writes, trims) = match kind {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "rw" | "readwrite" => (true, true, false),
            "trim" => (false, false, true),
            _ => return Err("this pattern is not known here".into()),
        };
        let hole_bytes = match modifier {
            None => 0,
            Some(_) if random => {
                return Err("several operations at one random place cannot be asked for".into());
            }
            Some(hole) => bytes(hole).ok_or("the hole is not a size in bytes")?,
        };
        Ok(Self { random, reads, writes, trims, hole_bytes })
    }
}

/// The `ioengine` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Blocking calls.
    Sync,
    /// io_uring itself.
    IoUring,
    /// Another asynchronous interface, for which io_uring stands in.
    Libaio,
    /// No I/O.
    Null,
    /// A client of NBD.
    Nbd,
    /// A client of virtio devices.
    Libblkio,
}

impl Engine {
    /// Reads the engine's name.
    pub fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Self::Sync,
            "io_uring" => Self::IoUring,
            "libaio" => Self::Libaio,
            "null" => Self::Null,
            "nbd" => Self::Nbd,
            "libblkio" => Self::Libblkio,
            _ => {
                return Err(
                    "known are io_uring, libaio, sync, psync, vsync, pvsync, pvsync2, null, nbd, libblkio"
                        .into(),
                );
            }
        })
    }
}

/// Sizes with their shares, in percent.
type Split = Vec<(u64, f64)>;

/// The options of a job, with fio's defaults.
#[derive(Debug, Clone)]
#[allow(missing_docs, clippy::struct_excessive_bools)]
pub struct Draft {
    pub pattern: Pattern,
    pub read_percent: f64,
    splits: [Split; 3],
    pub align: Option<u64>,
    pub depth: u32,
    pub workers: u32,
    pub size_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub filename: Option<String>,
    pub directory: Option<String>,
    pub address: Option<String>,
    pub driver: Option<String>,
    pub time_ns: Option<u64>,
    pub time_based: bool,
    pub ramp_ns: u64,
    pub think_ns: u64,
    pub think_blocks: u32,
    pub rate_iops: [Option<u64>; 3],
    pub rate_bytes: [Option<u64>; 3],
    pub poisson: bool,
    pub random_percent: f64,
    pub placement: Placement,
    pub direct: bool,
    pub engine: Engine,
    pub flush_every: Option<u32>,
    pub verify: bool,
    pub seed: Option<u64>,
    pub stonewall: bool,
    pub uring: UringOptions,
    pub processors: Vec<u32>,
    pub processors_split: bool,
    pub compressible_percent: u64,
    pub duplicate_percent: u64,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            pattern: Pattern { random: false, reads: true, writes: false, trims: false, hole_bytes: 0 },
            read_percent: 50.0,
            splits: [(); 3].map(|()| vec![(DEFAULT_BLOCK_BYTES, 100.0)]),
            align: None,
            depth: 1,
            workers: 1,
            size_bytes: None,
            file_bytes: None,
            filename: None,
            directory: None,
            address: None,
            driver: None,
            time_ns: None,
            time_based: false,
            ramp_ns: 0,
            think_ns: 0,
            think_blocks: 1,
            rate_iops: [None; 3],
            rate_bytes: [None; 3],
            poisson: false,
            random_percent: 100.0,
            placement: Placement::Uniform,
            direct: false,
            engine: Engine::Sync,
            flush_every: None,
            verify: false,
            seed: None,
            stonewall: false,
            uring: UringOptions::default(),
            processors: Vec::new(),
            processors_split: false,
            compressible_percent: 0,
            duplicate_percent: 0,
        }
    }
}

impl Draft {
    /// Sets the block size of reads, writes and trims.
    pub fn set_block_sizes(&mut self, sizes: [Option<u64>; 3]) {
        self.splits = sizes.map(|size| vec![(size.unwrap_or(DEFAULT_BLOCK_BYTES), 100.0)]);
    }

    /// Sets the mix of block sizes, such as `4k/10:64k/50:32k/`.
    pub fn set_split(&mut self, text: &str) -> Result<(), String> {
        let parts = super::values::by_direction(text).ok_or("more than three mixes")?;
        for (split, part) in self.splits.iter_mut().zip(parts) {
            if let Some(part) = part {
                *split = read_split(part)?;
            }
        }
        Ok(())
    }

    /// The job, with notes on what differs from fio.
    pub fn finish(self, name: &str, at: Place, group: u32, findings: &mut Findings) -> ImportedJob {
        let access = self.access();
        let rate = self.rate(&access, at, findings);
        let target = self.target(name, at, findings);
        let (engine, outstanding) = self.engine(findings);
        let time_ns = self.time_ns.filter(|time| *time > 0);
        match (time_ns, self.time_based) {
            (None, _) => findings.note(format!(
                "[{name}] has no runtime: fio would stop after its size, here it runs for {} s (see --time)",
                DEFAULT_TIME_NS / 1_000_000_000
            )),
            (Some(_), false) => findings.note(format!(
                "[{name}] is not time_based: fio could stop earlier, here it runs for its runtime"
            )),
            _ => {}
        }
        if !self.processors.is_empty() && !self.processors_split {
            findings.note(format!("[{name}] workers are pinned to the allowed processors in turn"));
        }
        if self.verify {
            findings.note("blocks are verified with a header of virtbench's own, as they are read");
        }
        let load = LoadSpec {
            outstanding,
            workers: self.workers,
            ramp_ns: self.ramp_ns,
            time_ns: time_ns.unwrap_or(DEFAULT_TIME_NS),
            engine,
            direct: self.direct,
            seed: self.seed.unwrap_or(1),
            rate,
            flush_every: self.flush_every,
            content: Content {
                compressible_percent: u8::try_from(self.compressible_percent).unwrap_or(100),
                duplicate_percent: u8::try_from(self.duplicate_percent).unwrap_or(100),
            },
            verify: self.verify,
            uring: self.uring,
            processors: self.processors,
            ..LoadSpec::new(access, self.size_bytes.or(self.file_bytes).unwrap_or(ASSUMED_REGION_BYTES))
        };
        let size_bytes = self.size_bytes.or(self.file_bytes);
        ImportedJob { name: name.to_owned(), load, target, size_bytes, group }
    }

    /// The mix: one line where reads and writes have one size, otherwise a line for each.
    fn access(&self) -> AccessSpec {
        let Pattern { reads, writes, trims, random, hole_bytes } = self.pattern;
        let read_percent = match (reads, writes || trims) {
            (true, true) => self.read_percent,
            (true, false) => 100.0,
            _ => 0.0,
        };
        let other = if trims { TRIM } else { WRITE };
        let line = |size_bytes: u64, share_percent: f64, read_percent: f64| {
            let (random_percent, placement) = match (random, hole_bytes) {
                (true, _) => (self.random_percent, self.placement),
                (false, 0) => (0.0, Placement::Uniform),
                (false, hole) => {
                    (100.0, Placement::Strided { stride_bytes: size_bytes.saturating_add(hole) })
                }
            };
            AccessLine {
                share_percent,
                delay_ns: self.think_ns,
                burst: if self.think_ns > 0 { self.think_blocks } else { 1 },
                align_bytes: common_alignment(self.align.unwrap_or(size_bytes), placement),
                trim_percent: if trims { 100.0 } else { 0.0 },
                placement,
                ..AccessLine::new(size_bytes, read_percent, random_percent)
            }
        };
        let used = |direction: usize, percent: f64| (percent > 0.0).then(|| &self.splits[direction]);
        let lines = match (used(READ, read_percent), used(other, 100.0 - read_percent)) {
            (Some(read), Some(written)) if read != written => {
                let reads = read.iter().map(|(size, share)| line(*size, share * read_percent / 100.0, 100.0));
                let writes = written
                    .iter()
                    .map(|(size, share)| line(*size, share * (100.0 - read_percent) / 100.0, 0.0));
                reads.chain(writes).collect()
            }
            (Some(split), _) | (None, Some(split)) => {
                split.iter().map(|(size, share)| line(*size, *share, read_percent)).collect()
            }
            (None, None) => Vec::new(),
        };
        AccessSpec { lines }
    }

    /// The rate of all clones together, if one is set. fio limits each direction by itself.
    #[allow(clippy::cast_precision_loss)]
    fn rate(&self, access: &AccessSpec, at: Place, findings: &mut Findings) -> Option<Rate> {
        let smallest =
            |direction: usize| self.splits[direction].iter().map(|(size, _)| *size).min().unwrap_or(1);
        let limit = |direction: usize| match (self.rate_iops[direction], self.rate_bytes[direction]) {
            (Some(iops), _) if iops > 0 => Some(iops as f64),
            (_, Some(rate)) if rate > 0 => Some(rate as f64 / smallest(direction).max(1) as f64),
            _ => None,
        };
        let other = if self.pattern.trims { TRIM } else { WRITE };
        let (reads, writes) = (access.reads(), access.writes());
        let (per_clone, fits) = match (limit(READ).filter(|_| reads), limit(other).filter(|_| writes)) {
            (None, None) => return None,
            (Some(read), Some(write)) => {
                let share = self.read_percent / 100.0;
                (read + write, (read * (1.0 - share) - write * share).abs() <= 0.01 * (read + write))
            }
            (Some(one), None) | (None, Some(one)) => (one, !(reads && writes)),
        };
        if !fits {
            findings.ignore(
                at,
                "rates that limit reads and writes in another ratio than rwmixread: one rate holds for both here",
            );
        }
        findings.note(
            "fio issues no more than iodepth operations under a rate; here they arrive at the rate, \
             and latency counts from when each was due",
        );
        let arrivals = if self.poisson { Arrivals::Poisson } else { Arrivals::Constant };
        Some(Rate { per_second: per_clone * f64::from(self.workers), arrivals })
    }

    fn target(&self, name: &str, at: Place, findings: &mut Findings) -> Option<String> {
        match self.engine {
            Engine::Null => return Some("null".into()),
            Engine::Nbd => return self.address.clone(),
            Engine::Libblkio => {
                if self.driver.as_deref() != Some("virtio-blk-vhost-user") {
                    findings.ignore(at, "libblkio: only the driver virtio-blk-vhost-user is known here");
                    return None;
                }
                return self.address.as_ref().map(|path| format!("vhost-user:{path}"));
            }
            Engine::Sync | Engine::IoUring | Engine::Libaio => {}
        }
        if self.filename.is_none() && self.workers > 1 {
            findings.note(format!("[{name}] fio would give each of its clones a file; here they share one"));
        }
        let directory = self.directory.as_deref().map(|folder| folder.trim_end_matches('/'));
        match (&self.filename, directory) {
            (Some(file), Some(folder)) if !file.starts_with('/') => Some(format!("{folder}/{file}")),
            (Some(file), _) => Some(file.clone()),
            (None, Some(folder)) => Some(format!("{folder}/{name}.0.0")),
            (None, None) => None,
        }
    }

    fn engine(&self, findings: &mut Findings) -> (EngineKind, u32) {
        match self.engine {
            Engine::Sync => {
                if self.depth > 1 {
                    findings.note(format!(
                        "iodepth={} has no effect with a synchronous engine, as in fio",
                        self.depth
                    ));
                }
                (EngineKind::Psync, 1)
            }
            Engine::Libaio => {
                findings.note("io_uring stands in for libaio");
                (EngineKind::IoUring, self.depth)
            }
            _ => (EngineKind::IoUring, self.depth),
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn read_split(text: &str) -> Result<Split, String> {
    let mut entries: Vec<(u64, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        if entries.len() == MAX_SPLIT {
            return Err(format!("more than {MAX_SPLIT} sizes"));
        }
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let size = bytes(size).filter(|size| *size > 0).ok_or("not a size in bytes")?;
        let share = match share.trim() {
            "" => None,
            share => {
                Some(integer(share).filter(|n| *n <= 100).ok_or("a share lies between 0 and 100")? as f64)
            }
        };
        entries.push((size, share));
    }
    let given: f64 = entries.iter().filter_map(|(_, share)| *share).sum();
    let open = entries.iter().filter(|(_, share)| share.is_none()).count();
    if given > 100.0 || (open == 0 && given < 100.0) {
        return Err(format!("the shares add up to {given} %, not 100 %"));
    }
    let each = if open > 0 { (100.0 - given) / open as f64 } else { 0.0 };
    Ok(entries
        .into_iter()
        .map(|(size, share)| (size, share.unwrap_or(each)))
        .filter(|(_, share)| *share > 0.0)
        .collect())
}
