//! What every platform can be asked.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use virtbench_operations::VmState;
use virtbench_record::{CloneKind, FailureKind, JobFigure, OperationKind, Phase, Phases, PlatformFacts};

/// An operation with what it needs beside the VM that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// See [`OperationKind::PowerOn`].
    PowerOn,
    /// See [`OperationKind::PowerOff`].
    PowerOff,
    /// See [`OperationKind::Clone`].
    Clone {
        /// The new VM's name, which carries the label.
        into: String,
        /// How its disk is made.
        kind: CloneKind,
    },
    /// See [`OperationKind::Migrate`]. Where to is the platform's choice.
    Migrate,
    /// See [`OperationKind::Remove`].
    Remove,
    /// See [`OperationKind::CreateSnapshot`].
    CreateSnapshot {
        /// Its name, unique in its VM.
        name: String,
    },
    /// See [`OperationKind::DeleteSnapshot`].
    DeleteSnapshot {
        /// Its name.
        name: String,
    },
    /// See [`OperationKind::Reconfigure`].
    Reconfigure {
        /// A text that the VM's description has afterwards.
        note: String,
    },
    /// See [`OperationKind::Suspend`].
    Suspend,
    /// See [`OperationKind::Resume`].
    Resume,
    /// See [`OperationKind::AttachDisk`].
    AttachDisk {
        /// The disk's name, unique in its VM.
        name: String,
    },
    /// See [`OperationKind::DetachDisk`].
    DetachDisk {
        /// The disk's name.
        name: String,
    },
    /// See [`OperationKind::Console`].
    Console,
    /// See [`OperationKind::List`]; it is for no VM.
    List,
    /// See [`OperationKind::Shutdown`].
    Shutdown,
    /// See [`OperationKind::Reset`].
    Reset,
    /// See [`OperationKind::RevertSnapshot`].
    RevertSnapshot {
        /// Its name.
        name: String,
    },
    /// See [`OperationKind::MoveDisk`]. Where to is the platform's choice.
    MoveDisk,
    /// See [`OperationKind::ResizeDisk`]. By how much is the platform's choice.
    ResizeDisk,
    /// See [`OperationKind::ColdMigrate`]. Where to is the platform's choice.
    ColdMigrate,
    /// See [`OperationKind::Resize`]. What to is the platform's choice.
    Resize,
    /// See [`OperationKind::Rebuild`].
    Rebuild,
    /// See [`OperationKind::Shelve`].
    Shelve,
    /// See [`OperationKind::Unshelve`].
    Unshelve,
    /// See [`OperationKind::AttachPort`]. Its network is the platform's choice.
    AttachPort {
        /// The card's name, unique in its VM.
        name: String,
    },
    /// See [`OperationKind::DetachPort`].
    DetachPort {
        /// The card's name.
        name: String,
    },
}

impl Action {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        match self {
            Self::PowerOn => OperationKind::PowerOn,
            Self::PowerOff => OperationKind::PowerOff,
            Self::Clone { .. } => OperationKind::Clone,
            Self::Migrate => OperationKind::Migrate,
            Self::Remove => OperationKind::Remove,
            Self::CreateSnapshot { .. } => OperationKind::CreateSnapshot,
            Self::DeleteSnapshot { .. } => OperationKind::DeleteSnapshot,
            Self::Reconfigure { .. } => OperationKind::Reconfigure,
            Self::Suspend => OperationKind::Suspend,
            Self::Resume => OperationKind::Resume,
            Self::AttachDisk { .. } => OperationKind::AttachDisk,
            Self::DetachDisk { .. } => OperationKind::DetachDisk,
            Self::Console => OperationKind::Console,
            Self::List => OperationKind::List,
            Self::Shutdown => OperationKind::Shutdown,
            Self::Reset => OperationKind::Reset,
            Self::RevertSnapshot { .. } => OperationKind::RevertSnapshot,
            Self::MoveDisk => OperationKind::MoveDisk,
            Self::ResizeDisk => OperationKind::ResizeDisk,
            Self::ColdMigrate => OperationKind::ColdMigrate,
            Self::Resize => OperationKind::Resize,
            Self::Rebuild => OperationKind::Rebuild,
            Self::Shelve => OperationKind::Shelve,
            Self::Unshelve => OperationKind::Unshelve,
            Self::AttachPort { .. } => OperationKind::AttachPort,
            Self::DetachPort { .. } => OperationKind::DetachPort,
        }
    }
}

