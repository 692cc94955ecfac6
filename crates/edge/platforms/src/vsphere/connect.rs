//! Connects to a vCenter or a host, and finds where VMs are made there and what of.

use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use virtbench_lab::Label;
use virtbench_mark::{Owner, RunId};
use virtbench_record::{FailureKind, PlatformFacts};
use virtbench_vsphere::{Address, Cluster, Inventory, Reference, Vsphere};

use super::done::{failure, open};
use super::owned::{Owned, in_words, keeper, remove, shape_of};
use super::platform::OnVsphere;
use crate::platform::{Failure, RunVms};

/// What the VMs of a run are made of.
#[derive(Debug, Clone, Copy)]
pub struct VsphereOptions {
    /// Memory of each, in bytes.
    pub memory_bytes: u64,
    /// Bytes of each disk.
    pub disk_bytes: u64,
}

impl OnVsphere {
    /// Whether this is an address of vSphere's.
    ///
    /// # Errors
    /// Why not, with what to write.
    pub fn check(address: &str) -> Result<(), Failure> {
        Address::parse(address).map(drop).map_err(failure)
    }

    /// Connects to `vsphere+https://...`, with a label that nothing has had before, and removes what killed runs have left.
    ///
    /// # Errors
    /// The address makes no sense; the server cannot be reached or trusted, refuses the user, or has no host that can be
    /// used; it has several places for VMs and none is named; the template is not there.
    pub fn connect(address: &str, options: VsphereOptions, deadline: Instant) -> Result<Self, Failure> {
        let (server, address) = open(address, deadline)?;
        let (hosts, cluster) = server.cluster(&address.place, deadline).map_err(failure)?;
        let gone = |owned: &Owned| owned.mark.owner() == Owner::Gone;
        let swept = remove(&server, &address.to_string(), gone, deadline)?;
        let inventory = server.inventory(deadline).map_err(failure)?;
        let template = template(&server, &address, &inventory, deadline)?;
        let wanted = shape_of(options.memory_bytes, options.disk_bytes);
        let hardware = template.as_ref().map(|template| server.hardware(template, deadline));
        let hardware = hardware.transpose().map_err(failure)?;
        let mut facts = facts(&server, &address, (hosts, &cluster), &inventory);
        facts.notes.push(in_words(wanted, hardware.as_ref()));
        if swept > 0 {
            facts.notes.push(format!("removed {swept} VMs that killed runs had left there"));
        }
        let (label, run) = (Label::new().to_string(), RunId::new_random());
        let keeper = keeper(&server, &cluster, (&label, &run), deadline)?;
        Ok(Self {
            server,
            address: address.to_string(),
            label,
            run,
            cluster,
            template,
            wanted,
            facts,
            turn: AtomicUsize::new(0),
            ours: RunVms::default(),
            _keeper: keeper,
        })
    }
}

fn facts(
    server: &Vsphere,
    address: &Address,
    (hosts, cluster): (usize, &Cluster),
    inventory: &Inventory,
) -> PlatformFacts {
    let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
    let others = inventory.iter().filter(|(_, machine)| Owned::read(machine).is_none()).count();
    let about = server.about();
    PlatformFacts {
        address: address.to_string(),
        software: format!("{}, API {}", about.software, about.api),
        hosts: count(cluster.hosts.len()),
        others: count(others),
        notes: vec![format!(
            "VMs are made on {} of {hosts} hosts, in {} on the datastore {}",
            cluster.hosts.len(),
            cluster.name,
            cluster.datastore
        )],
    }
}

/// The VM or template of which VMs are made, if one is named.
fn template(
    server: &Vsphere,
    address: &Address,
    inventory: &Inventory,
    deadline: Instant,
) -> Result<Option<Reference>, Failure> {
    let Some(name) = &address.template else { return Ok(None) };
    if server.about().is_host() {
        let why = "a host without a vCenter has no CloneVM, so that nothing is made of a template: leave template= out";
        return Err(Failure::new(FailureKind::Unsupported, why));
    }
    let found = if name.contains('/') {
        let path = if name.starts_with('/') { name.clone() } else { format!("/{name}") };
        server.machine_at(&path, deadline).map_err(failure)?
    } else {
        inventory.named(name).cloned()
    };
    let none = || {
        let why = format!(
            "no VM or template {name:?}, or several: see template=NAME in the address, or name it by its path, such as /DC/vm/NAME"
        );
        Failure::new(FailureKind::Refused, why)
    };
    found.ok_or_else(none).map(Some)
}
