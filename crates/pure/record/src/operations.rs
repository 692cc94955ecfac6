//! Management operations on VMs ([Platform 2014], section III.C): their kinds, where their time went, how they failed.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// An operation of a platform's control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// A VM that is off is started.
    PowerOn,
    /// A VM that runs is ended at once.
    PowerOff,
    /// A VM that is off is copied.
    Clone,
    /// A VM that runs moves to another host.
    Migrate,
    /// A VM that is off is removed with its disks.
    Remove,
    /// The state of a VM is kept.
    CreateSnapshot,
    /// A kept state is given up.
    DeleteSnapshot,
    /// What a VM is made of is changed: its description, so that it can be told afterwards.
    Reconfigure,
    /// A VM that runs stands still.
    Suspend,
    /// A VM that stands still goes on.
    Resume,
    /// A VM that is off gets another disk.
    AttachDisk,
    /// It loses it again.
    DetachDisk,
    /// The console of a VM that runs is opened and closed.
    Console,
    /// All VMs of the run are listed with their state.
    List,
    /// A VM that runs is asked to end by itself.
    Shutdown,
    /// A VM that runs begins anew at once, as by its button.
    Reset,
    /// A VM goes back to a kept state.
    RevertSnapshot,
    /// The first disk of a VM that is off moves to another storage.
    MoveDisk,
    /// The first disk of a VM that is off grows.
    ResizeDisk,
    /// A VM moves to another host with a pause.
    ColdMigrate,
    /// A VM gets other processors and memory.
    Resize,
    /// A VM begins anew with the disk that it was made with.
    Rebuild,
    /// A VM that runs is taken from its host, and kept.
    Shelve,
    /// It runs on a host again.
    Unshelve,
    /// A VM gets another network card.
    AttachPort,
    /// It loses it again.
    DetachPort,
}

impl OperationKind {
    /// All, those of the paper's Table 2 first and in its order.
    pub const ALL: [Self; 26] = [
        Self::PowerOn,
        Self::PowerOff,
        Self::Clone,
        Self::Migrate,
        Self::Remove,
        Self::CreateSnapshot,
        Self::DeleteSnapshot,
        Self::Reconfigure,
        Self::Suspend,
        Self::Resume,
        Self::AttachDisk,
        Self::DetachDisk,
        Self::Console,
        Self::List,
        Self::Shutdown,
        Self::Reset,
        Self::RevertSnapshot,
        Self::MoveDisk,
        Self::ResizeDisk,
        Self::ColdMigrate,
        Self::Resize,
        Self::Rebuild,
        Self::Shelve,
        Self::Unshelve,
        Self::AttachPort,
        Self::DetachPort,
    ];

    /// Its place among [`Self::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// As records, mixes and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "power_on",
            "power_off",
            "clone",
            "migrate",
            "remove",
            "create_snapshot",
            "delete_snapshot",
            "reconfigure",
            "suspend",
            "resume",
            "attach_disk",
            "detach_disk",
            "console",
            "list",
            "shutdown",
            "reset",
            "revert_snapshot",
            "move_disk",
            "resize_disk",
            "cold_migrate",
            "resize",
            "rebuild",
            "shelve",
            "unshelve",
            "attach_port",
            "detach_port",
        ][self.index()]
    }
}

/// Why an operation failed, as far as what to do next differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Nobody is there, or the connection broke.
    Unreachable,
    /// The login fails, or does not end in time.
    NotAuthenticated,
    /// The user may not do this.
    Denied,
    /// What it was for is not there any more.
    Vanished,
    /// What it was for is not in a state for it.
    WrongState,
    /// Something else is done with it at the moment.
    Busy,
    /// No space, memory or other resource is left.
    NoRoom,
    /// It was not done in time.
    TimedOut,
    /// It was done, but its effect was not seen in time.
    NotSeen,
    /// The platform cannot do this.
    Unsupported,
    /// What was answered cannot be understood.
    Garbled,
    /// Any other refusal.
    Refused,
}

impl FailureKind {
    /// As records and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::NotAuthenticated => "not_authenticated",
            Self::Denied => "denied",
            Self::Vanished => "vanished",
            Self::WrongState => "wrong_state",
            Self::Busy => "busy",
            Self::NoRoom => "no_room",
            Self::TimedOut => "timed_out",
            Self::NotSeen => "not_seen",
            Self::Unsupported => "unsupported",
            Self::Garbled => "garbled",
            Self::Refused => "refused",
        }
    }
}

