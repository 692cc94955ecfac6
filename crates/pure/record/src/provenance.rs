//! Where a run's figures come from: `run.json`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::appliance::{ApplianceRoot, CrossingCost};
use crate::host_use::{HostTuning, IdleBaseline};
use crate::plan::Plan;
use crate::point::{RecordError, check_format};
use crate::setup::SetupFacts;

/// Ends the note of a measurement whose storage is a file system in memory.
pub const IN_MEMORY: &str = "this is memory, not a disk";

/// The storage under the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskFacts {
    /// File system type, such as `ext4`.
    pub filesystem: String,
    /// Block device under it, where it could be found.
    pub device: Option<String>,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// Its I/O scheduler.
    pub scheduler: Option<String>,
    /// Its write cache mode.
    pub write_cache: Option<String>,
}

/// The host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub distribution: String,
    /// CPU model.
    pub cpu: String,
    /// Processors on line.
    pub processors: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Whether this host is itself a virtual machine, and of what kind.
    pub hypervisor: Option<String>,
    /// Whether the processor offers hardware virtualization (VMX or SVM) to this host; null where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<bool>,
    /// How its kernel is set; absent in runs of before this was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<HostTuning>,
    /// The storage that was measured.
    pub disk: DiskFacts,
}

/// Memory that differs by less than one part in so many is the same.
const MEMORY_KEPT: u64 = 20;

impl HostFacts {
    /// Whether a run that was begun on the other host can be gone on with on this one. What was measured of a host, or counted on it, is another number
    /// each time; runs of before do not say how their host was set.
    #[must_use]
    pub fn is_same_host(&self, other: &Self) -> bool {
        let bare = |host: &Self| Self { tuning: None, ..host.clone() };
        let are_set_alike = match (&self.tuning, &other.tuning) {
            (Some(one), Some(another)) => one.settings() == another.settings(),
            _ => true,
        };
        are_set_alike && bare(self) == bare(other)
    }

    /// In what the host is another one, or set in another way, than it was in the facts `before`, in words: `2 processors before, 4 now`. Its disk is
    /// left out, for runs measure disks of their own.
    #[must_use]
    pub fn change_since(&self, before: &Self) -> Option<String> {
        let tuning = |host: &Self| host.tuning.as_ref().map(HostTuning::settings).unwrap_or_default();
        let [then, now] = [tuning(before), tuning(self)];
        let or_none = |text: Option<&str>| text.unwrap_or("none").to_owned();
        let are_known = before.tuning.is_some() && self.tuning.is_some();
        let clock = |tuning: &HostTuning| or_none(tuning.clock.as_ref().map(|clock| clock.source.as_str()));
        let pages = |tuning: &HostTuning| or_none(tuning.transparent_huge_pages.as_deref());
        let merging = |tuning: &HostTuning| tuning.ksm.is_some_and(|ksm| ksm.runs).to_string();
        let frequency = |tuning: &HostTuning| {
            let facts = tuning.frequency.as_ref();
            facts.map_or_else(|| or_none(None), |one| format!("{} {:?} MHz", one.governor, one.limits_mhz))
        };
        let set = [
            ("clock", clock(&then), clock(&now)),
            ("transparent huge pages", pages(&then), pages(&now)),
            ("merging of equal pages", merging(&then), merging(&now)),
            ("frequency", frequency(&then), frequency(&now)),
        ];
        let is = [
            ("kernel", before.kernel.clone(), self.kernel.clone()),
            ("processor", before.cpu.clone(), self.cpu.clone()),
            ("number of processors", before.processors.to_string(), self.processors.to_string()),
            memory(before.memory_bytes, self.memory_bytes),
            ("hypervisor", or_none(before.hypervisor.as_deref()), or_none(self.hypervisor.as_deref())),
        ];
        first_change("the host's ", is.into_iter().chain(set.into_iter().filter(|_| are_known)))
    }
}

/// Memory before and now, in MiB. A kernel keeps a little more for itself at one boot than at another, which is no change.
fn memory(before: u64, now: u64) -> (&'static str, String, String) {
    let is_same = before.abs_diff(now) <= before / MEMORY_KEPT;
    let words = |bytes: u64| format!("{} MiB", bytes >> 20);
    ("memory", words(before), words(if is_same { before } else { now }))
}

