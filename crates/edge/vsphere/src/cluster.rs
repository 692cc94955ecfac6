//! Where VMs are made: hosts that belong together, with what they share. A host by itself counts as a cluster.
//!
//! What an address does not name is taken where there is only one. Of several none is guessed: it may be somebody's production.

use std::collections::BTreeMap;

use roxmltree::Node;
use virtbench_https::Limit;

use crate::address::PlaceNames;
use crate::error::{Fault, VsphereError};
use crate::properties::{self, Of, PropertySet};
use crate::reply;
use crate::reply::Reference;
use crate::request::Request;
use crate::session::Session;

/// A cluster, or a host by itself, with a folder, a pool and a datastore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The folder of its VMs.
    pub folder: Reference,
    /// The pool that gives them memory and processors.
    pub pool: Reference,
    /// The datastore's name.
    pub datastore: String,
    /// The datastore, where copies are put there whatever they are copied from.
    pub store: Option<Reference>,
    /// Hosts that can be used, in no order.
    pub hosts: Vec<Reference>,
}

const HOST: PropertySet = PropertySet {
    kind: "HostSystem",
    paths: &["name", "parent", "runtime.connectionState", "runtime.inMaintenanceMode"],
};
const COMPUTE: PropertySet =
    PropertySet { kind: "ComputeResource", paths: &["name", "resourcePool", "datastore", "parent"] };
const DATASTORE: PropertySet =
    PropertySet { kind: "Datastore", paths: &["summary.name", "summary.accessible"] };
const FOLDER: PropertySet = PropertySet { kind: "Folder", paths: &["parent"] };
const DATACENTER: PropertySet = PropertySet { kind: "Datacenter", paths: &["name", "vmFolder"] };
const POOL: PropertySet = PropertySet { kind: "ResourcePool", paths: &["name", "owner"] };
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

/// The only one of some things, by their names.
fn only<T>(what: &str, all: Vec<(String, T)>, named: Option<&str>) -> Result<(String, T), VsphereError> {
    let mut names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let mut found = all.into_iter().filter(|(name, _)| named.is_none_or(|wanted| wanted == name));
    match (found.next(), found.next(), named) {
        (Some(one), None, _) => Ok(one),
        (None, ..) => Err(VsphereError::Settings(format!(
            "there is no {what}{} that can be used; there are: {names}",
            named.map(|name| format!(" {name:?}")).unwrap_or_default()
        ))),
        (Some(_), Some(_), None) => Err(VsphereError::Settings(format!(
            "name one {what} with {what}=NAME in the address, of: {names}"
        ))),
        (Some(_), Some(_), Some(name)) => Err(VsphereError::Settings(format!(
            "there are several of {what} {name:?}: name the datacenter too, with datacenter=NAME"
        ))),
    }
}

/// A host that can be used.
pub(crate) struct Host {
    name: String,
    reference: Reference,
}

/// The hosts of a view, by what they belong to.
///
/// # Errors
/// The server does not say.
pub(crate) fn hosts(
    session: &Session,
    view: &Reference,
    limit: Limit,
) -> Result<BTreeMap<Reference, Vec<Host>>, VsphereError> {
    let mut groups: BTreeMap<Reference, Vec<Host>> = BTreeMap::new();
    let take = |reference: Reference, object: Node<'_, '_>| {
        let usable = word(object, "runtime.connectionState") == "connected"
            && word(object, "runtime.inMaintenanceMode") != "true";
        let host = Host { name: word(object, "name").to_owned(), reference };
        Ok(named(object, "parent").ok().filter(|_| usable).map(|parent| (parent, host)))
    };
    properties::retrieve(session, &[HOST], Of::View(view), limit, take, |page| {
        page.into_iter().flatten().for_each(|(parent, host)| groups.entry(parent).or_default().push(host));
    })?;
    Ok(groups)
}

/// A cluster that could be meant.
struct Candidate {
    compute: Reference,
    datacenter: Datacenter,
    pool: Reference,
    stores: Vec<Reference>,
    hosts: Vec<Host>,
}

#[derive(Clone)]
struct Datacenter {
    name: String,
    folder: Reference,
}

/// The cluster that is named, or the only one.
///
/// # Errors
/// There is none, or there are several; the same of what VMs need there; or the server does not say.
pub(crate) fn find(
    session: &Session,
    groups: BTreeMap<Reference, Vec<Host>>,
    names: &PlaceNames,
    limit: Limit,
) -> Result<Cluster, VsphereError> {
    if groups.is_empty() {
        return Err(none("hosts", "no host is connected and out of maintenance"));
    }
    let mut candidates = Vec::new();
    for (compute, hosts) in groups {
        let (name, candidate) = candidate(session, compute, hosts, limit)?;
        let is_in = |wanted: &String| *wanted == candidate.datacenter.name;
        let has = |wanted: &String| candidate.hosts.iter().any(|host| host.name == *wanted);
        if names.datacenter.as_ref().is_none_or(is_in) && names.host.as_ref().is_none_or(has) {
            candidates.push((name, candidate));
        }
    }
    let (name, found) = only("cluster", candidates, names.cluster.as_deref())?;
    let stores = accessible(session, &found.stores, limit)?;
    let (datastore, store) = only("datastore", stores, names.datastore.as_deref())?;
    let pool = match &names.pool {
        Some(pool) => only("pool", pools(session, &found.compute, limit)?, Some(pool))?.1,
        None => found.pool,
    };
    let folder = match &names.folder {
        Some(folder) => named_folder(session, &found.datacenter.name, folder, limit)?,
        None => found.datacenter.folder,
    };
    let hosts =
        found.hosts.into_iter().filter(|host| names.host.as_ref().is_none_or(|name| *name == host.name));
    let hosts = hosts.map(|host| host.reference).collect();
    let store = names.datastore.as_ref().map(|_| store);
    Ok(Cluster { name, folder, pool, datastore, store, hosts })
}

