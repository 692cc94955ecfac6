//! Text: compression, records as JSON, an XML document, and a compiler's first half.

use std::fmt::Write;
use std::io::{Read, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use quick_xml::events::Event;
use quick_xml::{Reader, Writer};
use serde::{Deserialize, Serialize};
use syn::visit::{self, Visit};
use virtbench_units::Random;

use super::crypto::checksum;
use super::kernel::Kernel;

const WORDS: [&str; 16] = [
    "the",
    "machine",
    "of",
    "virtual",
    "and",
    "memory",
    "a",
    "disk",
    "to",
    "processor",
    "in",
    "host",
    "is",
    "guest",
    "that",
    "share",
];

fn prose(seed: u64, words: usize) -> String {
    let mut random = Random::new(seed);
    let mut text = String::new();
    for _ in 0..words {
        // The square of a uniform number favours the first words, as language does.
        let at = random.unit().powi(2) * WORDS.len() as f64;
        let word =
            WORDS.iter().zip(1u8..).find(|(_, number)| at < f64::from(*number)).map_or("", |(word, _)| word);
        text.push_str(word);
        text.push(if random.below(9) == 0 { '\n' } else { ' ' });
    }
    text
}

/// Some 100 KiB of text deflated and inflated.
pub(super) struct Compress {
    text: String,
    inflated: Vec<u8>,
}

impl Compress {
    pub(super) fn new() -> Self {
        Self { text: prose(10, 20_000), inflated: Vec::new() }
    }
}

impl Kernel for Compress {
    fn operation(&mut self) -> bool {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
        let deflated = encoder.write_all(self.text.as_bytes()).and_then(|()| encoder.finish());
        let Ok(deflated) = deflated else { return false };
        self.inflated.clear();
        let whole = ZlibDecoder::new(&deflated[..]).read_to_end(&mut self.inflated).is_ok();
        whole && deflated.len() < self.text.len() / 2 && checksum(&self.inflated) == TEXT
    }
}

const TEXT: u32 = 1_401_406_175;

/// A record of nothing in particular.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Item {
    number: u64,
    price: f64,
    name: String,
    tags: Vec<String>,
    parent: Option<u32>,
}

/// 1,000 records written and read.
pub(super) struct Serial(Vec<Item>);

impl Serial {
    pub(super) fn new() -> Self {
        let mut random = Random::new(11);
        let item = |number: u64| Item {
            number,
            // A number of quarters is the same in binary and in decimal digits.
            price: random.below(10_000) as f64 / 4.0,
            name: prose(number, 4),
            tags: prose(!number, 6).split_whitespace().map(str::to_owned).collect(),
            parent: u32::try_from(random.below(99)).ok().filter(|parent| parent % 3 > 0),
        };
        Self((0..1000).map(item).collect())
    }
}

impl Kernel for Serial {
    fn operation(&mut self) -> bool {
        let Ok(text) = serde_json::to_vec(&self.0) else { return false };
        let read: Result<Vec<Item>, _> = serde_json::from_slice(&text);
        read.is_ok_and(|items| items == self.0) && checksum(&text) == RECORDS
    }
}

const RECORDS: u32 = 325_231_718;

/// A document of 2,000 entries read, and written again.
pub(super) struct Xml(String);

impl Xml {
    pub(super) fn new() -> Self {
        let mut text = String::from("<catalogue>");
        for entry in 0..2000 {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                r#"<entry id="{entry}" kind="k{}"><title>{}</title><body>{}</body></entry>"#,
                entry % 7,
                prose(entry, 3),
                prose(!entry, 9)
            );
        }
        text.push_str("</catalogue>");
        Self(text)
    }

    fn transform(&self) -> Result<(u32, Vec<u8>), quick_xml::Error> {
        let mut reader = Reader::from_str(&self.0);
        let mut writer = Writer::new(Vec::with_capacity(self.0.len()));
        let mut attributes = 0;
        loop {
            let event = reader.read_event()?;
            match &event {
                Event::Eof => return Ok((attributes, writer.into_inner())),
                Event::Start(element) => {
                    attributes += u32::try_from(element.attributes().flatten().count()).unwrap_or(0)
                }
                _ => {}
            }
            writer.write_event(event)?;
        }
    }
}

impl Kernel for Xml {
    fn operation(&mut self) -> bool {
        self.transform().is_ok_and(|(attributes, text)| {
            attributes == 4000 && text == self.0.as_bytes() && checksum(&text) == DOCUMENT
        })
    }
}

const DOCUMENT: u32 = 3_214_605_106;

/// Text of 150 made-up functions, parsed as Rust.
pub(super) struct Parse(String);

impl Parse {
    pub(super) fn new() -> Self {
        let mut random = Random::new(9);
        let mut text = String::new();
        for function in 0..150 {
            let [a, b, c] = [9, 99, 999].map(|bound| random.below(bound));
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "/// Step {function}.\nfn step_{function}(input: &[u64], factor: u64) -> Option<u64> {{\n\
                 let mut sum = {a}u64;\nfor (index, value) in input.iter().enumerate().filter(|(i, _)| i % {b} != 0) {{\n\
                 sum = match value {{ 0 => sum.wrapping_add({c}), 1..={b} => sum ^ factor, _ => sum * 3 + index as u64 }};\n\
                 if sum > {c} && index < input.len() - 1 {{ return Some(step_{a}(&input[index..], sum)? + 1); }}\n}}\n\
                 (sum != {b}).then_some(sum)\n}}\n"
            );
        }
        Self(text)
    }
}

impl Kernel for Parse {
    fn operation(&mut self) -> bool {
        let Ok(file) = syn::parse_file(&self.0) else { return false };
        let mut census = Census::default();
        census.visit_file(&file);
        census == KNOWN
    }
}

/// What a tree is made of.
#[derive(Debug, Default, PartialEq)]
struct Census {
    expressions: u32,
    names: u32,
    numbers: u64,
}

const KNOWN: Census = Census { expressions: 9300, names: 5700, numbers: 172_881 };

impl<'ast> Visit<'ast> for Census {
    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        self.expressions += 1;
        visit::visit_expr(self, expression);
    }

    fn visit_ident(&mut self, _: &'ast proc_macro2::Ident) {
        self.names += 1;
    }

    fn visit_lit_int(&mut self, number: &'ast syn::LitInt) {
        self.numbers += number.base10_parse::<u64>().unwrap_or(0);
    }
}