/// Why operations are not done on platforms that virtbench knows of no way to try them on: some are done on Proxmox VE and OpenStack, some on one.
pub(crate) fn elsewhere_only(operation: OperationKind) -> Option<String> {
    let places = match operation {
        OperationKind::Shutdown | OperationKind::MoveDisk | OperationKind::ResizeDisk => "Proxmox VE alone",
        OperationKind::Reset | OperationKind::RevertSnapshot | OperationKind::ColdMigrate => {
            "Proxmox VE and OpenStack alone"
        }
        _ => return on_openstack_only(operation),
    };
    Some(format!("virtbench does {} on {places}", operation.name()))
}

/// Why operations are not done on platforms other than OpenStack.
pub(crate) fn on_openstack_only(operation: OperationKind) -> Option<String> {
    let is_one = matches!(
        operation,
        OperationKind::Resize
            | OperationKind::Rebuild
            | OperationKind::Shelve
            | OperationKind::Unshelve
            | OperationKind::AttachPort
            | OperationKind::DetachPort
    );
    is_one.then(|| format!("virtbench does {} on OpenStack alone", operation.name()))
}

/// What became of an operation. Phases are there after a failure as well, as far as it came; `waiting` is the
/// caller's to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    /// Where the time went.
    pub phases: Phases,
    /// How often the platform was asked again, such as after a session that had expired.
    pub retries: u32,
    /// What the platform told of it once it was done; nothing where it is no job of the platform's, why not where it did not tell.
    pub job: Option<JobTold>,
    /// Whether it succeeded.
    pub result: Result<(), Failure>,
}

/// The figures of a job, or why there are none.
pub type JobTold = Result<BTreeMap<JobFigure, u64>, String>;

/// A platform, as seen by one run. Connecting is each implementation's own; it has a label from then on, which every name
/// of its begins with. Every call returns at its deadline at the latest, if need be with
/// [`TimedOut`](virtbench_record::FailureKind::TimedOut).
pub trait Platform: Debug + Send + Sync {
    /// What it is.
    fn facts(&self) -> PlatformFacts;

    /// Why it cannot do this operation; nothing where it can. Said before a run.
    fn lacks(&self, operation: OperationKind) -> Option<String>;

    /// Whether a VM with snapshots can be migrated.
    fn migrates_snapshots(&self) -> bool;

    /// Whether a VM whose disk is an overlay of another can be cloned in every way that the run has.
    fn clones_overlays(&self) -> bool {
        true
    }

    /// Whether a VM runs as soon as it is made of what all are made of, so that clones run and are removed while they do.
    fn starts_clones(&self) -> bool {
        false
    }

    /// Whether a VM that runs can be moved with a pause; else only one that is off.
    fn cold_migrates_running(&self) -> bool {
        false
    }

    /// The label, such that `{label}-{number}` names a VM of the run.
    fn label(&self) -> String;

    /// Makes a VM that is off. Names begin with the [label](Self::label).
    ///
    /// # Errors
    /// The platform refuses, cannot be reached, or is late.
    fn create(&self, vm: &str, deadline: Instant) -> Result<(), Failure>;

    /// Does an operation on a VM of the run and waits until its effect is seen.
    fn perform(&self, vm: &str, action: &Action, deadline: Instant) -> Performed;

    /// How a VM of the run is; nothing where it is not there.
    ///
    /// # Errors
    /// The platform does not say.
    fn state(&self, vm: &str, deadline: Instant) -> Result<Option<VmState>, Failure>;

    /// Names and states of all VMs that carry the run's label.
    ///
    /// # Errors
    /// The platform does not say.
    fn list(&self, deadline: Instant) -> Result<Vec<(String, VmState)>, Failure>;

    /// Removes everything with the mark of a run whose process has ended, and nothing else; how many things. Where there is more than can
    /// be removed until the deadline, it takes as long as each may take.
    ///
    /// # Errors
    /// The platform cannot be reached, or refuses to remove something.
    fn sweep(&self, deadline: Instant) -> Result<usize, Failure>;

    /// Removes the VMs of this run, with all that is theirs; how many things. It may be called again, and VMs made afterwards. What
    /// they share goes with the platform itself. The deadline is as for [`sweep`](Self::sweep).
    ///
    /// # Errors
    /// The platform cannot be reached, or refuses to remove something.
    fn remove_all(&self, deadline: Instant) -> Result<usize, Failure>;
}

/// Why something failed, in words that say what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What a user is told. It has no secret in it.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// Runs from its beginning on; each lap belongs to one phase.
#[derive(Debug)]
pub struct Stopwatch {
    lap: Instant,
    phases: Phases,
}