fn candidate(
    session: &Session,
    compute: Reference,
    hosts: Vec<Host>,
    limit: Limit,
) -> Result<(String, Candidate), VsphereError> {
    let take = |object: Node<'_, '_>| {
        let stores = value(object, "datastore").ok_or("a cluster has no datastores")?;
        let stores = reply::children(stores, "ManagedObjectReference")
            .map(reply::reference)
            .collect::<Result<Vec<_>, _>>()?;
        Ok((
            word(object, "name").to_owned(),
            named(object, "resourcePool")?,
            stores,
            named(object, "parent")?,
        ))
    };
    // A cluster's own type would do, and so does that which it extends.
    let found = properties::of_one(session, &compute, COMPUTE, limit, take)?.value;
    let (name, pool, stores, parent) = found.ok_or_else(|| none("hosts", "their cluster is gone"))?;
    let datacenter = datacenter_above(session, parent, limit)?;
    Ok((name, Candidate { compute, datacenter, pool, stores, hosts }))
}

fn accessible(
    session: &Session,
    stores: &[Reference],
    limit: Limit,
) -> Result<Vec<(String, Reference)>, VsphereError> {
    let mut found = Vec::new();
    for store in stores {
        let take = |object: Node<'_, '_>| {
            Ok((word(object, "summary.accessible") != "false")
                .then(|| word(object, "summary.name").to_owned()))
        };
        let name = properties::of_one(session, store, DATASTORE, limit, take)?.value.flatten();
        found.extend(name.map(|name| (name, store.clone())));
    }
    Ok(found)
}

/// All pools of a cluster.
fn pools(
    session: &Session,
    compute: &Reference,
    limit: Limit,
) -> Result<Vec<(String, Reference)>, VsphereError> {
    let view = view_of(session, "ResourcePool", limit)?;
    let mut found = Vec::new();
    let take = |reference: Reference, object: Node<'_, '_>| {
        let is_its = named(object, "owner")? == *compute;
        Ok(is_its.then(|| (word(object, "name").to_owned(), reference)))
    };
    let read = properties::retrieve(session, &[POOL], Of::View(&view), limit, take, |page| {
        found.extend(page.into_iter().flatten());
    });
    forget_view(session, &view, limit);
    read.map(|_| found)
}

fn named_folder(
    session: &Session,
    datacenter: &str,
    folder: &str,
    limit: Limit,
) -> Result<Reference, VsphereError> {
    let path = if folder.starts_with('/') { folder.to_owned() } else { format!("/{datacenter}/vm/{folder}") };
    let found = by_path(session, &path, limit)?.filter(|found| found.kind() == "Folder");
    found.ok_or_else(|| {
        VsphereError::Settings(format!("there is no folder {path}: see folder= in the address"))
    })
}

/// What is at a path of the inventory.
pub(crate) fn by_path(
    session: &Session,
    path: &str,
    limit: Limit,
) -> Result<Option<Reference>, VsphereError> {
    let request =
        Request::new("FindByInventoryPath", &session.content().search, |xml| xml.text("inventoryPath", path));
    let found =
        |response: Node<'_, '_>| reply::child(response, "returnval").map(reply::reference).transpose();
    Ok(session.call(&request, limit, found)?.value)
}

/// A view of all objects of a kind.
pub(crate) fn view_of(session: &Session, kind: &str, limit: Limit) -> Result<Reference, VsphereError> {
    let content = session.content();
    let request = Request::new("CreateContainerView", &content.views, |xml| {
        xml.reference("container", &content.root);
        xml.text("type", kind);
        xml.text("recursive", "true");
    });
    Ok(session.call(&request, limit, reply::returned)?.value)
}

/// Gives a view up.
pub(crate) fn forget_view(session: &Session, view: &Reference, limit: Limit) {
    let _ = session.call(&Request::new("DestroyView", view, |_| {}), limit, |_| Ok(()));
}

fn datacenter_above(
    session: &Session,
    mut above: Reference,
    limit: Limit,
) -> Result<Datacenter, VsphereError> {
    for _ in 0..DEEPEST {
        if above.kind() == "Datacenter" {
            let take = |object: Node<'_, '_>| {
                Ok(Datacenter { name: word(object, "name").to_owned(), folder: named(object, "vmFolder")? })
            };
            let found = properties::of_one(session, &above, DATACENTER, limit, take)?;
            return found.value.ok_or_else(|| none("folders", "the datacenter is gone"));
        }
        let parent = properties::of_one(session, &above, FOLDER, limit, |object| named(object, "parent"))?;
        above = parent.value.ok_or_else(|| none("folders", "a folder is gone"))?;
    }
    Err(none("folders", "the hosts are in no datacenter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_taken_and_of_several_none_is_guessed() {
        let all = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), ())).collect::<Vec<_>>();
        let said = |names: &[&str], named| only("cluster", all(names), named).unwrap_err().to_string();
        assert_eq!(only("cluster", all(&["a"]), None).unwrap().0, "a");
        assert_eq!(only("cluster", all(&["b", "a"]), Some("a")).unwrap().0, "a");
        assert!(said(&["b", "a"], None).contains("cluster=NAME in the address, of: a, b"));
        assert!(said(&["b", "a"], Some("c")).contains("no cluster \"c\" that can be used; there are: a, b"));
        assert!(said(&["a", "a"], Some("a")).contains("datacenter=NAME"));
        assert!(said(&[], None).contains("there are: none"));
    }
}
