//! Removes what runs have made: killed ones', by the next run, and a run's own. What is removed says itself that it is a run's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use virtbench_libvirt::{Domain, ErrorKind, Hypervisor, LibvirtError, Pool, Volume};
use virtbench_mark::{Marked, Removal, RunId, remove_left_over, remove_of_run};

use super::left_run::{LeftRun, MarkedThing};
use super::made::{Made, Purpose, Source, path_in, sources};

/// How long one removal may take.
const EACH: Duration = Duration::from_secs(60);

/// What is to be removed.
#[derive(Debug, Clone, Copy)]
pub enum SweepOf<'a> {
    /// Of every run whose process on this machine has ended.
    LeftOver,
    /// Of this run, with what its VMs share.
    Run(&'a RunId),
    /// Of this run, but what its VMs share.
    VmsOf(&'a RunId),
    /// Of those of these runs that are thought dead.
    Dead(&'a BTreeSet<RunId>),
}

/// The runs that have something on a hypervisor.
///
/// # Errors
/// The connection failed.
pub fn runs_on(hypervisor: &Hypervisor) -> Result<Vec<LeftRun>, LibvirtError> {
    let (ours, _) = domains(hypervisor)?;
    let mut things = Vec::new();
    for (domain, made) in ours {
        let name = domain.name()?;
        let guest_runs = made.is_for(Purpose::Guest) && domain.is_running().unwrap_or(false);
        let names = [name].into_iter().chain(made.volumes).collect();
        things.push(MarkedThing { mark: made.mark, sign: made.sign, guest_runs, names });
    }
    Ok(LeftRun::gather(things))
}

/// Removes domains that say that virtbench made them, with the volumes that they list, whichever pool these are in; how many things.
///
/// # Errors
/// The connection failed, something cannot be removed, or it took longer. The rest is removed nevertheless.
pub fn remove_made(
    hypervisor: &Hypervisor,
    which: SweepOf<'_>,
    deadline: Instant,
) -> Result<usize, LibvirtError> {
    let limit = deadline.saturating_duration_since(Instant::now());
    let dead: BTreeSet<RunId> = match which {
        SweepOf::Dead(runs) => {
            let is_dead = |run: &LeftRun| run.standing.is_dead() && runs.contains(&run.run);
            runs_on(hypervisor)?.into_iter().filter(is_dead).map(|run| run.run).collect()
        }
        _ => BTreeSet::new(),
    };
    let (ours, foreign) = domains(hypervisor)?;
    if ours.is_empty() {
        return Ok(0);
    }
    let volumes = AllVolumes::of(hypervisor, foreign)?;
    let mut failed = None;
    // What VMs are backed by goes after them.
    let (shared, vms): (Vec<_>, Vec<_>) =
        ours.into_iter().partition(|(_, made)| made.is_for(Purpose::Shared));
    let shared = if matches!(which, SweepOf::VmsOf(_)) { Vec::new() } else { shared };
    for (domain, made) in vms.into_iter().chain(shared) {
        let mut thing = OurDomain { domain, made: None, volumes: &volumes };
        let removed = match which {
            SweepOf::LeftOver => remove_left_over(&mut thing),
            SweepOf::Run(run) | SweepOf::VmsOf(run) => remove_of_run(&mut thing, run),
            SweepOf::Dead(_) if dead.contains(&made.mark.run) => remove_of_run(&mut thing, &made.mark.run),
            SweepOf::Dead(_) => continue,
        };
        match removed {
            Ok(Removal::Removed(_)) => volumes.count(),
            Ok(Removal::Foreign | Removal::Needed(_)) => {}
            Err(error) => drop(failed.get_or_insert(error)),
        }
        if Instant::now() >= deadline {
            return Err(LibvirtError::Late { what: "remove all that runs have made", limit });
        }
    }
    failed.map_or(Ok(volumes.removed.get()), Err)
}

/// A domain with what it says of itself.
type Ours = (Domain, Made);

/// Domains that say that they are a run's, and what others use.
fn domains(hypervisor: &Hypervisor) -> Result<(Vec<Ours>, BTreeSet<Source>), LibvirtError> {
    let (mut ours, mut foreign) = (Vec::new(), BTreeSet::new());
    for domain in hypervisor.domains()? {
        let xml = match domain.xml() {
            Err(error) if error.kind() == ErrorKind::NoDomain => continue,
            xml => xml?,
        };
        match Made::read(&xml) {
            Some(made) => ours.push((domain, made)),
            None => foreign.extend(sources(&xml)),
        }
    }
    Ok((ours, foreign))
}

/// A domain, until it is removed.
struct OurDomain<'a> {
    domain: Domain,
    made: Option<Made>,
    volumes: &'a AllVolumes,
}

impl Marked for OurDomain<'_> {
    type Error = LibvirtError;

    fn written(&mut self) -> Result<Option<String>, LibvirtError> {
        self.made = match self.domain.xml() {
            Err(error) if error.kind() == ErrorKind::NoDomain => None,
            xml => Made::read(&xml?),
        };
        Ok(self.made.as_ref().map(|made| made.mark.to_string()))
    }

    /// Its volumes first: while it is there, it says that they are ours.
    fn remove(&mut self) -> Result<(), LibvirtError> {
        gone(self.domain.destroy_if_running())?;
        for path in self.made.iter().flat_map(|made| &made.volumes) {
            self.volumes.delete(path)?;
        }
        gone(self.domain.undefine(EACH))
    }
}

