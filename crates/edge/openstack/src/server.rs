//! Servers, as Nova tells of them, in long lists page by page: no more than one page is in memory as text.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use virtbench_https::Limit;

use crate::error::OpenStackError;
use crate::session::{Call, Session, encoded};

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Such as `ACTIVE`.
    pub status: String,
    /// What is being done with it, such as `spawning`.
    #[serde(rename = "OS-EXT-STS:task_state")]
    pub task: Option<String>,
    /// The host that it runs on, where the role may know.
    #[serde(rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// What its makers wrote.
    pub metadata: BTreeMap<String, String>,
    /// What they wrote besides.
    pub description: Option<String>,
    /// Its addresses, by network.
    pub addresses: BTreeMap<String, Vec<AddressOf>>,
    /// Why it is in `ERROR`.
    pub fault: Option<ServerFault>,
    /// What it has.
    pub flavor: FlavorOf,
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct AddressOf {
    /// The address.
    pub addr: String,
    /// 4 or 6.
    pub version: u8,
    /// `fixed` or `floating`.
    #[serde(rename = "OS-EXT-IPS:type")]
    pub kind: String,
}

/// Why a server failed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ServerFault {
    /// Like a status of HTTP.
    pub code: u64,
    /// In words.
    pub message: String,
}

/// The flavor of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct FlavorOf {
    /// Its name when the server was made.
    pub original_name: String,
}

/// Whether a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// It does not.
    Off,
    /// It does.
    On,
    /// It stands still, suspended or paused.
    Suspended,
    /// It has no host.
    Shelved,
}

impl Server {
    /// Whether it runs; nothing while it is built, resized or has failed.
    #[must_use]
    pub fn power(&self) -> Option<Power> {
        match self.status.as_str() {
            "ACTIVE" | "PASSWORD" | "REBOOT" | "HARD_REBOOT" | "MIGRATING" => Some(Power::On),
            "SHUTOFF" => Some(Power::Off),
            "SUSPENDED" | "PAUSED" => Some(Power::Suspended),
            "SHELVED" | "SHELVED_OFFLOADED" => Some(Power::Shelved),
            _ => None,
        }
    }

    /// Whether Nova has removed it.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.status.as_str(), "DELETED" | "SOFT_DELETED")
    }

    /// As an error tells how it was found.
    pub(crate) fn shown(&self) -> String {
        let task = self.task.as_ref().map(|task| format!(", task {task}")).unwrap_or_default();
        format!("last found {}{task}", self.status)
    }

    /// The first address that it can be reached at from elsewhere: a floating one before a fixed one, one of version 4 before one of version 6.
    #[must_use]
    pub fn outer_address(&self) -> Option<&str> {
        let all = self.addresses.values().flatten().filter(|one| !one.addr.is_empty());
        let best = all.min_by_key(|one| (one.kind != "floating", one.version != 4));
        best.map(|one| one.addr.as_str())
    }
}

/// What servers have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Flavor {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Memory, in MiB.
    pub ram: u64,
    /// Disk, in GiB.
    pub disk: u64,
    /// Processors.
    pub vcpus: u64,
}

/// What a disk begins with, or what was kept of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Such as `active`.
    pub status: String,
    /// The project that it belongs to.
    pub owner: String,
    /// The server of which it was made.
    pub instance_uuid: Option<String>,
    /// What virtbench wrote.
    pub virtbench: Option<String>,
}

/// A disk that Cinder keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Volume {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Such as `available` or `in-use`.
    pub status: String,
    /// What its makers wrote.
    pub metadata: BTreeMap<String, String>,
    /// What they wrote besides.
    pub description: Option<String>,
}

/// Entries of a page.
const PAGE: usize = 1000;

/// Pages of a list at most: a server that gives the same page again and again is not followed for ever.
const MOST_PAGES: usize = 10_000;

/// What has an id, by which the next page begins.
pub(crate) trait Entry: DeserializeOwned {
    fn id(&self) -> &str;
}

impl Entry for crate::server::Server {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Entry for crate::server::Image {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Entry for crate::server::Flavor {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Entry for crate::server::Volume {
    fn id(&self) -> &str {
        &self.id
    }
}

/// The lists have their entries under their own names.
#[derive(Deserialize)]
struct Page<T> {
    #[serde(alias = "servers", alias = "images", alias = "flavors", alias = "volumes")]
    entries: Vec<T>,
    /// Nova's and Cinder's way to say that more follows.
    #[serde(alias = "servers_links", alias = "flavors_links", alias = "volumes_links", default)]
    links: Vec<IgnoredAny>,
    /// And Glance's.
    next: Option<IgnoredAny>,
}

/// What reading a list took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// Of the time, the cloud's and the network's.
    pub waited: Duration,
    pub retries: u32,
    /// The cloud's clock when it began to answer.
    pub date: Option<SystemTime>,
}

/// Hands each entry of a list to `take`. `call` is of the first page, without `limit`.
pub(crate) fn each<T: Entry>(
    session: &Session,
    call: &Call,
    limit: Limit,
    mut take: impl FnMut(T),
) -> Result<Reading, OpenStackError> {
    let joint = if call.path.contains('?') { '&' } else { '?' };
    let (mut marker, mut reading) = (String::new(), Reading::default());
    for _ in 0..MOST_PAGES {
        let next = Call { path: format!("{}{joint}limit={PAGE}{marker}", call.path), ..call.clone() };
        let (page, answered): (Page<T>, _) = session.get(&next, limit)?;
        reading.waited += answered.waited;
        reading.retries += answered.retries;
        reading.date = reading.date.or(answered.date);
        let last = page.entries.last().map(|entry| format!("&marker={}", encoded(entry.id())));
        let has_more = !page.links.is_empty() || page.next.is_some();
        page.entries.into_iter().for_each(&mut take);
        match last {
            Some(last) if has_more && last != marker => marker = last,
            _ => return Ok(reading),
        }
    }
    Err(session.garbled(call, "the list has no end"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_is_read_as_nova_tells_of_it() {
        let told = json!({
            "id": "1", "name": "n", "status": "ACTIVE", "OS-EXT-STS:task_state": null, "metadata": {"a": "b"},
            "description": null, "flavor": {"original_name": "tiny", "vcpus": 1},
            "addresses": {"net": [
                {"addr": "fd00::1", "version": 6, "OS-EXT-IPS:type": "fixed"},
                {"addr": "10.0.0.5", "version": 4, "OS-EXT-IPS:type": "fixed"},
                {"addr": "198.51.100.7", "version": 4, "OS-EXT-IPS:type": "floating"},
            ]},
        });
        let server: Server = serde_json::from_value(told).unwrap();
        assert_eq!((server.power(), server.task.as_deref()), (Some(Power::On), None));
        assert_eq!(server.outer_address(), Some("198.51.100.7"));
        assert_eq!(server.flavor.original_name, "tiny");
        // One of a cell that is down.
        let unknown: Server = serde_json::from_value(json!({"id": "2", "status": "UNKNOWN"})).unwrap();
        assert_eq!((unknown.power(), unknown.outer_address()), (None, None));
        assert!(Server { status: "SOFT_DELETED".into(), ..unknown }.is_gone());
    }
}
