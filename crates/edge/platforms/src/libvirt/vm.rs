//! The operations, each on one domain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use virtbench_lab::{MADE_NAMESPACE, MADE_PREFIX, Made, Purpose, check_free};
use virtbench_libvirt::{
    Domain, DomainChange, DomainEvents, ErrorKind, Hypervisor, LibvirtError, Pool, StartFlags,
};
use virtbench_mark::RunId;
use virtbench_operations::VmState;
use virtbench_record::{FailureKind, JobFigure, Phase};

use super::guest::{answers, close, failure, open_console, wait_for_answer};
use super::xml::{Disks, Format, Model, disk_xml, snapshot, volume};
use crate::platform::{Action, Failure, JobTold, Stopwatch, elsewhere_only};

/// How often it is looked for an effect.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Devices of disks that are attached, by the disk's number.
const TARGETS: [&str; 8] = ["vdb", "vdc", "vdd", "vde", "vdf", "vdg", "vdh", "vdi"];

/// Size of a disk that is attached.
const ATTACHED_BYTES: u64 = 1 << 20;

/// What an operation works on.
pub(super) struct Bench<'a> {
    pub(super) hypervisor: &'a Hypervisor,
    pub(super) events: Option<&'a DomainEvents>,
    pub(super) pool: &'a Pool,
    pub(super) model: &'a Model,
    pub(super) disks: &'a Disks,
    pub(super) deadline: Instant,
}

