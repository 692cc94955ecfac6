//! What an application does to its storage, seen from outside: the format of `virtbench profile`.
//!
//! [ESX Disk 2003] characterises its mail server by a table of such figures (Table 3) and models it by them
//! (section 5.2). Every figure here says where it comes from; one that could not be observed says why.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::footprint::Footprint;
use crate::host_use::HostUse;
use crate::provenance::HostFacts;

/// Version of the profile's format.
pub const PROFILE_FORMAT: u32 = 1;
/// The most different sizes a distribution keeps.
pub const MAX_SIZES: usize = 32;
/// The most workers a profile may have: a model walks through them one by one.
pub const MAX_WORKERS: u32 = 4_096;
/// How far figures that belong together may be apart, as a share: published tables are rounded.
const ROUNDING: f64 = 0.05;

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Source {
    /// The I/O accounts of the processes.
    #[serde(rename = "/proc/PID/io")]
    ProcessIo,
    /// The CPU accounts of the processes.
    #[serde(rename = "/proc/PID/stat")]
    ProcessStat,
    /// The statistics of whole block devices, `/sys/block/*/stat`, shared out by bytes.
    #[serde(rename = "block statistics")]
    BlockStatistics,
    /// Samples by the kernel's perf events, and `/proc/stat`.
    #[serde(rename = "perf events")]
    PerfEvents,
    /// Events of the block layer, through tracefs.
    #[serde(rename = "tracefs")]
    Tracefs,
    /// Worked out from other figures.
    #[serde(rename = "derived")]
    Derived,
    /// The user.
    #[serde(rename = "user")]
    User,
}

impl Source {
    /// Its name, as in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ProcessIo => "/proc/PID/io",
            Self::ProcessStat => "/proc/PID/stat",
            Self::BlockStatistics => "block statistics",
            Self::PerfEvents => "perf events",
            Self::Tracefs => "tracefs",
            Self::Derived => "derived",
            Self::User => "user",
        }
    }
}

/// A figure with its source, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Sourced<T> {
    /// It is known.
    Known {
        /// Its value.
        value: T,
        /// Where it comes from.
        source: Source,
    },
    /// It is not.
    Unavailable {
        /// Why not.
        unavailable: String,
    },
}

impl<T> Sourced<T> {
    /// A known figure.
    pub fn known(value: T, source: Source) -> Self {
        Self::Known { value, source }
    }

    /// One that is not known.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable { unavailable: why.into() }
    }

    fn not_recorded() -> Self {
        Self::unavailable("the profile was made by an earlier virtbench")
    }

    /// Its value, if it is known.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Unavailable { .. } => None,
        }
    }

    /// Its source in words, or why there is none.
    pub fn origin(&self) -> String {
        match self {
            Self::Known { source, .. } => source.name().to_owned(),
            Self::Unavailable { unavailable } => format!("unavailable: {unavailable}"),
        }
    }
}

/// Operations of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeShare {
    /// Bytes an operation; where sizes were put together, their mean.
    pub size_bytes: f64,
    /// Share of the operations, in percent.
    pub share_percent: f64,
}

/// A share of which only bounds may be known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Band {
    /// Its lower bound, in percent.
    pub low_percent: f64,
    /// Its upper bound, in percent; that of a known share is the same.
    pub high_percent: f64,
}

impl Band {
    /// A share that is known.
    #[must_use]
    pub fn exactly(percent: f64) -> Self {
        Self { low_percent: percent, high_percent: percent }
    }

    /// What [ESX Disk 2003] assumes of a file server whose randomness it cannot see (section 4): anything but
    /// sequential.
    #[must_use]
    pub fn unknown() -> Self {
        Self { low_percent: 25.0, high_percent: 100.0 }
    }

    /// Whether both bounds are the same.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self.high_percent - self.low_percent < 1e-9
    }
}

