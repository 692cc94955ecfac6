//! The seam, for OpenStack.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_mark::{Owner, RunId};
use virtbench_openstack::{
    Address, Flavor, Image, Limit, NewServer, OpenStack, OpenStackError, Operation, OperationTimes, Power,
    Server, Told,
};
use virtbench_operations::VmState;
use virtbench_record::{CloneKind, FailureKind, JobFigure, OperationKind, Phase, Phases, PlatformFacts};

use super::owned::{DISK, Owned, SNAPSHOT, VM, add, failure, nanoseconds, remove};
use crate::keeper::Keeper;
use crate::platform::{Action, Failure, JobTold, Performed, Platform, RunVms, check_name};

/// Of a disk that is attached.
const DISK_GIB: u64 = 1;

/// Under which name a note stands among metadata.
const NOTE: &str = "virtbench-note";

/// How long the cloud may take to tell what it recorded of an operation that is over.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// What the servers of a run are made of.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) flavor: Flavor,
    /// What they are resized to and back.
    pub(super) other_flavor: Option<Flavor>,
    pub(super) image: Image,
    /// An id, `auto` or `none`.
    pub(super) network: String,
}

/// A server of this run.
#[derive(Debug, Clone, Default)]
pub(super) struct Ours {
    id: String,
    /// Images that were made of it, by the names of their snapshots.
    snapshots: HashMap<String, String>,
    /// Volumes that it has besides, by the names of their disks.
    disks: HashMap<String, String>,
    /// Ports that it has besides, by the names of their cards.
    ports: HashMap<String, String>,
    /// It has the other flavor.
    is_resized: bool,
}

/// Servers of a project of a cloud.
pub struct OnOpenStack {
    pub(super) cloud: Arc<OpenStack>,
    pub(super) address: Address,
    pub(super) label: String,
    pub(super) run: RunId,
    pub(super) made: Made,
    /// Hosts that are up, where the role may know.
    pub(super) hosts: Option<usize>,
    pub(super) facts: PlatformFacts,
    pub(super) ours: RunVms<Ours>,
    /// It says that the run lives.
    pub(super) _keeper: Keeper,
}

impl fmt::Debug for OnOpenStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnOpenStack({})", self.address)
    }
}

/// Calls for one operation of the seam.
struct Calls<'a> {
    cloud: &'a OpenStack,
    limit: Limit,
    phases: Phases,
    retries: u32,
    job: Option<JobTold>,
}

impl Calls<'_> {
    /// Does an operation, and asks the cloud what it recorded of it.
    fn perform(&mut self, server: &str, operation: &Operation<'_>) -> Result<Option<String>, OpenStackError> {
        let (times, result) = self.cloud.perform(server, operation, self.limit);
        add(&mut self.phases, &times);
        self.retries += times.retries;
        let made = result?;
        let server = match operation {
            Operation::Create(_) => made.as_deref(),
            Operation::DeleteImage { .. }
            | Operation::CreateVolume { .. }
            | Operation::DeleteVolume { .. }
            | Operation::Note { .. }
            | Operation::Console => None,
            _ => Some(server),
        };
        if let Some(server) = server {
            self.recorded(server, operation, &times)?;
        }
        Ok(made)
    }

    /// What the cloud recorded. An operation that left the server as it was may have failed.
    fn recorded(
        &mut self,
        server: &str,
        operation: &Operation<'_>,
        times: &OperationTimes,
    ) -> Result<(), OpenStackError> {
        let Some(request) = times.request.as_deref() else { return Ok(()) };
        let soon = Limit::at(Instant::now() + TOLD_WITHIN);
        let told = self.cloud.told(server, request, soon);
        self.job = Some(told.map(|told| figures(&told, times)));
        let stays =
            matches!(operation, Operation::LiveMigrate | Operation::Reboot | Operation::Rebuild { .. });
        if !stays {
            return Ok(());
        }
        match self.cloud.failure_of(server, request, soon) {
            Ok(Some(fault)) => {
                Err(OpenStackError::Fault { what: format!("{server} {}", name(operation)), fault })
            }
            _ => Ok(()),
        }
    }

    fn has(&mut self, server: &str, operation: &Operation<'_>) -> Result<(), Failure> {
        self.perform(server, operation).map(drop).map_err(failure)
    }
}