/// The first of these, each with what it was before and is now, that is not the same.
fn first_change(
    whose: &str,
    mut all: impl Iterator<Item = (&'static str, String, String)>,
) -> Option<String> {
    let (name, before, now) = all.find(|(_, before, now)| before != now)?;
    Some(format!("{whose}{name} was {before} before and is {now} now"))
}

/// What executes the guest's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcceleratorFacts {
    /// `kvm`, `tcg` or `uml`.
    pub name: String,
    /// How that was found out, in words.
    pub why: String,
}

/// The guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestFacts {
    /// What executes its instructions.
    pub accelerator: AcceleratorFacts,
    /// QEMU's version, and libvirt's where that started it.
    pub qemu: String,
    /// Kernel release.
    pub kernel: String,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Name of the disk adapter.
    pub adapter: String,
    /// QEMU's whole command line; libvirt's description of the domain where that started it.
    pub command_line: Vec<String>,
    /// From QEMU's start to the agent's greeting, in nanoseconds.
    pub boot_ns: u64,
    /// What its programs pay for crossing into its kernel, measured when it had booted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossing: Option<CrossingCost>,
}

impl GuestFacts {
    /// In what this guest is another one than that of `before`, in words. Its memory is left out: the plan says it, and what a guest's kernel
    /// tells of it differs from boot to boot.
    #[must_use]
    pub fn change_since(&self, before: &Self) -> Option<String> {
        let executes = |guest: &Self| guest.accelerator.name.to_uppercase();
        let all = [
            ("accelerator", executes(before), executes(self)),
            ("hypervisor", before.qemu.clone(), self.qemu.clone()),
            ("kernel", before.kernel.clone(), self.kernel.clone()),
            ("number of processors", before.vcpus.to_string(), self.vcpus.to_string()),
            ("adapter", before.adapter.clone(), self.adapter.clone()),
        ];
        first_change("the guest's ", all.into_iter())
    }
}

/// A machine that is not the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineFacts {
    /// Name of the environment.
    pub environment: String,
    /// What it is, with the storage that was measured there.
    pub facts: HostFacts,
    /// The guest that was booted on it and measured, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestFacts>,
}

/// Version of `run.json`. Raised when a field changes its meaning or goes away; earlier ones are still read.
pub const RUN_FORMAT: u32 = 2;

