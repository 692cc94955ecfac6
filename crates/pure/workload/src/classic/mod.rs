//! Classic workloads ([Multi-VM 2010]; [VirtualFence 2013], section 4.3; [ESX Disk 2003], section 4): what is run, how often, and
//! under which circumstances.
//!
//! A [`WorkloadSpec`] is what every workload has in common, its [`Workload`] what only one has. Both
//! have a notation for command lines, `memory:threads=2,runs=5`, read by [`parse_workload`].

mod kinds;
mod notation;

use serde::{Deserialize, Serialize};
use virtbench_units::{format_bytes, format_duration_ns};

pub use kinds::{
    CommandSpec, CpuKernel, CpuSpec, MemoryKernel, MemorySpec, Stores, SystemKernel, SystemPart, SystemSpec,
    WorkloadError,
};
use kinds::{check, plain};
pub use notation::{WorkloadSyntaxError, names_command, parse_workload, with_options};

use crate::files::FileSpec;
use crate::load::is_default;

/// The most threads a workload can have.
pub const MAX_THREADS: u32 = 1024;
/// The most rounds.
const MAX_RUNS: u32 = 10_000;
/// The most ballast, in bytes.
const MAX_BALLAST_BYTES: u64 = 1 << 44;
/// The longest time of anything: a week.
const MAX_TIME_NS: u64 = 7 * 24 * 3_600_000_000_000;

/// What is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Memory throughput: COPY, SCALE, ADD and TRIAD ([Multi-VM 2010], section 4).
    Memory(MemorySpec),
    /// A suite of computations ([Multi-VM 2010], section 3).
    Cpu(CpuSpec),
    /// Files in a folder ([Multi-VM 2010], section 5; [VirtualFence 2013], section 4.3; [ESX Disk 2003], section 4).
    Files(FileSpec),
    /// What the kernel does for applications, piece by piece ([ESX Disk 2003], section 5.3: V of system code).
    System(SystemSpec),
    /// Somebody else's program. It has no notation: a command line says it.
    Command(CommandSpec),
}

impl Workload {
    /// Its name in the notation and in records.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Cpu(_) => "cpu",
            Self::Files(files) => files.load.name(),
            Self::System(_) => "system",
            Self::Command(_) => "command",
        }
    }

    /// Whether it needs a folder or a disk.
    #[must_use]
    pub fn needs_storage(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Cpu(_) => false,
            Self::Files(_) | Self::System(_) | Self::Command(_) => true,
        }
    }

    /// How long one run takes, in nanoseconds, where that is known beforehand.
    #[must_use]
    pub fn run_ns(&self) -> Option<u64> {
        match self {
            Self::Memory(memory) => Some(memory.run_ns()),
            Self::Cpu(cpu) => Some(cpu.kernel_ns.saturating_mul(cpu.kernels.len() as u64)),
            Self::Files(files) => files.is_timed().then_some(files.run_ns),
            Self::System(system) => Some(system.kernel_ns.saturating_mul(system.kernels.len() as u64)),
            Self::Command(_) => None,
        }
    }

    /// Threads or clients; 0 stands for as many as there are processors.
    #[must_use]
    pub fn threads(&self) -> u32 {
        match self {
            Self::Memory(memory) => memory.threads,
            Self::Cpu(cpu) => cpu.threads,
            Self::Files(files) => files.load.threads(),
            Self::System(_) | Self::Command(_) => 1,
        }
    }
}

/// A workload as one machine runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadSpec {
    /// What is run.
    pub workload: Workload,
    /// How often it is run before measuring, so that what it reads is in memory as far as there is room.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warm_ups: u32,
    /// How often it is run, one sample of every figure each ([Multi-VM 2010]: five).
    pub runs: u32,
    /// Instead of `runs`: it is run again and again until this time has passed, in nanoseconds, so
    /// that it disturbs others for as long as they are measured. A run that is cut gives no sample of
    /// what it had not finished.
    pub time_ns: Option<u64>,
    /// Time before measuring in which it is run and not recorded, in nanoseconds.
    pub ramp_ns: u64,
    /// The longest that it may take, in nanoseconds; what is not done by then is not recorded.
    pub limit_ns: u64,
    /// Length of an interval of the series, in nanoseconds.
    pub interval_ns: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Memory that is kept resident meanwhile, in bytes, so that none is left for caches.
    pub ballast_bytes: u64,
    /// Whether the page cache is emptied before every run.
    pub drop_caches: bool,
    /// Whether the machine's processors are sampled, to tell which of the kernel's functions take the time; a thousand
    /// samples a second take about a thousandth of it.
    #[serde(default)]
    pub sample: bool,
    /// Whether its system calls are counted, which makes each of them slower.
    #[serde(default)]
    pub count: bool,
}

impl WorkloadSpec {
    /// A workload with everything else as it is when nobody says otherwise: five runs, no ramp-up, at
    /// most an hour, intervals of 500 ms, no ballast.
    #[must_use]
    pub fn new(workload: Workload) -> Self {
        Self {
            workload,
            warm_ups: 0,
            runs: 5,
            time_ns: None,
            ramp_ns: 0,
            limit_ns: 3_600_000_000_000,
            interval_ns: 500_000_000,
            seed: 1,
            ballast_bytes: 0,
            drop_caches: false,
            sample: false,
            count: false,
        }
    }

    /// As it is recorded with its outcome: a loadfile's operations are left out.
    #[must_use]
    pub fn recorded(&self) -> Self {
        match &self.workload {
            Workload::Files(files) => Self { workload: Workload::Files(files.recorded()), ..self.clone() },
            _ => self.clone(),
        }
    }

    /// The longest that measuring may take, in nanoseconds.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.time_ns.unwrap_or(self.limit_ns)
    }

    /// The longest that it may take until measuring begins, in nanoseconds.
    #[must_use]
    pub fn longest_before_ns(&self) -> u64 {
        self.ramp_ns.saturating_add(self.longest_ns().saturating_mul(self.warm_ups.into()))
    }

    /// How long measuring is likely to take, in nanoseconds: as long as it may where that is unknown.
    #[must_use]
    pub fn expected_ns(&self) -> u64 {
        let runs_ns = self.workload.run_ns().map(|run_ns| run_ns.saturating_mul(self.runs.into()));
        self.time_ns.or(runs_ns).unwrap_or(self.limit_ns).min(self.longest_ns())
    }

    /// Checks every field against its limits.
    ///
    /// # Errors
    /// The first thing found wrong, naming the key to change.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        check("warm-ups", self.warm_ups.into(), 0, MAX_RUNS.into(), plain)?;
        check("runs", self.runs.into(), 1, MAX_RUNS.into(), plain)?;
        check("ramp", self.ramp_ns, 0, MAX_TIME_NS, format_duration_ns)?;
        check("time", self.time_ns.unwrap_or(MAX_TIME_NS), 1_000_000, MAX_TIME_NS, format_duration_ns)?;
        check("limit", self.limit_ns, 1_000_000, MAX_TIME_NS, format_duration_ns)?;
        check("interval", self.interval_ns, 1_000_000, MAX_TIME_NS, format_duration_ns)?;
        check("ballast", self.ballast_bytes, 0, MAX_BALLAST_BYTES, format_bytes)?;
        check("threads", self.workload.threads().into(), 0, MAX_THREADS.into(), plain)?;
        match &self.workload {
            Workload::Memory(memory) => memory.validate(),
            Workload::Cpu(cpu) => cpu.validate(),
            Workload::Files(files) => Ok(files.validate()?),
            Workload::System(system) => system.validate(),
            Workload::Command(command) => command.validate(),
        }
    }
}
