//! Where VMs are made: hosts that belong together, with what they share. A host by itself counts as a cluster.

use std::collections::BTreeMap;

use roxmltree::Node;

use crate::error::VsphereError;
use crate::fault::Fault;
use crate::limit::Limit;
use crate::properties::{self, Of, Wanted};
use crate::reference::Reference;
use crate::reply;
use crate::session::Session;

/// A cluster, or a host by itself, with a folder, a pool and a datastore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The folder of its VMs.
    pub folder: Reference,
    /// The pool that gives them memory and processors.
    pub pool: Reference,
    /// The name of the datastore with most space.
    pub datastore: String,
    /// Hosts that can be used, in no order.
    pub hosts: Vec<Reference>,
}

const HOST: Wanted =
    Wanted { kind: "HostSystem", paths: &["parent", "runtime.connectionState", "runtime.inMaintenanceMode"] };
const COMPUTE: Wanted = Wanted { kind: "ComputeResource", paths: &["resourcePool", "datastore", "parent"] };
const DATASTORE: Wanted =
    Wanted { kind: "Datastore", paths: &["summary.name", "summary.freeSpace", "summary.accessible"] };
const FOLDER: Wanted = Wanted { kind: "Folder", paths: &["parent"] };
const DATACENTER: Wanted = Wanted { kind: "Datacenter", paths: &["vmFolder"] };
/// Folders within folders.
const DEEPEST: usize = 64;

fn value<'a, 'input>(object: Node<'a, 'input>, wanted: &str) -> Option<Node<'a, 'input>> {
    properties::values(object).find(|(path, _)| *path == wanted).map(|(_, value)| value)
}

fn named(object: Node<'_, '_>, wanted: &str) -> Result<Reference, String> {
    value(object, wanted).ok_or_else(|| format!("an object has no {wanted}")).and_then(reply::reference)
}

fn word<'a>(object: Node<'a, '_>, wanted: &str) -> &'a str {
    value(object, wanted).and_then(|value| value.text()).unwrap_or("")
}

fn none(what: &'static str, why: &str) -> VsphereError {
    VsphereError::Fault { what, fault: Fault::new("InsufficientResourcesFault", why) }
}

/// The hosts of a view, by what they belong to.
///
/// # Errors
/// The server does not say.
pub(crate) fn hosts(
    session: &Session,
    view: &Reference,
    limit: Limit,
) -> Result<BTreeMap<Reference, Vec<Reference>>, VsphereError> {
    let mut groups: BTreeMap<Reference, Vec<Reference>> = BTreeMap::new();
    let take = |host: Reference, object: Node<'_, '_>| {
        let usable = word(object, "runtime.connectionState") == "connected"
            && word(object, "runtime.inMaintenanceMode") != "true";
        Ok(named(object, "parent").ok().filter(|_| usable).map(|parent| (parent, host)))
    };
    properties::retrieve(session, &[HOST], Of::View(view), limit, take, |page| {
        page.into_iter().flatten().for_each(|(parent, host)| groups.entry(parent).or_default().push(host));
    })?;
    Ok(groups)
}

/// The cluster with the most hosts.
///
/// # Errors
/// There is no host, no datastore, or the server does not say.
pub(crate) fn find(
    session: &Session,
    groups: BTreeMap<Reference, Vec<Reference>>,
    limit: Limit,
) -> Result<Cluster, VsphereError> {
    let largest = groups.into_iter().max_by_key(|(_, hosts)| hosts.len());
    let (compute, hosts) =
        largest.ok_or_else(|| none("hosts", "no host is connected and out of maintenance"))?;
    let take = |object: Node<'_, '_>| {
        let stores = value(object, "datastore").ok_or("a cluster has no datastores")?;
        let stores = reply::children(stores, "ManagedObjectReference")
            .map(reply::reference)
            .collect::<Result<Vec<_>, _>>()?;
        Ok((named(object, "resourcePool")?, stores, named(object, "parent")?))
    };
    // A cluster's own type would do, and so does that which it extends.
    let found = properties::of_one(session, &compute, COMPUTE, limit, take)?.value;
    let (pool, stores, parent) = found.ok_or_else(|| none("hosts", "their cluster is gone"))?;
    let datastore = roomiest(session, &stores, limit)?;
    Ok(Cluster { folder: vm_folder(session, parent, limit)?, pool, datastore, hosts })
}

fn roomiest(session: &Session, stores: &[Reference], limit: Limit) -> Result<String, VsphereError> {
    let mut best: Option<(u64, String)> = None;
    for store in stores {
        let take = |object: Node<'_, '_>| {
            let free = word(object, "summary.freeSpace").trim().parse::<u64>().unwrap_or(0);
            Ok((word(object, "summary.accessible") != "false")
                .then(|| (free, word(object, "summary.name").to_owned())))
        };
        let store = properties::of_one(session, store, DATASTORE, limit, take)?.value.flatten();
        best = best.into_iter().chain(store).max();
    }
    best.map(|(_, name)| name).ok_or_else(|| none("datastores", "no datastore of these hosts is accessible"))
}

/// The folder for VMs of the datacenter above.
fn vm_folder(session: &Session, mut above: Reference, limit: Limit) -> Result<Reference, VsphereError> {
    for _ in 0..DEEPEST {
        if above.kind() == "Datacenter" {
            let found =
                properties::of_one(session, &above, DATACENTER, limit, |object| named(object, "vmFolder"))?;
            return found.value.ok_or_else(|| none("folders", "the datacenter is gone"));
        }
        let parent = properties::of_one(session, &above, FOLDER, limit, |object| named(object, "parent"))?;
        above = parent.value.ok_or_else(|| none("folders", "a folder is gone"))?;
    }
    Err(none("folders", "the hosts are in no datacenter"))
}