/// A run's `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// Version of the format, [`RUN_FORMAT`].
    pub format: u32,
    /// Version of virtbench.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// The folder in which it was given, from which the files that it names are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_folder: Option<String>,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// What it set out to measure.
    pub plan: Plan,
    /// The host.
    pub host: HostFacts,
    /// What programs of the host pay for crossing into its kernel, measured when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossing: Option<CrossingCost>,
    /// The guest, once it has booted.
    pub guest: Option<GuestFacts>,
    /// Guests of this host that something else executes than that one, each kind once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_guests: Vec<GuestFacts>,
    /// Machines other than the host, once they have answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineFacts>,
    /// What each environment is, in the plan's order, in a study of configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setups: Vec<SetupFacts>,
    /// What the guests cost without a load, each sitting's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle: Vec<IdleBaseline>,
    /// What the appliances of the run are made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub appliances: Vec<ApplianceRoot>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Provenance {
    /// Adds notes, each once.
    pub fn add_notes(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// Reads a `run.json`, also one of an earlier version.
///
/// # Errors
/// The text is not such a file, or a later version wrote it.
pub fn parse_provenance(text: &str) -> Result<Provenance, RecordError> {
    let damaged =
        |error: serde_json::Error| RecordError::Damaged { line: error.line(), why: error.to_string() };
    let value: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
    check_format(&value, RUN_FORMAT)?;
    let is_first = value.get("format").and_then(serde_json::Value::as_u64).is_some_and(|format| format < 2);
    let value = if is_first { from_format_1(value) } else { value };
    serde_json::from_value(value).map_err(damaged)
}

/// Brings a `run.json` of format 1 into format 2. There every run had a grid, empty where none was measured, and beside it
/// what a study of several VMs or of predictions had planned.
pub(crate) fn from_format_1(mut run: Value) -> Value {
    let Some(fields) = run.as_object_mut() else { return run };
    let Some(study) = fields.remove("kind") else { return run };
    let mut grid = taken(fields, "plan");
    let colocation = taken(fields, "together");
    let predictions = taken(fields, "predictions");
    let mut plan = if !predictions.is_empty() {
        let moved = [("repetitions", "trials"), ("size_bytes", "size_bytes")];
        with(predictions, &mut grid, &moved)
    } else if !colocation.is_empty() {
        let moved = ["repetitions", "ramp_ns", "time_ns", "size_bytes", "seed"].map(|name| (name, name));
        with(colocation, &mut grid, &moved)
    } else {
        grid
    };
    plan.insert("study".into(), study);
    fields.insert("plan".into(), Value::Object(plan));
    fields.insert("format".into(), 2.into());
    run
}

/// An object that stood in another one; empty where there was none.
fn taken(fields: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match fields.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// A plan with what stood in the grid, under its name there and here.
fn with(
    mut plan: Map<String, Value>,
    grid: &mut Map<String, Value>,
    moved: &[(&str, &str)],
) -> Map<String, Value> {
    for (earlier, name) in moved {
        if let Some(value) = grid.remove(*earlier) {
            plan.insert((*name).to_owned(), value);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_use::ClockFacts;

    /// A `run.json` of before there were studies of configurations.
    const OLD: &str = r#"{"format":1,"kind":"native-vs-vm","version":"0.1.0","command":["virtbench"],
        "started_unix_s":1,"plan":{"grid":"quick","blocks_bytes":[4096],"read_percents":[0],
        "random_percents":[0],"repetitions":1,"outstanding":16,"workers":1,"ramp_ns":0,"time_ns":1,
        "size_bytes":1048576,"environments":["native","vm"],"seed":1},"host":{"kernel":"6","distribution":"d",
        "cpu":"c","processors":2,"memory_bytes":1,"hypervisor":null,"disk":{"filesystem":"ext4","device":null,
        "rotational":null,"scheduler":null,"write_cache":null}},"guest":null,"notes":[]}"#;

    #[test]
    fn run_folders_from_before_configurations_are_read() {
        let old = parse_provenance(OLD).unwrap();
        assert!(matches!(&old.plan, Plan::NativeVsVm(plan) if plan.environments == ["native", "vm"]));
        assert!(old.setups.is_empty() && old.idle.is_empty());
        assert_eq!(old.format, RUN_FORMAT);
    }

    #[test]
    fn what_changed_on_a_host_is_named_and_what_was_measured_or_counted_of_it_is_no_change() {
        let host = parse_provenance(OLD).unwrap().host;
        let tuned = |source: &str, read_ns| {
            let clock = ClockFacts { source: source.into(), others: Vec::new(), read_ns };
            let tuning = HostTuning { clock: Some(clock), ..HostTuning::default() };
            HostFacts { tuning: Some(tuning), ..host.clone() }
        };
        assert_eq!(tuned("tsc", 20).change_since(&tuned("tsc", 25)), None);
        assert_eq!(
            tuned("tsc", 20).change_since(&host),
            None,
            "runs of before do not say how their host was set"
        );
        assert_eq!(
            tuned("hpet", 900).change_since(&tuned("tsc", 20)).as_deref(),
            Some("the host's clock was tsc before and is hpet now")
        );
        let more = HostFacts { processors: 4, ..host.clone() };
        let words = more.change_since(&host);
        assert_eq!(words.as_deref(), Some("the host's number of processors was 2 before and is 4 now"));
        let memory = |bytes| HostFacts { memory_bytes: bytes, ..host.clone() };
        assert_eq!(memory(500_150_272).change_since(&memory(502_247_424)), None);
        let words = memory(1 << 30).change_since(&memory(1 << 31));
        assert_eq!(words.as_deref(), Some("the host's memory was 2048 MiB before and is 1024 MiB now"));
        let disk = DiskFacts { filesystem: "xfs".into(), ..host.disk.clone() };
        assert_eq!(HostFacts { disk, ..host.clone() }.change_since(&host), None);
    }
}