impl Bench<'_> {
    pub(super) fn left(&self) -> Duration {
        // A call that has no time at all would be said to be late before it began.
        self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    fn lives(&self) -> bool {
        self.model.boot.is_some()
    }

    /// Does it and waits until it is seen. Migration takes two hypervisors and is elsewhere.
    pub(super) fn perform(
        &self,
        domain: Option<&Domain>,
        name: &str,
        action: &Action,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        let there =
            || domain.ok_or_else(|| Failure::new(FailureKind::Vanished, format!("{name} is not there")));
        match action {
            Action::PowerOn => self.power_on(there()?, name, watch),
            Action::PowerOff => self.stop(there()?, name, watch),
            Action::Suspend => self.suspend(there()?, name, watch),
            Action::Resume => self.resume(there()?, name, watch),
            Action::Clone { into, kind } => self.clone_vm(name, into, *kind, watch),
            Action::Remove => self.remove(there()?, name, watch),
            Action::CreateSnapshot { name } => self.create_snapshot(there()?, name, watch),
            Action::DeleteSnapshot { name } => self.delete_snapshot(there()?, name, watch),
            Action::Reconfigure { note } => self.reconfigure(there()?, note, watch),
            Action::AttachDisk { name: disk } => self.attach(there()?, name, disk, watch),
            Action::DetachDisk { name: disk } => self.detach(there()?, name, disk, watch),
            Action::Console => self.console(there()?, watch),
            Action::List | Action::Migrate => {
                Err(Failure::new(FailureKind::Unsupported, "it is for no single domain"))
            }
            _ => {
                let why = elsewhere_only(action.kind()).unwrap_or_default();
                Err(Failure::new(FailureKind::Unsupported, why))
            }
        }
    }

    fn power_on(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let start = || domain.start(StartFlags::default(), self.left());
        self.changes(name, DomainChange::Started, start, watch)?;
        let seen = if self.lives() {
            wait_for_answer(domain, self.deadline)
        } else {
            self.until("it runs", || Ok(state(domain)? == VmState::On))
        };
        watch.lap(Phase::Seen);
        seen
    }

    fn stop(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        self.changes(name, DomainChange::Stopped, || domain.destroy(), watch)?;
        let seen = self.until("it is off", || Ok(state(domain)? == VmState::Off));
        watch.lap(Phase::Seen);
        seen
    }

    fn suspend(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        self.changes(name, DomainChange::Suspended, || domain.suspend(), watch)?;
        let seen = self.until("it stands still", || Ok(state(domain)? == VmState::Suspended));
        watch.lap(Phase::Seen);
        seen
    }

    fn resume(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        self.changes(name, DomainChange::Resumed, || domain.resume(), watch)?;
        let runs = self.until("it runs", || Ok(state(domain)? == VmState::On));
        let seen =
            if self.lives() { runs.and_then(|()| wait_for_answer(domain, self.deadline)) } else { runs };
        watch.lap(Phase::Seen);
        seen
    }

    fn reconfigure(&self, domain: &Domain, note: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let runs = self.asks(watch, || state(domain))? != VmState::Off;
        let change = || domain.describe(note, runs, self.left());
        self.does(watch, change, "its description says so", || {
            Ok(domain.description().map_err(failure)? == note)
        })
    }

    fn create_snapshot(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let xml = snapshot(name);
        let create = || domain.create_snapshot(&xml, self.left());
        self.does(watch, create, "the snapshot is there", || domain.has_snapshot(name).map_err(failure))
    }

    fn delete_snapshot(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let delete = || domain.delete_snapshot(name, self.left());
        self.does(watch, delete, "the snapshot is gone", || {
            Ok(!domain.has_snapshot(name).map_err(failure)?)
        })
    }

    fn remove(&self, domain: &Domain, name: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let made = self.asks(watch, || self.made(domain, name))?;
        // While it is there, it says that its volumes are ours.
        let remove = || {
            let names = made.volumes.iter().filter_map(|path| path.rsplit('/').next());
            names.into_iter().try_for_each(|disk| self.delete_volume(disk))?;
            domain.undefine(self.left())
        };
        self.does(watch, remove, "it is gone", || match self.hypervisor.domain(name) {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == ErrorKind::NoDomain => Ok(true),
            Err(error) => Err(failure(error)),
        })
    }

    /// What a domain says of itself, if it is of this run.
    fn made(&self, domain: &Domain, name: &str) -> Result<Made, Failure> {
        let made = Made::read(&domain.xml().map_err(failure)?).filter(|made| made.mark.run == self.model.run);
        made.ok_or_else(|| {
            Failure::new(FailureKind::Denied, format!("{name} is not of this run: it is left alone"))
        })
    }

    /// Has a domain list these volumes as its own.
    fn list_volumes(&self, domain: &Domain, made: &Made) -> Result<(), LibvirtError> {
        domain.set_element(&made.bare_element(), MADE_PREFIX, MADE_NAMESPACE, self.left())
    }

    /// What has to be asked before the operation is: the time is the platform's, and not ours.
    fn asks<T>(&self, watch: &mut Stopwatch, ask: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        watch.lap(Phase::Client);
        let answer = ask();
        watch.lap(Phase::Accepted);
        answer
    }

    fn delete_volume(&self, name: &str) -> Result<(), LibvirtError> {
        match self.pool.volume(name).and_then(|volume| volume.delete()) {
            Err(error) if error.kind() == ErrorKind::NoVolume => Ok(()),
            deleted => deleted,
        }
    }

    fn attach(&self, domain: &Domain, vm: &str, disk: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let name = attached_name(vm, disk);
        let target = self.asks(watch, || self.free_target(domain))?;
        let mut made = self.asks(watch, || self.made(domain, vm))?;
        made.volumes.push(self.disks.path(&name));
        let attach = || {
            check_free(self.pool, &name)?;
            self.list_volumes(domain, &made)?;
            let path = self.pool.create(&volume(&name, ATTACHED_BYTES, Format::Qcow2, None))?.path()?;
            domain.attach(&disk_xml((&path, Format::Qcow2), target), self.left())
        };
        self.does(watch, attach, "the disk is there", || has(domain, &name))
    }

    fn detach(&self, domain: &Domain, vm: &str, disk: &str, watch: &mut Stopwatch) -> Result<(), Failure> {
        let name = attached_name(vm, disk);
        let (path, xml) = self.asks(watch, || {
            let path = self.pool.volume(&name).and_then(|volume| volume.path()).map_err(failure)?;
            Ok((path, domain.xml().map_err(failure)?))
        })?;
        let mut made = Made::read(&xml).filter(|made| made.mark.run == self.model.run);
        made.iter_mut().for_each(|made| made.volumes.retain(|one| *one != path));
        let target = TARGETS
            .into_iter()
            .find(|target| xml.contains(&format!("<target dev='{target}'")) && belongs(&xml, &path, target));
        let target =
            target.ok_or_else(|| Failure::new(FailureKind::Vanished, format!("{name} is not attached")))?;
        let detach = || {
            domain.detach(&disk_xml((&path, Format::Qcow2), target), self.left())?;
            self.delete_volume(&name)?;
            made.as_ref().map_or(Ok(()), |made| self.list_volumes(domain, made))
        };
        self.does(watch, detach, "the disk is gone", || Ok(!has(domain, &name)?))
    }

    fn free_target(&self, domain: &Domain) -> Result<&'static str, Failure> {
        let xml = domain.xml().map_err(failure)?;
        let free = TARGETS.into_iter().find(|target| !xml.contains(&format!("<target dev='{target}'")));
        free.ok_or_else(|| Failure::new(FailureKind::NoRoom, "the domain has as many disks as it can"))
    }

    fn console(&self, domain: &Domain, watch: &mut Stopwatch) -> Result<(), Failure> {
        watch.lap(Phase::Client);
        let opened = open_console(domain, self.deadline);
        watch.lap(Phase::Running);
        let seen = opened.and_then(|console| {
            let seen = answers(&console, self.deadline);
            watch.lap(Phase::Seen);
            close(&console);
            seen
        });
        watch.lap(Phase::Seen);
        seen
    }

    /// Makes a call upon which libvirt says itself that this has happened; what follows until the answer is `done`.
    fn changes(
        &self,
        name: &str,
        change: DomainChange,
        call: impl FnOnce() -> Result<(), LibvirtError>,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        watch.lap(Phase::Client);
        let watched = self.events.map(|events| events.watch(name));
        let done = call();
        if let Some(at) = watched.and_then(|watched| watched.first(change)) {
            watch.lap_until(Phase::Running, at);
            watch.lap(Phase::Done);
        } else {
            // An event that comes after the answer says nothing about what was before it.
            watch.lap(Phase::Running);
        }
        done.map_err(failure)
    }

    /// Makes a call and waits for its effect.
    fn does(
        &self,
        watch: &mut Stopwatch,
        call: impl FnOnce() -> Result<(), LibvirtError>,
        what: &str,
        seen: impl Fn() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        watch.lap(Phase::Client);
        let done = call();
        watch.lap(Phase::Running);
        done.map_err(failure)?;
        let seen = self.until(what, seen);
        watch.lap(Phase::Seen);
        seen
    }

    pub(super) fn until(&self, what: &str, seen: impl Fn() -> Result<bool, Failure>) -> Result<(), Failure> {
        loop {
            if seen()? {
                return Ok(());
            }
            if Instant::now() >= self.deadline {
                return Err(Failure::new(
                    FailureKind::NotSeen,
                    format!("it was done, but not in time seen that {what}"),
                ));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// How a domain is.
pub(super) fn state(domain: &Domain) -> Result<VmState, Failure> {
    Ok(match domain.runs_and_waits().map_err(failure)? {
        (false, _) => VmState::Off,
        (true, true) => VmState::Suspended,
        (true, false) => VmState::On,
    })
}

pub(super) fn has(domain: &Domain, disk: &str) -> Result<bool, Failure> {
    Ok(domain.xml().map_err(failure)?.contains(&format!("/{disk}'")))
}

/// Whether the disk at this path has this target.
fn belongs(xml: &str, path: &str, target: &str) -> bool {
    let Ok(document) = roxmltree::Document::parse(xml) else { return false };
    let of = |node: roxmltree::Node<'_, '_>, tag: &str, name: &str| {
        node.children()
            .find(|child| child.has_tag_name(tag))
            .and_then(|child| child.attribute(name).map(str::to_owned))
    };
    document.descendants().filter(|node| node.has_tag_name("disk")).any(|disk| {
        of(disk, "source", "file").as_deref() == Some(path)
            && of(disk, "target", "dev").as_deref() == Some(target)
    })
}

pub(super) fn attached_name(vm: &str, disk: &str) -> String {
    format!("{vm}-{disk}.qcow2")
}

/// Names and states of a run's VMs on one hypervisor. Names only say where to look: whose a VM is it says itself.
pub(super) fn states(
    hypervisor: &Hypervisor,
    label: &str,
    run: &RunId,
) -> Result<Vec<(String, VmState)>, Failure> {
    let prefix = format!("{label}-");
    let mut found = Vec::new();
    for domain in hypervisor.domains().map_err(failure)? {
        let name = domain.name().map_err(failure)?;
        if !name.starts_with(&prefix) {
            continue;
        }
        match is_vm_of(&domain, run).and_then(|is_ours| Ok(is_ours.then_some(state(&domain)?))) {
            Ok(state) => found.extend(state.map(|state| (name, state))),
            // It was removed meanwhile.
            Err(error) if error.kind == FailureKind::Vanished => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn is_vm_of(domain: &Domain, run: &RunId) -> Result<bool, Failure> {
    let made = Made::read(&domain.xml().map_err(failure)?);
    Ok(made.is_some_and(|made| made.mark.run == *run && made.is_for(Purpose::Vm)))
}

/// libvirt's names and how many of ours are one of its.
const FIGURES: [(JobFigure, &str, u64); 6] = [
    (JobFigure::ElapsedNs, "time_elapsed", 1_000_000),
    (JobFigure::SetupNs, "setup_time", 1_000_000),
    (JobFigure::DowntimeNs, "downtime", 1_000_000),
    (JobFigure::MovedBytes, "data_processed", 1),
    (JobFigure::TotalBytes, "data_total", 1),
    (JobFigure::Passes, "memory_iteration", 1),
];

/// What it tells of the job that a domain has just been through.
pub(super) fn completed(domain: &Domain) -> JobTold {
    match domain.completed_job() {
        Ok(told) if told.is_empty() => Err("libvirt keeps no statistics of it".into()),
        Ok(told) => Ok(figures(&told)),
        Err(error) => Err(format!("libvirt does not tell: {error}")),
    }
}

/// How far the job is that a domain is still in, in words; nothing where there is none.
pub(super) fn under_way(domain: &Domain) -> Option<String> {
    let told = figures(&domain.current_job().ok()?);
    let of = |figure| told.get(&figure).copied();
    let (moved, total) = (of(JobFigure::MovedBytes)?, of(JobFigure::TotalBytes)?);
    Some(format!("its job goes on: {} of {} MiB are moved", moved >> 20, total >> 20))
}

fn figures(told: &BTreeMap<String, u64>) -> BTreeMap<JobFigure, u64> {
    let known = FIGURES
        .into_iter()
        .filter_map(|(figure, name, factor)| Some((figure, told.get(name)?.saturating_mul(factor))));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_known_by_its_path_and_target() {
        let xml = "<domain><disk><source file='/pool/l-1.qcow2'/><target dev='vda'/></disk></domain>";
        assert!(belongs(xml, "/pool/l-1.qcow2", "vda") && !belongs(xml, "/pool/l-1.qcow2", "vdb"));
    }

    #[test]
    fn figures_have_our_units_and_what_is_not_told_is_left_out() {
        let told = [("downtime", 12), ("data_total", 1 << 20), ("memory_bps", 3)];
        let told = figures(&told.map(|(name, value)| (name.to_owned(), value)).into());
        let wanted = [(JobFigure::DowntimeNs, 12_000_000), (JobFigure::TotalBytes, 1 << 20)];
        assert_eq!(told, BTreeMap::from(wanted));
    }
}