fn name(operation: &Operation<'_>) -> &'static str {
    match operation {
        Operation::LiveMigrate => "os-migrateLive",
        Operation::Reboot => "reboot",
        _ => "rebuild",
    }
}

fn figures(told: &Told, times: &OperationTimes) -> BTreeMap<JobFigure, u64> {
    let known = [
        (JobFigure::ElapsedNs, Some(told.elapsed)),
        (JobFigure::QueuedNs, Some(told.queued)),
        (JobFigure::ConductorNs, told.conductor),
        (JobFigure::SchedulerNs, told.scheduler),
        (JobFigure::ComputeNs, Some(told.compute)),
        (JobFigure::UncertaintyNs, Some(times.uncertainty)),
    ];
    known.into_iter().filter_map(|(figure, length)| Some((figure, nanoseconds(length?)))).collect()
}

impl OnOpenStack {
    fn calls(&self, deadline: Instant) -> Calls<'_> {
        Calls {
            cloud: &self.cloud,
            limit: Limit::at(deadline),
            phases: Phases::default(),
            retries: 0,
            job: None,
        }
    }

    /// The id of a server of the run.
    pub(super) fn id(&self, vm: &str) -> Result<String, Failure> {
        self.ours.known(vm).map(|ours| ours.id)
    }

    /// Makes a server of the image, which runs then.
    pub(super) fn boot(&self, vm: &str, deadline: Instant) -> Result<(), Failure> {
        self.make(vm, &mut self.calls(deadline))
    }

    fn make(&self, name: &str, calls: &mut Calls<'_>) -> Result<(), Failure> {
        check_name(&self.label, name)?;
        let owned = Owned::new(&self.run, VM, name, None);
        let new = NewServer {
            name,
            description: &owned.description(),
            metadata: &owned.metadata(),
            flavor: &self.made.flavor.id,
            image: &self.made.image.id,
            network: &self.made.network,
            zone: self.address.zone.as_deref(),
            key: self.address.key.as_deref(),
            security_group: self.address.security_group.as_deref(),
            volume_gib: self.address.volume_gib,
        };
        let id = calls.perform("", &Operation::Create(new)).map_err(failure)?.unwrap_or_default();
        self.ours.add(name, Ours { id, ..Ours::default() });
        Ok(())
    }

    /// The server, after a look whether it is still ours: metadata and description say so.
    fn still_ours(&self, vm: &str, calls: &Calls<'_>) -> Result<(Ours, Server), Failure> {
        let ours = self.ours.known(vm)?;
        let server = self.cloud.server(&ours.id, calls.limit).map_err(failure)?;
        let server = server
            .ok_or_else(|| Failure::new(FailureKind::Vanished, format!("{vm} is not there any more")))?;
        let is_ours = Owned::of_server(&server).is_some_and(|owned| owned.mark.run == self.run);
        if !is_ours {
            let why = format!("{vm} does not say any more that this run made it: it is left as it is");
            return Err(Failure::new(FailureKind::Denied, why));
        }
        Ok((ours, server))
    }

    fn snapshot(&self, vm: &str, ours: &Ours, name: &str, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let image = format!("{vm}.{name}");
        let owned = Owned::new(&self.run, SNAPSHOT, &image, Some(&ours.id));
        let operation = Operation::CreateImage { name: &image, metadata: &owned.metadata() };
        let made = calls.perform(&ours.id, &operation).map_err(failure)?.unwrap_or_default();
        self.ours.change(vm, |ours| _ = ours.snapshots.insert(name.to_owned(), made));
        Ok(())
    }

    fn resize(&self, vm: &str, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let none = || Failure::new(FailureKind::Unsupported, no_other_flavor());
        let other = self.made.other_flavor.as_ref().ok_or_else(none)?;
        let flavor = if ours.is_resized { &self.made.flavor } else { other };
        calls.has(&ours.id, &Operation::Resize { flavor: &flavor.id })?;
        self.ours.change(vm, |ours| ours.is_resized = !ours.is_resized);
        Ok(())
    }

    /// Makes a volume, which is not timed, and attaches it.
    fn attach_disk(&self, vm: &str, ours: &Ours, disk: &str, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let name = format!("{vm}.{disk}");
        let owned = Owned::new(&self.run, DISK, &name, None);
        let (description, metadata) = (owned.description(), owned.metadata());
        let new = Operation::CreateVolume {
            name: &name,
            description: &description,
            metadata: &metadata,
            gib: DISK_GIB,
        };
        let made = self.cloud.perform("", &new, calls.limit).1.map_err(failure)?.unwrap_or_default();
        calls.has(&ours.id, &Operation::AttachVolume { volume: &made })?;
        self.ours.change(vm, |ours| _ = ours.disks.insert(disk.to_owned(), made));
        Ok(())
    }

    /// Detaches a volume, and removes it, which is not timed.
    fn detach_disk(&self, vm: &str, ours: &Ours, disk: &str, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let none = || Failure::new(FailureKind::Vanished, format!("{vm} has no disk {disk:?} of this run"));
        let volume = ours.disks.get(disk).ok_or_else(none)?;
        calls.has(&ours.id, &Operation::DetachVolume { volume })?;
        let removed = self.cloud.perform("", &Operation::DeleteVolume { volume }, calls.limit).1;
        removed.map_err(failure)?;
        self.ours.change(vm, |ours| _ = ours.disks.remove(disk));
        Ok(())
    }

    fn attach_port(&self, vm: &str, ours: &Ours, port: &str, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let attach = Operation::AttachPort { network: &self.made.network };
        let made = calls.perform(&ours.id, &attach).map_err(failure)?.unwrap_or_default();
        self.ours.change(vm, |ours| _ = ours.ports.insert(port.to_owned(), made));
        Ok(())
    }

    fn detach_port(&self, vm: &str, ours: &Ours, port: &str, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let none = || Failure::new(FailureKind::Vanished, format!("{vm} has no port {port:?} of this run"));
        let id = ours.ports.get(port).ok_or_else(none)?;
        calls.has(&ours.id, &Operation::DetachPort { port: id })?;
        self.ours.change(vm, |ours| _ = ours.ports.remove(port));
        Ok(())
    }

    /// Removes a server, and, once its time is taken, its images and volumes: they are its own, as snapshots and disks are elsewhere.
    fn remove(&self, vm: &str, ours: &Ours, calls: &mut Calls<'_>) -> Result<(), Failure> {
        calls.has(&ours.id, &Operation::Delete)?;
        let images = ours.snapshots.values().map(|image| Operation::DeleteImage { image });
        let volumes = ours.disks.values().map(|volume| Operation::DeleteVolume { volume });
        for operation in images.chain(volumes) {
            self.cloud.perform("", &operation, calls.limit).1.map_err(failure)?;
        }
        self.ours.remove(vm);
        Ok(())
    }

    fn act(&self, vm: &str, action: &Action, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let (ours, server) = self.still_ours(vm, calls)?;
        let (id, runs) = (ours.id.as_str(), server.power() == Some(Power::On));
        let snapshot = |name: &str| {
            let none =
                || Failure::new(FailureKind::Vanished, format!("{vm} has no snapshot {name:?} of this run"));
            ours.snapshots.get(name).cloned().ok_or_else(none)
        };
        match action {
            Action::PowerOn => calls.has(id, &Operation::Start),
            Action::PowerOff => calls.has(id, &Operation::Stop),
            Action::Reset => calls.has(id, &Operation::Reboot),
            Action::Suspend => calls.has(id, &Operation::Suspend),
            Action::Resume => calls.has(id, &Operation::Resume),
            Action::Clone { into, kind: CloneKind::Full } => self.make(into, calls),
            Action::Clone { .. } => {
                let why = "OpenStack makes servers of images, and its hosts decide how: take --clone full";
                Err(Failure::new(FailureKind::Unsupported, why))
            }
            Action::Migrate => calls.has(id, &Operation::LiveMigrate),
            Action::ColdMigrate => calls.has(id, &Operation::ColdMigrate),
            Action::Resize => self.resize(vm, &ours, calls),
            Action::Rebuild => calls.has(id, &Operation::Rebuild { image: &self.made.image.id, runs }),
            Action::Shelve => calls.has(id, &Operation::Shelve),
            Action::Unshelve => calls.has(id, &Operation::Unshelve),
            Action::Remove => self.remove(vm, &ours, calls),
            Action::CreateSnapshot { name } => self.snapshot(vm, &ours, name, calls),
            Action::DeleteSnapshot { name } => {
                calls.has(id, &Operation::DeleteImage { image: &snapshot(name)? })?;
                self.ours.change(vm, |ours| _ = ours.snapshots.remove(name));
                Ok(())
            }
            Action::RevertSnapshot { name } => {
                calls.has(id, &Operation::Rebuild { image: &snapshot(name)?, runs })
            }
            Action::Reconfigure { note } => calls.has(id, &Operation::Note { name: NOTE, text: note }),
            Action::Console => calls.has(id, &Operation::Console),
            Action::AttachDisk { name } => self.attach_disk(vm, &ours, name, calls),
            Action::DetachDisk { name } => self.detach_disk(vm, &ours, name, calls),
            Action::AttachPort { name } => self.attach_port(vm, &ours, name, calls),
            Action::DetachPort { name } => self.detach_port(vm, &ours, name, calls),
            _ => {
                let why = self.lacks(action.kind()).unwrap_or_default();
                Err(Failure::new(FailureKind::Unsupported, why))
            }
        }
    }

    fn each_of_run(
        &self,
        limit: Limit,
        mut take: impl FnMut(Server, Owned),
    ) -> Result<(Duration, Duration, u32), Failure> {
        let times = self.cloud.each_server(limit, |server| {
            let owned = Owned::of_server(&server).filter(|owned| owned.mark.run == self.run);
            if let Some(owned) = owned {
                take(server, owned);
            }
        });
        let times = times.map_err(failure)?;
        Ok((times.client, times.waited, times.retries))
    }

    fn listed(&self, calls: &mut Calls<'_>) -> Result<(), Failure> {
        let (client, waited, retries) = self.each_of_run(calls.limit, |_, _| ())?;
        calls.phases.add(Phase::Client, nanoseconds(client));
        calls.phases.add(Phase::Accepted, nanoseconds(waited));
        calls.retries += retries;
        Ok(())
    }
}

