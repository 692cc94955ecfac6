//! A domain that is never started and keeps account of what a run makes on a hypervisor: volumes that it lists, and signs of life.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quick_xml::escape::escape;
use virtbench_libvirt::{Domain, Hypervisor, LibvirtError};
use virtbench_mark::RunId;

use super::beat::Beat;
use super::label::Label;
use super::made::{MADE_NAMESPACE, MADE_PREFIX, Made, Purpose};
use super::sign::{BEAT, now_s};

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