/// A part of an operation's time. They follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// From its intended start until a client had time for it.
    Waiting,
    /// What the client itself needed: requests built, answers read.
    Client,
    /// Until the platform has accepted it.
    Accepted,
    /// In the platform's queue.
    Queued,
    /// While the platform carried it out.
    Running,
    /// From its end until the client was told.
    Done,
    /// Until its effect was seen: the guest answers or is gone, the inventory shows it.
    Seen,
}

impl Phase {
    /// All, in the order in which they happen.
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Client, Self::Accepted, Self::Queued, Self::Running, Self::Done, Self::Seen];

    /// Its place among [`Self::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// As records and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["waiting", "client", "accepted", "queued", "running", "done", "seen"][self.index()]
    }
}

/// Where the time of an operation went, in nanoseconds; nothing where the platform does not tell that part apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phases(pub [Option<u64>; 7]);

impl Phases {
    /// The length of a phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> Option<u64> {
        self.0[phase.index()]
    }

    /// Adds to the length of a phase.
    pub fn add(&mut self, phase: Phase, length_ns: u64) {
        let length = &mut self.0[phase.index()];
        *length = Some(length.unwrap_or(0).saturating_add(length_ns));
    }

    /// All of them together.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.0.iter().flatten().fold(0, |sum, length| sum.saturating_add(*length))
    }
}

/// How a disk is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CloneKind {
    /// Every byte.
    #[default]
    Full,
    /// An overlay; what is not changed is read from the original.
    Linked,
    /// The file system shares the blocks of both.
    Reflink,
    /// Whatever stores the disks does it by itself, told by a command of the user's: no byte passes through a host.
    Array,
}

impl CloneKind {
    /// As arguments and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Linked => "linked",
            Self::Reflink => "reflink",
            Self::Array => "array",
        }
    }

    /// Whether the new disk stands for itself, so that it can be copied in this way again; an overlay does not.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self != Self::Linked
    }
}

/// What a platform tells of a job once it is done, such as libvirt's job statistics of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobFigure {
    /// How long it took by the platform's own clock, in nanoseconds.
    ElapsedNs,
    /// Of which until the first byte was moved, in nanoseconds.
    SetupNs,
    /// For how long the guest stood still, in nanoseconds.
    DowntimeNs,
    /// What was moved, in bytes.
    MovedBytes,
    /// What there was to move, in bytes.
    TotalBytes,
    /// How often the memory was gone through.
    Passes,
    /// While it lay in a queue and no service of the platform worked on it, in nanoseconds.
    QueuedNs,
    /// While what divides work among hosts worked on it, in nanoseconds.
    ConductorNs,
    /// While a host was looked for, in nanoseconds.
    SchedulerNs,
    /// While hosts worked on it, in nanoseconds.
    ComputeNs,
    /// So much earlier than it was found over may it have ended, in nanoseconds.
    UncertaintyNs,
}

impl JobFigure {
    /// All, in the order of tables.
    pub const ALL: [Self; 11] = [
        Self::ElapsedNs,
        Self::SetupNs,
        Self::DowntimeNs,
        Self::MovedBytes,
        Self::TotalBytes,
        Self::Passes,
        Self::QueuedNs,
        Self::ConductorNs,
        Self::SchedulerNs,
        Self::ComputeNs,
        Self::UncertaintyNs,
    ];

    /// As records and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ElapsedNs => "elapsed_ns",
            Self::SetupNs => "setup_ns",
            Self::DowntimeNs => "downtime_ns",
            Self::MovedBytes => "moved_bytes",
            Self::TotalBytes => "total_bytes",
            Self::Passes => "passes",
            Self::QueuedNs => "queued_ns",
            Self::ConductorNs => "conductor_ns",
            Self::SchedulerNs => "scheduler_ns",
            Self::ComputeNs => "compute_ns",
            Self::UncertaintyNs => "uncertainty_ns",
        }
    }
}

/// What a platform is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformFacts {
    /// Its address, without any secret.
    pub address: String,
    /// What it is, with its version, such as `QEMU 7.2.22, by libvirt 9.0.0`.
    pub software: String,
    /// Hosts on which its VMs run.
    pub hosts: u32,
    /// VMs that were there before and are not the run's. They are never touched.
    pub others: u32,
    /// What else a reader should know, such as how VMs are executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How operations arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OperationsLoad {
    /// Open loop at these rates, in operations a minute, alternating piece by piece.
    Open(Vec<f64>),
    /// Closed loop: so many clients, each with one operation at a time.
    Closed(u32),
    /// The highest rate that is sustained is searched.
    Max {
        /// The longest that 95 % of operations may take, in nanoseconds.
        limit_ns: u64,
    },
}

