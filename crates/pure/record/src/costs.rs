//! What the same work costs on two machines, piece by piece: user code, kernel code, copying, waiting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::footprint::Footprint;
use crate::provenance::HostFacts;

/// Version of the format.
pub const COSTS_FORMAT: u32 = 4;

/// What a piece of work is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostPart {
    /// User code.
    User,
    /// Kernel code that moves little data.
    System,
    /// Moving bytes between the kernel and an application; times are those of one byte.
    Copy,
    /// Waiting until the disk has made something stable; processor time is left out.
    Wait,
}

/// The time of one piece of work on both machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub part: CostPart,
    /// Its time on the reference, in nanoseconds.
    pub reference_ns: f64,
    /// Its time on the subject, in nanoseconds.
    pub subject_ns: f64,
}

/// What work costs on two machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Costs {
    /// Version of the format, [`COSTS_FORMAT`].
    pub costs_format: u32,
    /// Of which platform they are, where they are to be used on other hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<CostsOrigin>,
    /// The host of both, or of the reference.
    pub host: HostFacts,
    /// The subject's adapter.
    pub adapter: String,
    /// What executes the subject's instructions.
    pub accelerator: String,
    /// Its processors.
    pub vcpus: u32,
    /// The pieces.
    pub costs: Vec<Cost>,
    /// Pieces of user code, each in as many threads as the subject has processors; times are those of one thread.
    #[serde(default)]
    pub crowded: Vec<Cost>,
    /// Reference applications.
    #[serde(default)]
    pub references: Vec<Reference>,
    /// What could not be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Where costs come from that others may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostsOrigin {
    /// What the platform is called, such as `uml` or `kvm-epyc`.
    pub platform: String,
    /// The day on which they were measured, such as `2026-11-30`.
    pub measured: String,
}

/// A piece of work or a reference application that has no times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why not.
    pub why: String,
}

/// The least and the most that a factor may be: the time in the VM as a multiple of the native one.
///
/// A VM shares the host's processors, memory and disk. It computes and copies no faster than they do: what is
/// below 1 is chance and the clock frequency, a factor of 4 at most. Its kernel is another build than the
/// host's and may do without checks that the host's makes, and a flush ends in one of the same disk,
/// which may have been slow for a while when the native side was measured: 10. Upwards emulation costs up
/// to some hundred instructions for one, and a flush of a disk that answers in 10 us may wait 100 ms for
/// another program's: 10,000.
fn possible(part: CostPart) -> [f64; 2] {
    const MOST: f64 = 10_000.0;
    match part {
        CostPart::User | CostPart::Copy => [0.25, MOST],
        CostPart::System | CostPart::Wait => [0.1, MOST],
    }
}

/// What an application did on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReferenceRun {
    /// Its throughput, per second.
    pub per_second: f64,
    /// What the machine did meanwhile.
    pub footprint: Footprint,
}

/// Processor time of a run below this is within the grain of the kernel's accounts, in nanoseconds.
const GRAIN_NS: u64 = 100_000_000;

impl ReferenceRun {
    /// Operations that it made.
    #[must_use]
    pub fn operations(&self) -> f64 {
        self.footprint.elapsed_ns as f64 / 1e9 * self.per_second
    }

    /// Takes over what was counted in another run of the same, as much as belongs to its own operations.
    pub fn take_crossings(&mut self, counted: &Self) {
        let times = self.operations() / counted.operations();
        self.footprint.crossings = counted.footprint.crossings.map(|crossings| crossings.scaled(times));
    }

    /// Takes over how long the user code of another run of the same took under a translator, as much as belongs to its own operations.
    pub fn take_translation(&mut self, translated: &Self) {
        let times = self.operations() / translated.operations();
        self.footprint.translated_ns = scaled_ns(translated.footprint.cpu_ns[0], times);
    }

    /// Takes over how many times as long the user code of another run of the same took under a translator.
    pub fn keep_translation(&mut self, earlier: &Self) {
        let times = earlier.footprint.translation();
        self.footprint.translated_ns = times.and_then(|times| scaled_ns(self.footprint.cpu_ns[0], times));
    }

    /// Processor time of an operation in seconds, by the place in [`Footprint::cpu_ns`]. `None` where it is less than the
    /// kernel's accounts can tell.
    #[must_use]
    pub fn cpu_s(&self, place: usize) -> Option<f64> {
        let Footprint { elapsed_ns, cpu_ns, .. } = &self.footprint;
        let known = cpu_ns[place] >= GRAIN_NS && *elapsed_ns > 0;
        known.then(|| cpu_ns[place] as f64 / 1e9 / self.operations())
    }
}

/// So many times as long; nothing where that is no time.
#[must_use]
pub fn scaled_ns(ns: u64, times: f64) -> Option<u64> {
    let seconds = std::time::Duration::from_nanos(ns).as_secs_f64() * times;
    std::time::Duration::try_from_secs_f64(seconds).ok().and_then(|time| u64::try_from(time.as_nanos()).ok())
}

