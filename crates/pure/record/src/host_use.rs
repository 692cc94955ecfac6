//! CPU use of the host: all of it, and what can be told apart.

use serde::{Deserialize, Serialize};

/// CPU use of the host while a point was measured, as [ESX Adapters 2006] defines it: the sum over all physical
/// processors, so that a machine of n processors can reach n x 100 %.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUse {
    /// Everything that is not idle or waiting for I/O, in percent of one processor.
    pub cpu_percent: f64,
    /// User mode, guests included, in percent of one processor.
    pub user_percent: f64,
    /// Kernel mode with interrupts, in percent of one processor.
    pub system_percent: f64,
    /// Time that a hypervisor below this host took away, in percent of one processor; not part of
    /// `cpu_percent`.
    pub steal_percent: f64,
    /// Other programs: processes that are neither virtbench nor were started by it, without the kernel's
    /// threads, in percent of one processor. Part of `cpu_percent`; absent where it was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Threads of all programs that ran or wanted to run, as counted at the beginning and at the end; absent where it was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable: Option<f64>,
    /// Processors summed over.
    pub processors: u32,
    /// Each processor's part of `cpu_percent`, in their order; empty where it was not sampled or their number changed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_percent: Vec<f64>,
    /// What of each processor's was in user mode, in their order; empty where `each_percent` is, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_user_percent: Vec<f64>,
}

impl HostUse {
    /// A rate for each percent of CPU use, as in [ESX Adapters 2006]; nothing where no use could be seen.
    #[must_use]
    pub fn per_cpu_percent(&self, rate: f64) -> Option<f64> {
        (self.cpu_percent > 0.0).then(|| rate / self.cpu_percent)
    }
}

/// What a process has to do with the point that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// The hypervisor of the guest that was loaded.
    MeasuredGuest,
    /// A server between that guest and its blocks, such as qemu-storage-daemon or qemu-nbd.
    Backing,
    /// The hypervisor of a guest that was booted and not loaded.
    IdleGuest,
    /// A server of such a guest's blocks.
    IdleBacking,
    /// virtbench itself.
    Virtbench,
}

/// CPU use of one process with all its threads, children that it has waited for included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessUse {
    /// Its program, such as `qemu-system-x86_64`.
    pub name: String,
    /// The configuration it belongs to; none for virtbench itself.
    pub environment: Option<String>,
    /// What it has to do with the point.
    pub role: ProcessRole,
    /// Threads it had when the sample was taken.
    pub threads: u32,
    /// User mode, guest code included, in percent of one processor.
    pub user_percent: f64,
    /// Kernel mode, in percent of one processor.
    pub system_percent: f64,
}

impl ProcessUse {
    /// User and kernel mode, in percent of one processor.
    #[must_use]
    pub fn cpu_percent(&self) -> f64 {
        self.user_percent + self.system_percent
    }
}

/// The sum over the processes of one role, in percent of one processor.
#[must_use]
pub fn role_percent(processes: &[ProcessUse], role: ProcessRole) -> f64 {
    processes.iter().filter(|process| process.role == role).map(ProcessUse::cpu_percent).sum()
}

/// What of the host's CPU use no process here accounts for, in percent of one processor: interrupts,
/// the kernel's own threads (such as a loop device's), and everything else that runs on the host. Ticks
/// are counted coarsely, so that it may come out a little below zero, which is shown as zero.
#[must_use]
pub fn unattributed_percent(host: &HostUse, processes: &[ProcessUse]) -> f64 {
    (host.cpu_percent - processes.iter().map(ProcessUse::cpu_percent).sum::<f64>()).max(0.0)
}

/// How the guests of a baseline were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GuestsState {
    /// Booted and running, without a load.
    Running,
    /// Booted, their processors stopped by the hypervisor (QMP `stop`): how guests wait while another
    /// is measured.
    Stopped,
}

/// What the host used with guests booted and no load anywhere, measured for as long as a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleBaseline {
    /// How the guests were.
    pub guests: GuestsState,
    /// Names of the configurations whose guests were booted.
    pub environments: Vec<String>,
    /// When it began, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// The whole host.
    pub host: HostUse,
    /// What of that was seen to be whose.
    pub processes: Vec<ProcessUse>,
}

/// The clock that the kernel reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockFacts {
    /// Its name, such as `tsc` or `hpet`.
    pub source: String,
    /// The others that there are.
    pub others: Vec<String>,
    /// What a program pays for the time, in nanoseconds: the median of several batches.
    pub read_ns: u64,
}

/// Pages of equal contents that the kernel merges (KSM).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KsmFacts {
    /// Whether it looks for such pages.
    pub runs: bool,
    /// Pages that are spared by it now.
    pub sharing_pages: u64,
}

/// How the frequency of the processors is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrequencyFacts {
    /// Who chooses it, such as `schedutil` or `performance`.
    pub governor: String,
    /// The least and the greatest that it may be, in MHz.
    pub limits_mhz: [u32; 2],
}

/// Settings of a host's kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostTuning {
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Merging of equal pages.
    pub ksm: Option<KsmFacts>,
    /// The clock.
    pub clock: Option<ClockFacts>,
    /// NUMA nodes with memory.
    pub numa_nodes: Option<u32>,
    /// Frequencies of the processors; a virtual machine is mostly told none.
    pub frequency: Option<FrequencyFacts>,
}

impl HostTuning {
    /// What is set, without what was measured or counted.
    #[must_use]
    pub fn settings(&self) -> Self {
        let mut settings = self.clone();
        if let Some(clock) = &mut settings.clock {
            clock.read_ns = 0;
        }
        if let Some(ksm) = &mut settings.ksm {
            ksm.sharing_pages = 0;
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_process_accounts_for_is_the_rest() {
        let host = HostUse {
            cpu_percent: 120.0,
            user_percent: 70.0,
            system_percent: 50.0,
            steal_percent: 0.0,
            others_percent: None,
            runnable: None,
            processors: 2,
            each_percent: Vec::new(),
            each_user_percent: Vec::new(),
        };
        let process = |role, user_percent, system_percent| ProcessUse {
            name: "p".into(),
            environment: None,
            role,
            threads: 1,
            user_percent,
            system_percent,
        };
        let mut processes =
            vec![process(ProcessRole::MeasuredGuest, 60.0, 20.0), process(ProcessRole::IdleGuest, 5.0, 1.0)];
        assert_eq!(unattributed_percent(&host, &processes), 34.0);
        assert_eq!(role_percent(&processes, ProcessRole::MeasuredGuest), 80.0);
        processes.push(process(ProcessRole::Virtbench, 40.0, 0.0));
        assert_eq!(unattributed_percent(&host, &processes), 0.0);
    }
}
