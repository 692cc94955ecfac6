//! Calls of the API as XML.

use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};

use crate::reply::Reference;

/// A call: what is asked of which object. It may hold a password and is not printed.
pub(crate) struct Request {
    /// The method.
    pub method: &'static str,
    /// The whole SOAP envelope.
    pub envelope: Vec<u8>,
}

impl Request {
    /// Calls a method with the arguments that `arguments` writes, in the order of the API's description.
    pub fn new(method: &'static str, this: &Reference, arguments: impl FnOnce(&mut Arguments)) -> Self {
        let mut xml = Arguments(Writer::new(Vec::with_capacity(1024)));
        xml.open(
            "Envelope",
            &[
                ("xmlns", "http://schemas.xmlsoap.org/soap/envelope/"),
                ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
                ("xmlns:xsd", "http://www.w3.org/2001/XMLSchema"),
            ],
        );
        xml.open("Body", &[]);
        xml.open(method, &[("xmlns", "urn:vim25")]);
        xml.reference("_this", this);
        arguments(&mut xml);
        for name in [method, "Body", "Envelope"] {
            xml.close(name);
        }
        Self { method, envelope: xml.0.into_inner() }
    }
}

/// Arguments of a call.
pub(crate) struct Arguments(Writer<Vec<u8>>);

impl Arguments {
    /// Writing to memory does not fail.
    fn event(&mut self, event: Event<'_>) {
        let _ = self.0.write_event(event);
    }

    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let mut start = BytesStart::new(name);
        attributes.iter().for_each(|attribute| start.push_attribute(*attribute));
        self.event(Event::Start(start));
    }

    fn close(&mut self, name: &str) {
        self.event(Event::End(BytesEnd::new(name)));
    }

    /// An element with text. Control characters, which XML cannot hold, are left out.
    pub fn text(&mut self, name: &str, value: &str) {
        self.typed(name, None, value);
    }

    /// An element with text of a type where the API leaves the type open.
    pub fn typed(&mut self, name: &str, kind: Option<&str>, value: &str) {
        let clean: String = value.chars().filter(|letter| !letter.is_control()).collect();
        let kind = kind.map(|kind| ("xsi:type", kind));
        self.open(name, kind.as_slice());
        self.event(Event::Text(BytesText::new(&clean)));
        self.close(name);
    }

    /// An element that names an object.
    pub fn reference(&mut self, name: &str, object: &Reference) {
        self.open(name, &[("type", object.kind())]);
        self.event(Event::Text(BytesText::new(object.id())));
        self.close(name);
    }

    /// An element with others.
    pub fn group(&mut self, name: &str, inner: impl FnOnce(&mut Self)) {
        self.group_of(name, None, inner);
    }

    /// An element with others, of a type where the API has several.
    pub fn group_of(&mut self, name: &str, kind: Option<&str>, inner: impl FnOnce(&mut Self)) {
        let kind = kind.map(|kind| ("xsi:type", kind));
        self.open(name, kind.as_slice());
        inner(self);
        self.close(name);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_arrives_as_it_was(text in "\\PC{0,60}", id in "[^\\x00-\\x1f]{1,20}") {
            let request = Request::new("Rename_Task", &Reference::new("VirtualMachine", &id), |xml| xml.text("newName", &text));
            let envelope = String::from_utf8(request.envelope).unwrap();
            // U+FFFE and U+FFFF are not for XML.
            prop_assume!(!text.contains(['\u{fffe}', '\u{ffff}']) && !id.contains(['\u{fffe}', '\u{ffff}']));
            prop_assume!(!id.chars().any(char::is_control));
            let document = roxmltree::Document::parse(&envelope).unwrap();
            let found = document.descendants().find(|node| node.tag_name().name() == "newName").unwrap();
            prop_assert_eq!(found.text().unwrap_or(""), text.as_str());
        }
    }
}
