//! Following objects by the property collector's updates.

use std::time::Duration;

use roxmltree::Node;
use virtbench_https::Limit;

use crate::error::VsphereError;
use crate::properties::{self, Of, PropertySet};
use crate::reference::Reference;
use crate::reply;
use crate::request::Request;
use crate::session::{Answered, Session};

/// Objects of a set of updates at most; the rest comes with the next.
const PAGE: u32 = 100;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is among those that are followed now, or was changed.
    Is,
    /// It is not any more.
    Gone,
}

/// A property collector of the session's own.
#[derive(Debug)]
pub(crate) struct Collector {
    object: Reference,
    version: String,
    /// Which login it belongs to.
    pub login: u64,
}

struct Set<T> {
    version: String,
    changes: Vec<T>,
    truncated: bool,
}

impl Collector {
    /// Follows these properties of a view's objects.
    pub fn create(
        session: &Session,
        wanted: &[PropertySet],
        view: &Reference,
        limit: Limit,
    ) -> Result<Self, VsphereError> {
        let create = Request::new("CreatePropertyCollector", &session.content().properties, |_| {});
        let object = session.call(&create, limit, reply::returned)?.value;
        let filter = Request::new("CreateFilter", &object, |xml| {
            properties::specify(xml, "spec", wanted, Of::View(view));
            xml.text("partialUpdates", "false");
        });
        session.call(&filter, limit, reply::returned)?;
        Ok(Self { object, version: String::new(), login: session.number() })
    }

    /// Waits for changes, at most for `wait`; `take` gets each object with its changed properties. Whether there are more
    /// at once.
    pub fn wait<T>(
        &mut self,
        session: &Session,
        wait: Duration,
        limit: Limit,
        take: impl Fn(Reference, Change, Node<'_, '_>) -> Result<T, String>,
    ) -> Result<Answered<(Vec<T>, bool)>, VsphereError> {
        let request = Request::new("WaitForUpdatesEx", &self.object, |xml| {
            xml.text("version", &self.version);
            xml.group("options", |xml| {
                xml.text("maxWaitSeconds", &wait.as_secs().to_string());
                xml.text("maxObjectUpdates", &PAGE.to_string());
            });
        });
        let Answered { value, waited, retries } =
            session.call(&request, limit, |response| set(response, &take))?;
        let Some(set) = value else { return Ok(Answered { value: (Vec::new(), false), waited, retries }) };
        self.version = set.version;
        Ok(Answered { value: (set.changes, set.truncated), waited, retries })
    }

    /// Ends it on the server.
    pub fn destroy(self, session: &Session, limit: Limit) {
        let request = Request::new("DestroyPropertyCollector", &self.object, |_| {});
        let _ = session.call(&request, limit, |_| Ok(()));
    }
}

/// Nothing is returned where nothing changed.
fn set<T>(
    response: Node<'_, '_>,
    take: &impl Fn(Reference, Change, Node<'_, '_>) -> Result<T, String>,
) -> Result<Option<Set<T>>, String> {
    let Some(value) = reply::child(response, "returnval") else { return Ok(None) };
    let version = reply::text(value, "version").ok_or("a set of updates has no version")?.to_owned();
    let mut changes = Vec::new();
    for filter in reply::children(value, "filterSet") {
        for object in reply::children(filter, "objectSet") {
            let named = reply::child(object, "obj").ok_or("an update names no object")?;
            let change = match reply::text(object, "kind") {
                Some("enter" | "modify") => Change::Is,
                Some("leave") => Change::Gone,
                other => return Err(format!("an update is of the kind {other:?}")),
            };
            changes.push(take(reply::reference(named)?, change, object)?);
        }
    }
    let truncated = reply::text(value, "truncated") == Some("true");
    Ok(Some(Set { version, changes, truncated }))
}

/// The changed properties of an object; those without a value were taken away.
pub(crate) fn changed<'a, 'input>(
    object: Node<'a, 'input>,
) -> impl Iterator<Item = (&'a str, Option<Node<'a, 'input>>)> {
    reply::children(object, "changeSet").filter_map(|change| {
        let value = reply::child(change, "val").filter(|_| reply::text(change, "op") != Some("remove"));
        Some((reply::text(change, "name")?, value))
    })
}
