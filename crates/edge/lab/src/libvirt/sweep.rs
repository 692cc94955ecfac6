//! Keeps account of what a run makes, and removes it: killed runs' things, by the next run, and a run's own. What is removed says
//! itself that it is a run's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_xml::escape::escape;
use virtbench_libvirt::{Domain, ErrorKind, Hypervisor, LibvirtError, Pool, Volume};
use virtbench_mark::{Marked, Removal, RunId, remove_left_over, remove_of_run};

use super::made::{
    LeftRun, MADE_NAMESPACE, MADE_PREFIX, Made, MarkedThing, Purpose, Source, path_in, sources,
};
use super::sign::{BEAT, Beat, Label, now_s};

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

/// How long the domain may take to be defined or changed.
const LIMIT: Duration = Duration::from_secs(60);

/// Kinds of domains that it can be of, whichever the hypervisor has.
const KINDS: [&str; 2] = ["qemu", "kvm"];

#[derive(Debug)]
struct State {
    domain: Domain,
    made: Made,
}

/// The domain, while its run lives. Dropping it ends the signs of life; the domain stays until what it lists is removed.
#[derive(Debug)]
pub struct Keeper {
    state: Arc<Mutex<State>>,
    _beat: Beat,
}

impl Keeper {
    /// The domain's name.
    #[must_use]
    pub fn name(label: &Label) -> String {
        format!("{label}.shared")
    }

    /// Defines the domain, which lists these volumes already.
    ///
    /// # Errors
    /// There is a domain of its name, which stays as it is, or the connection failed.
    pub fn define(
        hypervisor: &Hypervisor,
        label: &Label,
        run: &RunId,
        volumes: Vec<String>,
    ) -> Result<Self, LibvirtError> {
        let made = Made::new(run, Purpose::Shared, volumes);
        let name = Self::name(label);
        let define = |kind: &str| hypervisor.define(&description(kind, &name, &made), LIMIT);
        let [first, other] = KINDS;
        let domain = define(first).or_else(|error| define(other).map_err(|_| error))?;
        let state = Arc::new(Mutex::new(State { domain, made }));
        let beats = Arc::clone(&state);
        let beat = Beat::every(BEAT, move || locked(&beats).give_sign())?;
        Ok(Self { state, _beat: beat })
    }

    /// Lists a volume that is made next.
    ///
    /// # Errors
    /// The domain is gone, or the connection failed: the volume must not be made.
    pub fn list(&self, path: String) -> Result<(), LibvirtError> {
        let state = &mut *locked(&self.state);
        state.made.volumes.push(path);
        let written = state.write();
        if written.is_err() {
            state.made.volumes.pop();
        }
        written
    }

    /// Lists volumes no longer that are removed.
    pub fn forget(&self, paths: &[String]) {
        let state = &mut *locked(&self.state);
        state.made.volumes.retain(|path| !paths.contains(path));
        if let Err(error) = state.write() {
            tracing::debug!(%error, "volumes are listed that are removed");
        }
    }

    /// Gives its signs by this domain from now on, which is the same over another connection.
    pub fn use_domain(&self, domain: Domain) {
        locked(&self.state).domain = domain;
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn write(&self) -> Result<(), LibvirtError> {
        self.domain.set_element(&self.made.bare_element(), MADE_PREFIX, MADE_NAMESPACE, LIMIT)
    }

    fn give_sign(&mut self) {
        self.made.sign.seen_s = now_s();
        if let Err(error) = self.write() {
            tracing::debug!(%error, "no sign of life could be given");
        }
    }
}

fn description(kind: &str, name: &str, made: &Made) -> String {
    format!(
        "<domain type='{kind}'><name>{}</name><uuid>{}</uuid><title>virtbench, what a run has made here</title>\
         <description>It is never started, and removed when its run ends.</description><metadata>{}</metadata>\
         <memory unit='MiB'>16</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>",
        escape(name),
        made.uuid,
        made.element()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_domain_says_what_its_run_has_made() {
        let made = Made::new(&RunId::new_random(), Purpose::Shared, vec!["/pool/it's".into()]);
        assert_eq!(Made::read(&description("qemu", "a<b", &made)), Some(made));
    }
}