impl Stopwatch {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { lap: Instant::now(), phases: Phases::default() }
    }

    /// The time since the last lap goes to this phase.
    pub fn lap(&mut self, phase: Phase) {
        let now = Instant::now();
        self.phases.add(phase, nanoseconds(now - self.lap));
        self.lap = now;
    }

    /// The time since the last lap, as far as it lies before this moment, goes to this phase.
    pub fn lap_until(&mut self, phase: Phase, at: Instant) {
        let at = at.clamp(self.lap, Instant::now());
        self.phases.add(phase, nanoseconds(at - self.lap));
        self.lap = at;
    }

    /// The time since the last lap goes to `running`, as far as the platform's own clock says so, and before it to
    /// `queued`; what is left goes to `done`. Only lengths are taken from the platform's clock.
    pub fn lap_of_task(&mut self, queued: Duration, running: Duration) {
        let now = Instant::now();
        let whole = now - self.lap;
        let running = running.min(whole);
        let queued = queued.min(whole - running);
        self.phases.add(Phase::Queued, nanoseconds(queued));
        self.phases.add(Phase::Running, nanoseconds(running));
        self.phases.add(Phase::Done, nanoseconds(whole - running - queued));
        self.lap = now;
    }

    /// The phases so far.
    #[must_use]
    pub fn phases(&self) -> Phases {
        self.phases
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// What is known of each VM. Threads share it.
#[derive(Debug)]
pub(crate) struct RunVms<T>(Mutex<HashMap<String, T>>);

impl<T> Default for RunVms<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> RunVms<T> {
    fn all(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a VM.
    ///
    /// # Errors
    /// The run has no such VM.
    pub fn known(&self, vm: &str) -> Result<T, Failure> {
        let none = || Failure::new(FailureKind::Vanished, format!("this run has no VM {vm:?}"));
        self.all().get(vm).cloned().ok_or_else(none)
    }

    /// Changes what is known of a VM, if it is still there.
    pub fn change(&self, vm: &str, change: impl FnOnce(&mut T)) {
        if let Some(known) = self.all().get_mut(vm) {
            change(known);
        }
    }

    /// There is a VM.
    pub fn add(&self, vm: &str, known: T) {
        self.all().insert(vm.to_owned(), known);
    }

    /// A VM is gone.
    pub fn remove(&self, vm: &str) {
        self.all().remove(vm);
    }

    /// All VMs are gone.
    pub fn clear(&self) {
        self.all().clear();
    }
}

/// Whether a VM of a run may have this name.
///
/// # Errors
/// It does not begin with the run's label.
pub(crate) fn check_name(label: &str, name: &str) -> Result<(), Failure> {
    if name.starts_with(label) {
        return Ok(());
    }
    let why = format!("{name:?} does not begin with the run's label");
    Err(Failure::new(FailureKind::Refused, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_divides_what_was_waited_and_no_more() {
        let mut watch = Stopwatch::start();
        let (before, begun) = (watch.lap - Duration::from_secs(1), watch.lap);
        std::thread::sleep(Duration::from_millis(20));
        watch.lap_until(Phase::Accepted, before);
        watch.lap_until(Phase::Running, begun + Duration::from_millis(5));
        watch.lap_until(Phase::Done, begun + Duration::from_secs(5));
        let phases = watch.phases();
        assert_eq!((phases.get(Phase::Accepted), phases.get(Phase::Running)), (Some(0), Some(5_000_000)));
        let done = phases.get(Phase::Done).expect("it was added");
        assert!((15_000_000..5_000_000_000).contains(&done), "{phases:?}");
    }

    #[test]
    fn a_tasks_own_times_never_exceed_what_was_waited() {
        let mut watch = Stopwatch::start();
        watch.lap(Phase::Client);
        watch.lap_of_task(Duration::from_secs(5), Duration::from_secs(7));
        let phases = watch.phases();
        assert_eq!((phases.get(Phase::Queued), phases.get(Phase::Done)), (Some(0), Some(0)));
        assert!(phases.total_ns() < 1_000_000_000 && phases.get(Phase::Seen).is_none(), "{phases:?}");
    }

    #[test]
    fn what_is_known_of_a_vm_goes_with_it() {
        let vms = RunVms::default();
        vms.add("a", 1);
        vms.change("a", |known| *known += 1);
        vms.change("b", |known| *known += 1);
        assert_eq!(vms.known("a"), Ok(2));
        vms.remove("a");
        assert_eq!(vms.known("a").unwrap_err().kind, FailureKind::Vanished);
        vms.add("c", 3);
        vms.clear();
        assert!(vms.known("c").is_err());
        assert_eq!(check_name("label", "label-1"), Ok(()));
        assert_eq!(check_name("label", "other").unwrap_err().kind, FailureKind::Refused);
    }
}