/// An application that was run on both machines, so that others can be compared with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// Its threads.
    pub workers: u32,
    /// On the reference.
    pub reference: ReferenceRun,
    /// On the subject.
    pub subject: ReferenceRun,
}

/// Costs that cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{name}: {why}")]
pub struct CostsError {
    /// What is wrong.
    pub name: String,
    /// What is impossible.
    pub why: String,
}

/// Functions with less than this share of a kernel's time are put together where costs are to be used elsewhere.
const LEAST_SHARE: f64 = 0.002;

/// What those are called.
const REST: &str = "others";

/// The greatest functions by name, and the time of all others together.
fn greatest(functions: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let all: u64 = functions.values().sum();
    let mut kept = BTreeMap::new();
    for (name, ns) in functions {
        let name = if *ns as f64 >= LEAST_SHARE * all as f64 { name } else { REST };
        *kept.entry(name.to_owned()).or_default() += *ns;
    }
    kept
}

impl Costs {
    /// The same for use on other hosts, as the costs of a platform of this name.
    #[must_use]
    pub fn exported(mut self, origin: CostsOrigin) -> Self {
        for reference in &mut self.references {
            for run in [&mut reference.reference, &mut reference.subject] {
                run.footprint.functions = greatest(&run.footprint.functions);
            }
        }
        Self { origin: Some(origin), ..self }
    }

    /// How many times as long each piece takes with every processor of the subject's number busy, on the reference and on
    /// the subject; by the piece's name.
    pub fn slowdowns(&self) -> impl Iterator<Item = (&str, [f64; 2])> {
        self.crowded.iter().filter_map(|many| {
            let alone = self.costs.iter().find(|one| one.part == many.part && one.name == many.name)?;
            let slower = [many.reference_ns / alone.reference_ns, many.subject_ns / alone.subject_ns];
            Some((many.name.as_str(), slower))
        })
    }

    /// What of them could not be measured, for a reader of what follows from them; nothing where all was.
    #[must_use]
    pub fn caution(&self) -> Option<String> {
        let names: Vec<&str> = self.left_out.iter().map(|one| one.name.as_str()).collect();
        (!names.is_empty()).then(|| {
            format!("The costs are incomplete: {} could not be measured ({}).", names.len(), names.join(", "))
        })
    }

    /// Whether times can be so. Waiting may be missing: it may be too short to be told.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), CostsError> {
        let refuse = |name: &str, why: String| Err(CostsError { name: name.to_owned(), why });
        if self.costs_format > COSTS_FORMAT {
            let found = self.costs_format;
            return refuse("costs_format", format!("{found}, this version reads up to {COSTS_FORMAT}"));
        }
        if self.vcpus == 0 {
            return refuse("vcpus", "there must be one".into());
        }
        for cost in self.costs.iter().chain(&self.crowded) {
            for time_ns in [cost.reference_ns, cost.subject_ns] {
                if !(time_ns.is_finite() && time_ns > 0.0) {
                    return refuse(&cost.name, format!("{time_ns} ns is no time"));
                }
            }
            check_factor(&cost.name, cost.part, cost.reference_ns, cost.subject_ns)?;
        }
        for Reference { name, reference, subject, .. } in &self.references {
            for per_second in [reference.per_second, subject.per_second] {
                if !(per_second.is_finite() && per_second > 0.0) {
                    return refuse(name, format!("{per_second} a second is no rate"));
                }
            }
            // It may wait more than it computes.
            let [here_ns, there_ns] = [1e9 / reference.per_second, 1e9 / subject.per_second];
            check_factor(name, CostPart::Wait, here_ns, there_ns)?;
        }
        for part in [CostPart::User, CostPart::System, CostPart::Copy] {
            if !self.costs.iter().any(|cost| cost.part == part) {
                return refuse("costs", format!("none is of {part:?}"));
            }
        }
        Ok(())
    }
}

/// Refuses a factor that no VM has.
fn check_factor(name: &str, part: CostPart, reference_ns: f64, subject_ns: f64) -> Result<(), CostsError> {
    let [least, most] = possible(part);
    let factor = subject_ns / reference_ns;
    if (least..=most).contains(&factor) {
        return Ok(());
    }
    let times = if factor < 1.0 { 1.0 / factor } else { factor };
    let than = if factor < 1.0 { "shorter" } else { "longer" };
    let bound = if factor < 1.0 { 1.0 / least } else { most };
    let why = format!(
        "{subject_ns:.0} ns in the VM are {times:.0} times {than} than {reference_ns:.0} ns natively, and at most \
         {bound:.0} times is possible: measure the costs again, with nothing else running"
    );
    Err(CostsError { name: name.to_owned(), why })
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;