/// What a study of management operations set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationsPlan {
    /// Address of the platform, without any secret.
    pub platform: String,
    /// Where VMs are migrated to and back, if that is another address.
    pub destination: Option<String>,
    /// Share of each operation; only their ratios matter.
    pub mix: BTreeMap<OperationKind, u32>,
    /// What was taken out of the mix since the platform does not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OperationKind>,
    /// Numbers of VMs to begin with, one after the other: half of them run.
    pub vms: Vec<u32>,
    /// How operations arrive.
    pub load: OperationsLoad,
    /// Pieces at each number of VMs. Each is a line of the results.
    pub pieces: u32,
    /// Length of a piece, in nanoseconds.
    pub piece_ns: u64,
    /// Before the first piece at each number of VMs, in nanoseconds.
    pub warm_ns: u64,
    /// How disks are copied, one clone after the other where there are several ways.
    #[serde(alias = "clone", deserialize_with = "one_or_several")]
    pub clones: Vec<CloneKind>,
    /// The longest that an operation may take, in nanoseconds.
    pub limit_ns: u64,
    /// Operations in flight at once, at most.
    pub most_at_once: u32,
    /// Memory of each VM, in bytes.
    pub memory_bytes: u64,
    /// Bytes of each VM's disk.
    pub disk_bytes: u64,
    /// What executes VMs: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Machines with a load of their own meanwhile, such as `qemu:`. With them every cycle of rates begins with a piece without
    /// operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// What they do, as on a command line, where it is not small random I/O on their disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_workload: Option<String>,
}

impl OperationsPlan {
    /// Pieces after which the same rates come again: one without operations before them where there are tenants.
    #[must_use]
    pub fn cycle(&self) -> u32 {
        let rates = if let OperationsLoad::Open(rates) = &self.load { rates.len() } else { 1 };
        u32::try_from(rates.max(1)).unwrap_or(u32::MAX) + u32::from(!self.tenants.is_empty())
    }

    /// The rate of a piece, in operations a minute, 0 where there are to be none; nothing in a closed loop and while a rate is
    /// searched.
    #[must_use]
    pub fn rate(&self, piece: u32) -> Option<f64> {
        let index = (piece % self.cycle()) as usize;
        let index = match (self.tenants.is_empty(), index) {
            (true, index) => index,
            (false, 0) => return Some(0.0),
            (false, index) => index - 1,
        };
        if let OperationsLoad::Open(rates) = &self.load { rates.get(index).copied() } else { None }
    }

    /// A fixed pace beside other work: how often the whole mix fits in a piece at the first rate, and nanoseconds between two
    /// operations that fill the piece so. Whole rounds, so that every operation comes as often as its share says.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
    pub fn pace(&self) -> Option<(u64, u64)> {
        let rate = self.rate(0)?;
        let total = u64::from(self.mix.values().sum::<u32>());
        let most = (rate * self.piece_ns as f64 / 60e9 + 1e-9) as u64;
        let rounds = most.checked_div(total).filter(|rounds| *rounds > 0)?;
        Some((rounds, self.piece_ns / (rounds * total)))
    }
}

/// Earlier plans had one way, by itself.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CloneKind>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ways {
        One(CloneKind),
        Several(Vec<CloneKind>),
    }
    Ok(match Ways::deserialize(deserializer)? {
        Ways::One(way) => vec![way],
        Ways::Several(ways) => ways,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_with_one_way_to_clone_are_read_as_those_with_several() {
        let mut json = serde_json::json!({ "clones": ["full", "linked"] });
        #[derive(Deserialize)]
        struct Only {
            #[serde(alias = "clone", deserialize_with = "one_or_several")]
            clones: Vec<CloneKind>,
        }
        let only: Only = serde_json::from_value(json.take()).unwrap();
        assert_eq!(only.clones, [CloneKind::Full, CloneKind::Linked]);
        let only: Only = serde_json::from_str(r#"{"clone": "linked"}"#).unwrap();
        assert_eq!(only.clones, [CloneKind::Linked]);
    }
}
