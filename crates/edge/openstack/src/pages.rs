//! Long lists, page by page: no more than one page is in memory as text.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use virtbench_https::Limit;

use crate::error::OpenStackError;
use crate::session::{Call, Session, encoded};

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