/// What the application is good for, in its own unit; proportional to its I/O rate ([ESX Disk 2003], 5.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// What is counted, such as `transactions/s`.
    pub name: String,
    /// How much there was of it.
    pub value: f64,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// Version of the format, [`PROFILE_FORMAT`].
    pub profile_format: u32,
    /// What was profiled.
    pub name: String,
    /// The machine it ran on, where virtbench saw it.
    pub host: Option<HostFacts>,
    /// What that machine did meanwhile, where virtbench ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_use: Option<HostUse>,
    /// Time that was looked at, in nanoseconds.
    pub elapsed_ns: Option<u64>,
    /// Block devices it used, by name.
    pub devices: Vec<String>,
    /// Its capacity here; where there is none the I/O rate stands for it.
    pub capacity: Option<Capacity>,
    /// Operations per second.
    pub io_per_second: Sourced<f64>,
    /// Reads per second.
    pub reads_per_second: Sourced<f64>,
    /// Writes per second.
    pub writes_per_second: Sourced<f64>,
    /// Bytes per second.
    pub bytes_per_second: Sourced<f64>,
    /// How large the operations are.
    pub sizes: Sourced<Vec<SizeShare>>,
    /// Operations that do not go on where the same worker's last one ended.
    pub random: Sourced<Band>,
    /// Threads that issue I/O.
    pub workers: Sourced<u32>,
    /// I/Os in flight at once, mean over time.
    pub outstanding_mean: Sourced<f64>,
    /// I/Os of a single worker in flight at once, not exceeded in 95 % of the time in which it has any;
    /// above 1 it does not wait for each.
    pub outstanding_peak_per_worker: Sourced<u32>,
    /// Mean response time of an operation, in nanoseconds.
    pub latency_ns: Sourced<f64>,
    /// Mean time from the end of a worker's operation to its next one, in nanoseconds.
    pub think_ns: Sourced<f64>,
    /// CPU use in user mode, in percent of one processor.
    pub cpu_user_percent: Sourced<f64>,
    /// CPU use in kernel mode, in percent of one processor.
    pub cpu_system_percent: Sourced<f64>,
    /// CPU use of the kernel's own threads meanwhile (journal, write-back), whomever they worked for, in
    /// percent of one processor.
    #[serde(default = "Sourced::<f64>::not_recorded")]
    pub cpu_kernel_threads_percent: Sourced<f64>,
    /// Bytes per second that its system calls copied, from and to files in memory too.
    #[serde(default = "Sourced::<f64>::not_recorded")]
    pub copied_bytes_per_second: Sourced<f64>,
    /// What the machine did while it was watched; what virtbench did is left out.
    #[serde(default = "Sourced::<Footprint>::not_recorded")]
    pub footprint: Sourced<Footprint>,
    /// Processors it could use.
    pub processors: Sourced<u32>,
    /// Its command with its arguments, where virtbench started it.
    #[serde(default)]
    pub command: Vec<String>,
    /// What its capacity was read from: `elapsed`, `io`, or a regular expression over its output.
    #[serde(default)]
    pub metric: Option<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A profile that no application can have.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{figure}: {why}")]
pub struct ProfileError {
    /// The figure that is wrong, as it is called in the file.
    pub figure: &'static str,
    /// What is wrong with it.
    pub why: String,
}

fn refuse(figure: &'static str, why: impl Into<String>) -> Result<(), ProfileError> {
    Err(ProfileError { figure, why: why.into() })
}