impl Platform for OnOpenStack {
    fn facts(&self) -> PlatformFacts {
        let mut facts = self.facts.clone();
        facts.notes.extend(self.cloud.silent_consoles().map(|why| format!("seen: unavailable: {why}")));
        facts
    }

    fn lacks(&self, operation: OperationKind) -> Option<String> {
        let has = Has {
            hosts: self.hosts,
            other_flavor: self.made.other_flavor.is_some(),
            volumes: self.cloud.has_volumes(),
            boots_volumes: self.address.volume_gib.is_some(),
            network: self.made.network != "none",
        };
        lacks(&has, operation)
    }

    /// Snapshots are images by themselves.
    fn migrates_snapshots(&self) -> bool {
        true
    }

    fn starts_clones(&self) -> bool {
        true
    }

    fn cold_migrates_running(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn create(&self, vm: &str, deadline: Instant) -> Result<(), Failure> {
        let mut calls = self.calls(deadline);
        self.make(vm, &mut calls)?;
        calls.has(&self.id(vm)?, &Operation::Stop)
    }

    fn perform(&self, vm: &str, action: &Action, deadline: Instant) -> Performed {
        let mut calls = self.calls(deadline);
        let result = match action {
            Action::List => self.listed(&mut calls),
            _ => self.act(vm, action, &mut calls),
        };
        Performed { phases: calls.phases, retries: calls.retries, job: calls.job, result }
    }

    /// A server that failed is none: nothing more is done with it until it is removed.
    fn state(&self, vm: &str, deadline: Instant) -> Result<Option<VmState>, Failure> {
        let Ok(id) = self.id(vm) else { return Ok(None) };
        let server = self.cloud.server(&id, Limit::at(deadline)).map_err(failure)?;
        Ok(server.and_then(|server| server.power()).map(state))
    }

    fn list(&self, deadline: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        let mut listed = Vec::new();
        self.each_of_run(Limit::at(deadline), |server, owned| {
            listed.extend(server.power().map(|power| (owned.name, state(power))));
        })?;
        Ok(listed)
    }

    fn sweep(&self, deadline: Instant) -> Result<usize, Failure> {
        let gone = |owned: &Owned| owned.mark.owner() == Owner::Gone;
        remove(&self.cloud, &self.address.to_string(), gone, deadline)
    }

    fn remove_all(&self, deadline: Instant) -> Result<usize, Failure> {
        let of_run = |owned: &Owned| {
            owned.mark.run == self.run && [VM, SNAPSHOT, DISK].iter().any(|purpose| owned.is_for(purpose))
        };
        let removed = remove(&self.cloud, &self.address.to_string(), of_run, deadline)?;
        self.ours.clear();
        Ok(removed)
    }
}

fn state(power: Power) -> VmState {
    match power {
        Power::Off => VmState::Off,
        Power::On => VmState::On,
        Power::Suspended => VmState::Suspended,
        Power::Shelved => VmState::Shelved,
    }
}

/// What bears upon which operations can be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Has {
    /// Hosts that are up, where the role may know.
    pub(super) hosts: Option<usize>,
    /// Another flavor is named.
    pub(super) other_flavor: bool,
    /// Cinder.
    pub(super) volumes: bool,
    /// First disks are volumes.
    pub(super) boots_volumes: bool,
    /// Servers are on a network.
    pub(super) network: bool,
}

