//! Reading properties of objects, page by page.

use roxmltree::Node;
use virtbench_https::Limit;

use crate::error::VsphereError;
use crate::reference::Reference;
use crate::reply;
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
