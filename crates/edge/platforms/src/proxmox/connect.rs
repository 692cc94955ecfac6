//! Connects to a cluster, and finds where VMs are made there and what of.

use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use virtbench_lab::Label;
use virtbench_mark::{Owner, RunId};
use virtbench_proxmox::{Address, Limit, Machine, Node, Storage};
use virtbench_record::{FailureKind, PlatformFacts};

use super::failure::{failure, open};
use super::owned::{Numbers, Owned, keeper, owned_machines, remove};
use super::platform::{OnProxmox, ProxmoxOptions, Template};
use crate::platform::{Failure, RunVms};

impl OnProxmox {
    /// Whether this is an address of Proxmox VE's.
    ///
    /// # Errors
    /// Why not, with what to write.
    pub fn check(address: &str) -> Result<(), Failure> {
        Address::parse(address).map(drop).map_err(failure)
    }

    /// The name and the port of the server at such an address.
    #[must_use]
    pub fn server_of(address: &str) -> Option<(String, u16)> {
        let host = Address::parse(address).ok()?.host;
        let (name, port) = host.rsplit_once(':')?;
        Some((name.to_owned(), port.parse().ok()?))
    }

    /// Connects to `proxmox:HOST`, with a label that nothing has had before, and removes what killed runs have left.
    ///
    /// # Errors
    /// The address makes no sense; the server cannot be reached or trusted, refuses the user, or has no node or storage
    /// that can be used; the template is not there.
    pub fn connect(address: &str, options: ProxmoxOptions, deadline: Instant) -> Result<Self, Failure> {
        let (server, address) = open(address, deadline)?;
        let limit = Limit::at(deadline);
        let gone = |owned: &Owned| owned.mark.owner() == Owner::Gone;
        let swept = remove(&server, &address.to_string(), gone, deadline)?;
        let machines = server.machines(limit).map_err(failure)?;
        let nodes = server.nodes(limit).map_err(failure)?;
        let used = used_nodes(&address, &nodes)?;
        let storages = server.storages(&used[0], limit).map_err(failure)?;
        let storage = used_storage(&address, &storages)?;
        let other_storage = other_storage(&storages, &storage);
        let template = address.template.as_deref().map(|wanted| template(&machines, wanted)).transpose()?;
        let ours = owned_machines(&server, &machines, deadline)?.len();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut facts = PlatformFacts {
            address: address.to_string(),
            software: format!("Proxmox VE {}", server.version()),
            hosts: count(used.len()),
            others: count(machines.len() - ours),
            notes: vec![
                format!(
                    "VMs are made on {} of {} nodes, on the storage {}",
                    used.len(),
                    nodes.len(),
                    storage.name
                ),
                "the end of a task is known to a twentieth of its time: that much of it counts to done"
                    .to_owned(),
            ],
        };
        if let Some(template) = &template {
            facts.notes.push(format!("VMs are clones of {}", template.name));
        }
        if swept > 0 {
            facts.notes.push(format!("removed {swept} VMs that killed runs had left there"));
        }
        let (label, run) = (Label::new().to_string(), RunId::new_random());
        let numbers = Numbers::from(server.next_number(limit).map_err(failure)?);
        let place = (used[0].as_str(), address.pool.as_deref());
        let keeper = keeper(&server, place, (&label, &run), &numbers, limit)?;
        Ok(Self {
            server,
            address,
            label,
            run,
            nodes: used,
            storage,
            other_storage,
            template,
            options,
            facts,
            numbers,
            turn: AtomicUsize::new(0),
            ours: RunVms::default(),
            _keeper: keeper,
        })
    }
}

/// The nodes on which VMs are made: the one that is named, or all.
fn used_nodes(address: &Address, nodes: &[Node]) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let used = match &address.node {
        Some(node) => names.iter().filter(|name| *name == node).cloned().collect(),
        None => names.clone(),
    };
    if used.is_empty() {
        let named = address.node.as_ref().map(|node| format!(" {node:?}")).unwrap_or_default();
        let why = format!("there is no node{named} online there: it has {}", names.join(", "));
        return Err(Failure::new(FailureKind::Refused, why));
    }
    Ok(used)
}

/// The storage that is named, or the one with the most room: a shared one first, so that VMs move without their disks.
fn used_storage(address: &Address, storages: &[Storage]) -> Result<Storage, Failure> {
    let found = match &address.storage {
        Some(name) => storages.iter().find(|storage| storage.name == *name),
        None => storages.iter().max_by_key(|storage| (storage.is_shared, storage.free)),
    };
    let none = || {
        let names: Vec<&str> = storages.iter().map(|storage| storage.name.as_str()).collect();
        let why = format!(
            "there is no active storage for disks of VMs{}: it has {}; see storage=NAME in the address",
            address.storage.as_ref().map(|name| format!(" named {name:?}")).unwrap_or_default(),
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        );
        Failure::new(FailureKind::Refused, why)
    };
    found.cloned().ok_or_else(none)
}

/// Where a disk can move to and lie as it did: shared, or not.
fn other_storage(storages: &[Storage], used: &Storage) -> Option<Storage> {
    let others = storages.iter().filter(|one| one.name != used.name && one.is_shared == used.is_shared);
    others.max_by_key(|storage| storage.free).cloned()
}

/// The VM or template of this number or name.
fn template(machines: &[Machine], wanted: &str) -> Result<Template, Failure> {
    let mut found = machines.iter().filter(|vm| vm.place.vmid.to_string() == wanted || vm.name == wanted);
    match (found.next(), found.next()) {
        (Some(vm), None) => {
            Ok(Template { place: vm.place.clone(), name: vm.name.clone(), is_template: vm.is_template })
        }
        (several, _) => {
            let how_many =
                if several.is_some() { "several VMs are named" } else { "no VM has the number or name" };
            let why =
                format!("{how_many} {wanted:?}: see template= in the address, which takes a number as well");
            Err(Failure::new(FailureKind::Refused, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_is_the_one_that_is_named_or_a_shared_one_with_room() {
        let storage = |name: &str, is_shared, free| Storage { name: name.into(), is_shared, free };
        let storages = [storage("a", false, 9), storage("b", true, 5), storage("c", true, 7)];
        let used = |options: &str| {
            let address = Address::parse(&format!("proxmox:h{options}")).unwrap();
            used_storage(&address, &storages).map(|storage| storage.name)
        };
        assert_eq!(used(""), Ok("c".to_owned()));
        assert_eq!(used("?storage=a"), Ok("a".to_owned()));
        assert!(used("?storage=d").unwrap_err().message.contains("a, b, c"));
        let other = |used: &Storage| other_storage(&storages, used).map(|storage| storage.name);
        assert_eq!((other(&storages[2]), other(&storages[0])), (Some("b".to_owned()), None));
    }

    #[test]
    fn nodes_are_all_that_are_online_or_the_one_that_is_named() {
        let node = |name: &str| Node { name: name.into(), free_memory: 0 };
        let used = |options: &str| {
            used_nodes(&Address::parse(&format!("proxmox:h{options}")).unwrap(), &[node("a"), node("b")])
        };
        assert_eq!(used("").unwrap().len(), 2);
        assert_eq!(used("?node=b").unwrap(), ["b"]);
        assert!(used("?node=c").unwrap_err().message.contains("a, b"));
    }
}