/// What a cloud cannot do.
pub(super) fn no_other_flavor() -> String {
    "there is no flavor to resize to: name one by other-flavor= in the address".to_owned()
}

/// What cannot be done there, and why.
pub(super) fn lacks(has: &Has, operation: OperationKind) -> Option<String> {
    let name = operation.name();
    match operation {
        OperationKind::Migrate | OperationKind::ColdMigrate if has.hosts.is_some_and(|hosts| hosts < 2) => {
            Some("there is one host only".to_owned())
        }
        OperationKind::Migrate | OperationKind::ColdMigrate if has.hosts.is_none() => {
            Some("servers are migrated by administrators, and this role may not even list hosts".to_owned())
        }
        OperationKind::Resize if !has.other_flavor => Some(no_other_flavor()),
        OperationKind::Shutdown => {
            Some("Nova asks a guest to end before it ends it: that is power_off".to_owned())
        }
        OperationKind::AttachDisk | OperationKind::DetachDisk if !has.volumes => {
            Some("the catalogue has no service for volumes (Cinder)".to_owned())
        }
        OperationKind::AttachPort | OperationKind::DetachPort if !has.network => {
            Some("servers have no network: name one by network= in the address".to_owned())
        }
        OperationKind::CreateSnapshot | OperationKind::DeleteSnapshot | OperationKind::RevertSnapshot
            if has.boots_volumes =>
        {
            Some(
                "of a server on a volume Nova makes a snapshot in Cinder, which stays when its image goes"
                    .to_owned(),
            )
        }
        OperationKind::Rebuild if has.boots_volumes => {
            Some("virtbench speaks no version of Nova's API that rebuilds servers on volumes".to_owned())
        }
        OperationKind::MoveDisk | OperationKind::ResizeDisk => {
            Some(format!("Nova has no {name} of a server's own disk"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Has =
        Has { hosts: Some(2), other_flavor: true, volumes: true, boots_volumes: false, network: true };

    #[test]
    fn what_a_cloud_lacks_is_said_by_its_hosts_flavors_and_services() {
        let lacks = |has: Has, kind| super::lacks(&has, kind).is_some();
        let hosts = |hosts| Has { hosts, ..ALL };
        assert!(lacks(hosts(Some(1)), OperationKind::Migrate) && !lacks(ALL, OperationKind::Migrate));
        assert!(lacks(hosts(None), OperationKind::ColdMigrate) && !lacks(hosts(None), OperationKind::Clone));
        assert!(lacks(Has { other_flavor: false, ..ALL }, OperationKind::Resize));
        let without = super::lacks(&Has { volumes: false, ..ALL }, OperationKind::AttachDisk).unwrap();
        assert!(without.contains("Cinder") && !lacks(ALL, OperationKind::AttachDisk));
        assert!(lacks(Has { network: false, ..ALL }, OperationKind::AttachPort));
        let on_volumes = Has { boots_volumes: true, ..ALL };
        assert!(
            lacks(on_volumes, OperationKind::CreateSnapshot) && lacks(on_volumes, OperationKind::Rebuild)
        );
        assert!(!lacks(on_volumes, OperationKind::AttachDisk) && !lacks(ALL, OperationKind::AttachPort));
        assert!(!lacks(ALL, OperationKind::Shelve) && lacks(ALL, OperationKind::MoveDisk));
    }
}