/// The volumes of all pools of a hypervisor, whichever pool a run is told to use.
struct AllVolumes {
    /// With their names, and the folders that they are in.
    pools: Vec<(String, String, Pool)>,
    refreshed: RefCell<BTreeSet<String>>,
    /// What domains use that are not ours, with what that is backed by.
    foreign: BTreeSet<String>,
    removed: Cell<usize>,
}

impl AllVolumes {
    fn of(hypervisor: &Hypervisor, used: BTreeSet<Source>) -> Result<Self, LibvirtError> {
        let mut pools = Vec::new();
        for name in hypervisor.pool_names()? {
            let Ok(pool) = hypervisor.pool(&name) else { continue };
            if pool.info().is_ok_and(|info| info.active)
                && let Some(folder) = pool.xml().ok().and_then(|xml| path_in(&xml, "target"))
            {
                pools.push((name, folder.trim_end_matches('/').to_owned(), pool));
            }
        }
        let mut all =
            Self { pools, refreshed: RefCell::default(), foreign: BTreeSet::new(), removed: Cell::new(0) };
        let mut paths: Vec<String> = used.into_iter().filter_map(|source| all.path_of(source)).collect();
        // What is beneath an overlay is used as well.
        while let Some(path) = paths.pop() {
            let backed = all.find(&path).ok().flatten().and_then(|volume| volume.xml().ok());
            if all.foreign.insert(path) {
                paths.extend(backed.and_then(|xml| path_in(&xml, "backingStore")));
            }
        }
        Ok(all)
    }

    fn path_of(&self, source: Source) -> Option<String> {
        match source {
            Source::Path(path) => Some(path),
            Source::Volume(pool, volume) => {
                let (.., pool) = self.pools.iter().find(|(name, ..)| *name == pool)?;
                pool.volume(&volume).and_then(|volume| volume.path()).ok()
            }
        }
    }

    fn count(&self) {
        self.removed.set(self.removed.get() + 1);
    }

    /// The volume at this path; nothing where it is gone.
    fn find(&self, path: &str) -> Result<Option<Volume>, LibvirtError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some((.., pool)) = self.pools.iter().find(|(_, target, _)| target == folder) else {
            let why =
                format!("the pool of {path}, which a run has left, is not active: start it, and sweep again");
            return Err(LibvirtError::Local(why));
        };
        if self.refreshed.borrow_mut().insert(folder.to_owned()) {
            // Others may fill it at this moment. What it had a moment ago will do.
            if let Err(error) = pool.refresh() {
                tracing::debug!(%error, folder, "a pool is taken as it was");
            }
        }
        match pool.volume(name) {
            Err(error) if error.kind() == ErrorKind::NoVolume => Ok(None),
            found => found.map(Some),
        }
    }

    /// Deletes the volume at this path, unless a domain of somebody else's uses it.
    fn delete(&self, path: &str) -> Result<(), LibvirtError> {
        if self.foreign.contains(path) {
            tracing::warn!(path, "another domain uses a volume of a run: it is left to that one");
            return Ok(());
        }
        let Some(volume) = self.find(path)? else { return Ok(()) };
        gone(volume.delete())?;
        self.count();
        Ok(())
    }
}

/// What is gone already is as good as removed.
fn gone(removed: Result<(), LibvirtError>) -> Result<(), LibvirtError> {
    removed.or_else(|error| match error.kind() {
        ErrorKind::NoDomain | ErrorKind::NoVolume => Ok(()),
        _ => Err(error),
    })
}