impl Profile {
    /// The I/O rate, per second. A profile that was [checked](Self::check) has one.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.io_per_second.value().copied().unwrap_or(0.0)
    }

    /// Reads among the operations, in percent, where both are known.
    #[must_use]
    pub fn read_percent(&self) -> Option<f64> {
        let (reads, writes) = (self.reads_per_second.value()?, self.writes_per_second.value()?);
        (reads + writes > 0.0).then(|| 100.0 * reads / (reads + writes))
    }

    /// The sizes, or the one that follows from bytes and operations.
    #[must_use]
    pub fn size_shares(&self) -> Option<Vec<SizeShare>> {
        if let Some(sizes) = self.sizes.value() {
            return Some(sizes.clone());
        }
        let size_bytes = self.bytes_per_second.value()? / self.rate();
        size_bytes.is_finite().then(|| vec![SizeShare { size_bytes, share_percent: 100.0 }])
    }

    /// The randomness, or the bounds of what is not known.
    #[must_use]
    pub fn random_band(&self) -> Band {
        self.random.value().copied().unwrap_or_else(Band::unknown)
    }

    /// Whether operations overlap with each other or with the application's computing.
    #[must_use]
    pub fn is_asynchronous(&self) -> bool {
        self.outstanding_peak_per_worker.value().is_some_and(|peak| *peak > 1)
    }

    /// How many operations can be in flight at once: one for each worker, or as many as it was seen to keep
    /// outstanding.
    #[must_use]
    pub fn concurrency(&self) -> Option<u32> {
        let workers = self.workers.value().copied()?;
        let depth = self.outstanding_peak_per_worker.value().copied().unwrap_or(1);
        Some(workers.saturating_mul(depth.max(1)).clamp(1, MAX_WORKERS))
    }

    /// The capacity, or the I/O rate in its place.
    #[must_use]
    pub fn capacity(&self) -> Capacity {
        self.capacity
            .clone()
            .unwrap_or_else(|| Capacity { name: "I/O per second".into(), value: self.rate() })
    }

    /// Whether an application can be so.
    ///
    /// # Errors
    /// The first figure that cannot be, by its name.
    pub fn check(&self) -> Result<(), ProfileError> {
        self.check_each()?;
        self.check_sums()?;
        self.check_time()
    }

    /// The profile, without response time where that contradicts the rest: others use the device too, and its accounts tell
    /// nobody's operations apart.
    ///
    /// # Errors
    /// The figures contradict each other without it as well.
    pub fn without_contradiction(mut self) -> Result<Self, ProfileError> {
        if let Err(contradiction) = self.check()
            && self.latency_ns.value().is_some()
        {
            self.latency_ns =
                Sourced::unavailable(format!("others used the device meanwhile: {contradiction}"));
            self.check()?;
        }
        Ok(self)
    }

    /// The profile with as many workers as the user names. Of operations whose begin and end were seen, one that takes longer than
    /// so many workers can spend on each tells that they keep several in flight; they think no longer than what is left.
    ///
    /// # Errors
    /// The figures contradict each other with so many, and none of them was seen to be otherwise.
    pub fn with_workers(mut self, workers: u32) -> Result<Self, ProfileError> {
        self.workers = Sourced::known(workers, Source::User);
        let cycle_ns = f64::from(workers) / self.rate() * 1e9;
        match self.latency_ns {
            Sourced::Known { value: latency_ns, source: Source::Tracefs } => {
                let seen = self.outstanding_peak_per_worker.value().copied().unwrap_or(1);
                if latency_ns > cycle_ns && seen < 2 {
                    self.outstanding_peak_per_worker = Sourced::known(2, Source::Derived);
                }
                if let Sourced::Known { value: think_ns, .. } = &mut self.think_ns {
                    *think_ns = think_ns.min((cycle_ns - latency_ns).max(0.0));
                }
            }
            Sourced::Known { source: Source::BlockStatistics, .. } => return self.without_contradiction(),
            _ => {}
        }
        self.check()?;
        Ok(self)
    }

    fn check_each(&self) -> Result<(), ProfileError> {
        match self.io_per_second.value() {
            Some(rate) if *rate > 0.0 && rate.is_finite() => {}
            // What it does is told by its capacity.
            Some(rate) if *rate == 0.0 && self.capacity.is_some() => {}
            Some(rate) => refuse("io_per_second", format!("{rate} is no rate: there is nothing to predict"))?,
            None => refuse("io_per_second", "it must be known")?,
        }
        let numbers = [
            ("reads_per_second", &self.reads_per_second),
            ("writes_per_second", &self.writes_per_second),
            ("bytes_per_second", &self.bytes_per_second),
            ("outstanding_mean", &self.outstanding_mean),
            ("latency_ns", &self.latency_ns),
            ("think_ns", &self.think_ns),
            ("cpu_user_percent", &self.cpu_user_percent),
            ("cpu_system_percent", &self.cpu_system_percent),
            ("cpu_kernel_threads_percent", &self.cpu_kernel_threads_percent),
            ("copied_bytes_per_second", &self.copied_bytes_per_second),
        ];
        for (name, figure) in numbers {
            if let Some(value) = figure.value().filter(|value| !(value.is_finite() && **value >= 0.0)) {
                refuse(name, format!("{value} is below zero or no number"))?;
            }
        }
        if let Some(workers) = self.workers.value().filter(|workers| !(1..=MAX_WORKERS).contains(*workers)) {
            refuse("workers", format!("{workers} is not between 1 and {MAX_WORKERS}"))?;
        }
        if let Some(capacity) = self.capacity.as_ref().filter(|c| !(c.value.is_finite() && c.value > 0.0)) {
            refuse("capacity", format!("{} is not above zero", capacity.value))?;
        }
        let Band { low_percent, high_percent } = self.random_band();
        if !(low_percent >= 0.0 && low_percent <= high_percent && high_percent <= 100.0) {
            refuse("random", format!("{low_percent} to {high_percent} % is no part of 0 to 100 %"))?;
        }
        Ok(())
    }

    fn check_sums(&self) -> Result<(), ProfileError> {
        let rate = self.rate();
        let apart = |a: f64, b: f64| (a - b).abs() > ROUNDING * a.abs().max(b.abs());
        if let (Some(reads), Some(writes)) = (self.reads_per_second.value(), self.writes_per_second.value())
            && apart(reads + writes, rate)
        {
            refuse(
                "io_per_second",
                format!("{reads} reads and {writes} writes per second are {}, not {rate}", reads + writes),
            )?;
        }
        let Some(sizes) = self.sizes.value() else { return Ok(()) };
        if sizes.is_empty() || sizes.len() > MAX_SIZES {
            refuse("sizes", format!("there are {}; between 1 and {MAX_SIZES} can be", sizes.len()))?;
        }
        if let Some(size) = sizes
            .iter()
            .find(|size| !(size.size_bytes >= 1.0 && size.size_bytes.is_finite() && size.share_percent > 0.0))
        {
            refuse(
                "sizes",
                format!("{} bytes at {} %: both must be above zero", size.size_bytes, size.share_percent),
            )?;
        }
        let shares: f64 = sizes.iter().map(|size| size.share_percent).sum();
        if (shares - 100.0).abs() > 1.0 {
            refuse("sizes", format!("their shares add up to {shares} %, not 100"))?;
        }
        let mean = sizes.iter().map(|size| size.size_bytes * size.share_percent).sum::<f64>() / shares;
        if let Some(bytes) = self.bytes_per_second.value()
            && apart(mean * rate, *bytes)
        {
            refuse(
                "bytes_per_second",
                format!(
                    "{rate} operations per second of {mean:.0} bytes on average are {:.0}, not {bytes}",
                    mean * rate
                ),
            )?;
        }
        Ok(())
    }

    /// Little's law: what is in flight at once is rate times time, and no worker is in two places.
    fn check_time(&self) -> Result<(), ProfileError> {
        let rate = self.rate();
        let latency_ns = self.latency_ns.value().copied().unwrap_or(0.0);
        let think_ns = self.think_ns.value().copied().unwrap_or(0.0);
        if let (Some(workers), false) = (self.workers.value(), self.is_asynchronous()) {
            let cycle_ns = f64::from(*workers) / rate * 1e9;
            if latency_ns + think_ns > cycle_ns * (1.0 + ROUNDING) {
                refuse(
                    "workers",
                    format!(
                        "{workers} workers at {rate} I/O per second leave {:.3} ms an operation, but response and \
                         think time take {:.3} ms (Little's law)",
                        cycle_ns / 1e6,
                        (latency_ns + think_ns) / 1e6
                    ),
                )?;
            }
        }
        let cpu: f64 =
            [&self.cpu_user_percent, &self.cpu_system_percent].into_iter().filter_map(Sourced::value).sum();
        match self.processors.value() {
            Some(0) => refuse("processors", "there must be one"),
            Some(processors) if cpu > 100.0 * f64::from(*processors) * (1.0 + ROUNDING) => refuse(
                "cpu_user_percent",
                format!("with cpu_system_percent it is {cpu} % of one processor, and there are {processors}"),
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
