//! Answers of the API, read from XML: objects, points in time and faults.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quick_xml::Reader;
use quick_xml::events::Event;
use roxmltree::{Document, Node, ParsingOptions};

use crate::error::Fault;

/// Elements, attributes and texts of an answer at most: memory is bounded by it.
const MOST_NODES: u32 = 4_000_000;

/// Elements within elements at most: roxmltree needs stack for each.
const DEEPEST: usize = 256;

/// Why an answer gives no value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The server said no.
    Fault(Fault),
    /// It is no answer of the API.
    Garbled(String),
}

/// Reads an answer with `take`, which gets the element of the response.
pub(crate) fn read<T>(
    body: &[u8],
    take: impl FnOnce(Node<'_, '_>) -> Result<T, String>,
) -> Result<T, NoValue> {
    let garbled = |why: &str| NoValue::Garbled(why.to_owned());
    let text = std::str::from_utf8(body).map_err(|_| garbled("it is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !is_shallow(text) {
        return Err(garbled("it is no XML, or nested too deep"));
    }
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| garbled(&format!("it is no XML: {error}")))?;
    let envelope = document.root_element();
    if envelope.tag_name().name() != "Envelope" {
        return Err(garbled("it is no SOAP envelope"));
    }
    let body = child(envelope, "Body").ok_or_else(|| garbled("its SOAP envelope has no body"))?;
    let response = body.first_element_child().ok_or_else(|| garbled("its SOAP body is empty"))?;
    if response.tag_name().name() == "Fault" {
        return Err(NoValue::Fault(Fault::of_body(response)));
    }
    take(response).map_err(NoValue::Garbled)
}

/// Whether no element is too deep.
fn is_shallow(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::Eof) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        if depth > DEEPEST {
            return false;
        }
    }
}

/// The first child of this name, whatever its namespace.
pub(crate) fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.is_element() && child.tag_name().name() == name)
}

/// All children of this name.
pub(crate) fn children<'a, 'input>(
    node: Node<'a, 'input>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// The text of the first child of this name.
pub(crate) fn text<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    child(node, name).and_then(|child| child.text()).map(str::trim)
}

/// The object that this element names.
pub(crate) fn reference(node: Node<'_, '_>) -> Result<Reference, String> {
    let kind = node.attribute("type");
    let id = node.text().map(str::trim).filter(|id| !id.is_empty());
    let (Some(kind), Some(id)) = (kind, id) else {
        return Err(format!("{:?} names no object", node.tag_name().name()));
    };
    Ok(Reference::new(kind, id))
}

/// The object that `returnval` names.
pub(crate) fn returned(response: Node<'_, '_>) -> Result<Reference, String> {
    let value = child(response, "returnval").ok_or("it returns nothing")?;
    reference(value)
}

/// A managed object reference: what kind of object it is and which.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    kind: Arc<str>,
    id: Arc<str>,
}

impl Reference {
    /// The object of this kind with this identifier, such as `VirtualMachine` and `vm-12`.
    #[must_use]
    pub fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }

    /// What kind of object.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name among all of its kind, such as `vm-42`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// Reads an `xsd:dateTime` such as `2026-11-23T09:24:18.123456Z` or one with an offset from UTC. One without a zone is
/// taken for UTC.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let clock = text.find('T')?;
    let zone = text.get(clock..)?.find(['Z', '+', '-']).map_or(text.len(), |at| clock + at);
    let (local, zone) = text.split_at_checked(zone)?;
    let moment = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    let (ahead, offset) = match zone.chars().next() {
        None | Some('Z') => return Some(moment),
        Some(sign) => (sign == '+', offset(zone.get(1..)?)?),
    };
    if ahead { moment.checked_sub(offset) } else { moment.checked_add(offset) }
}

/// Hours and minutes, such as `02:00`.
fn offset(text: &str) -> Option<Duration> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then(|| Duration::from_secs(hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::FaultKind;

    fn envelope(body: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>"
        )
    }

    /// As vCenter 7 writes it.
    const FAULT: &str = "<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>Permission to perform this \
                         operation was denied.</faultstring><detail><NoPermissionFault xmlns=\"urn:vim25\" \
                         xsi:type=\"NoPermission\"><object type=\"VirtualMachine\">vm-7</object><privilegeId>\
                         VirtualMachine.Interact.PowerOn</privilegeId></NoPermissionFault></detail></soapenv:Fault>";

    #[test]
    fn an_answer_is_read_and_a_fault_typed() {
        let good = envelope(
            "<PowerOnVM_TaskResponse xmlns=\"urn:vim25\"><returnval type=\"Task\">task-3</returnval></PowerOnVM_TaskResponse>",
        );
        assert_eq!(read(good.as_bytes(), returned), Ok(Reference::new("Task", "task-3")));
        let Err(NoValue::Fault(fault)) = read(envelope(FAULT).as_bytes(), returned) else {
            panic!("no fault")
        };
        assert_eq!(
            (fault.kind, fault.detail.as_deref()),
            (FaultKind::NoPermission, Some("VirtualMachine.Interact.PowerOn"))
        );
        assert!(fault.to_string().contains("denied"), "{fault}");
    }

    #[test]
    fn what_is_no_answer_is_garbled() {
        let entities = "<!DOCTYPE a [<!ENTITY b \"bbbb\">]><Envelope>&b;</Envelope>";
        for wrong in [
            "",
            "<html><body>hello</body></html>",
            "not XML",
            "<Envelope/>",
            "<Envelope><Body/></Envelope>",
            entities,
        ] {
            assert!(matches!(read(wrong.as_bytes(), returned), Err(NoValue::Garbled(_))), "{wrong}");
        }
        assert!(matches!(read(b"\xff\xfe", returned), Err(NoValue::Garbled(_))));
        let empty = envelope("<XResponse><returnval type=\"Task\"></returnval></XResponse>");
        assert!(matches!(read(empty.as_bytes(), returned), Err(NoValue::Garbled(_))));
    }

    #[test]
    fn elements_may_be_nested_as_deep_as_they_like() {
        let deep = "<Envelope><Body>".to_owned() + &"<a>".repeat(300_000);
        assert!(matches!(read(deep.as_bytes(), returned), Err(NoValue::Garbled(_))));
        let deep = deep + &"</a>".repeat(300_000) + "</Body></Envelope>";
        assert!(read(deep.as_bytes(), returned).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, returned);
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0_usize..600, byte in any::<u8>(), length in 0_usize..700) {
            let mut damaged = envelope(FAULT).into_bytes();
            if let Some(place) = damaged.get_mut(at) {
                *place = byte;
            }
            damaged.truncate(length);
            let _ = read(&damaged, returned);
        }
    }

    #[test]
    fn zones_are_minded() {
        let utc = parse("2026-11-23T09:24:18.25Z").unwrap();
        assert_eq!(parse("2026-11-23T11:24:18.25+02:00"), Some(utc));
        assert_eq!(parse("2026-11-23T04:54:18.25-04:30"), Some(utc));
        assert_eq!(parse("2026-11-23T09:24:18.25"), Some(utc));
        assert!(
            utc.duration_since(parse("2026-11-23T09:24:18Z").unwrap()).unwrap() == Duration::from_millis(250)
        );
        for wrong in [
            "",
            "T",
            "2026-11-23",
            "2026-11-23T25:00:00Z",
            "2026-11-23T09:24:18+99:00",
            "2026-11-23T09:24:18+2",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}|[0-9T:+Z.-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
