//! Properties of objects, read page by page and followed by the property collector's updates.

use std::time::Duration;

use roxmltree::Node;
use virtbench_https::Limit;

use crate::error::VsphereError;
use crate::reply::{self, Reference};
use crate::request::{Arguments, Request};
use crate::session::{Answered, Session};

/// Objects of a page.
const PAGE: usize = 500;

/// Which properties of which kind of object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PropertySet {
    /// The kind of object.
    pub kind: &'static str,
    /// Paths of properties.
    pub paths: &'static [&'static str],
}

/// Whose properties.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of<'a> {
    /// This object's.
    Object(&'a Reference),
    /// Those of all objects of a view, which is of this kind.
    View(&'a Reference),
}

/// Writes a `PropertyFilterSpec` as this argument.
pub(crate) fn specify(xml: &mut Arguments, name: &str, wanted: &[PropertySet], of: Of<'_>) {
    xml.group(name, |xml| {
        for wanted in wanted {
            xml.group("propSet", |xml| {
                xml.text("type", wanted.kind);
                xml.text("all", "false");
                wanted.paths.iter().for_each(|path| xml.text("pathSet", path));
            });
        }
        xml.group("objectSet", |xml| match of {
            Of::Object(object) => {
                xml.reference("obj", object);
                xml.text("skip", "false");
            }
            Of::View(view) => {
                xml.reference("obj", view);
                xml.text("skip", "true");
                xml.group_of("selectSet", Some("TraversalSpec"), |xml| {
                    xml.text("name", "view");
                    xml.text("type", view.kind());
                    xml.text("path", "view");
                    xml.text("skip", "false");
                });
            }
        });
    });
}

/// The values of an object, by their paths; what the server did not send is not there.
pub(crate) fn values<'a, 'input>(
    object: Node<'a, 'input>,
) -> impl Iterator<Item = (&'a str, Node<'a, 'input>)> {
    reply::children(object, "propSet").filter_map(named)
}

/// The name and the value of a property or of its change.
pub(crate) fn named<'a, 'input>(property: Node<'a, 'input>) -> Option<(&'a str, Node<'a, 'input>)> {
    Some((reply::text(property, "name")?, reply::child(property, "val")?))
}

struct Page<T> {
    objects: Vec<T>,
    token: Option<String>,
}

fn page<T>(
    response: Node<'_, '_>,
    take: &impl Fn(Reference, Node<'_, '_>) -> Result<T, String>,
) -> Result<Page<T>, String> {
    // Nothing is returned where there are no objects.
    let Some(value) = reply::child(response, "returnval") else {
        return Ok(Page { objects: Vec::new(), token: None });
    };
    let object = |node: Node<'_, '_>| {
        let object = reply::child(node, "obj").ok_or("an object has no name")?;
        take(reply::reference(object)?, node)
    };
    let objects = reply::children(value, "objects").map(object).collect::<Result<_, String>>()?;
    Ok(Page { objects, token: reply::text(value, "token").map(str::to_owned) })
}

/// Reads properties; `each` gets a page after the other.
pub(crate) fn retrieve<T>(
    session: &Session,
    wanted: &[PropertySet],
    of: Of<'_>,
    limit: Limit,
    take: impl Fn(Reference, Node<'_, '_>) -> Result<T, String>,
    mut each: impl FnMut(Vec<T>),
) -> Result<Answered<()>, VsphereError> {
    let collector = &session.content().properties;
    let mut request = Request::new("RetrievePropertiesEx", collector, |xml| {
        specify(xml, "specSet", wanted, of);
        xml.group("options", |xml| xml.text("maxObjects", &PAGE.to_string()));
    });
    let mut sum = Answered { value: (), waited: std::time::Duration::ZERO, retries: 0 };
    loop {
        let answer = session.call(&request, limit, |response| page(response, &take))?;
        sum.waited += answer.waited;
        sum.retries += answer.retries;
        each(answer.value.objects);
        let Some(token) = answer.value.token else { return Ok(sum) };
        request = Request::new("ContinueRetrievePropertiesEx", collector, |xml| xml.text("token", &token));
    }
}

/// Reads properties of one object.
pub(crate) fn of_one<T>(
    session: &Session,
    object: &Reference,
    wanted: PropertySet,
    limit: Limit,
    take: impl Fn(Node<'_, '_>) -> Result<T, String>,
) -> Result<Answered<Option<T>>, VsphereError> {
    let mut found = None;
    let answer = retrieve(
        session,
        &[wanted],
        Of::Object(object),
        limit,
        |_, node| take(node),
        |mut page| found = page.pop(),
    )?;
    Ok(Answered { value: found, waited: answer.waited, retries: answer.retries })
}

/// Objects of a set of updates at most; the rest comes with the next.
const UPDATES_PAGE: u32 = 100;

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
            specify(xml, "spec", wanted, Of::View(view));
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
                xml.text("maxObjectUpdates", &UPDATES_PAGE.to_string());
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
