//! A run of every kind in every form, read back by those who read such forms.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use roxmltree::Document;
use virtbench_record::{Provenance, Records};
use virtbench_report::{Outline, documents, outline};

use crate::pages::every_kind;

fn outlines() -> Vec<(&'static str, Outline)> {
    let of = |(name, facts, records): (&'static str, Provenance, Records)| {
        (name, outline(&facts, &records, &BTreeMap::new()))
    };
    every_kind().into_iter().map(of).collect()
}

/// What a reader of Markdown sees: its text, rows of tables with how many cells each, items of lists, and blocks of code.
#[derive(Default)]
struct Read {
    text: String,
    rows: Vec<usize>,
    items: usize,
    code: Vec<String>,
    markup: Vec<String>,
}

fn read(markdown: &str) -> Read {
    let mut read = Read::default();
    let mut in_code = false;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::TableRow | Tag::TableHead) => read.rows.push(0),
            Event::End(TagEnd::TableCell) => *read.rows.last_mut().unwrap() += 1,
            Event::Start(Tag::Item) => read.items += 1,
            Event::Start(Tag::CodeBlock(_)) => {
                in_code = true;
                read.code.push(String::new());
            }
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(text) if in_code => read.code.last_mut().unwrap().push_str(&text),
            Event::Text(text) => read.text += &text,
            Event::End(TagEnd::Paragraph | TagEnd::Heading(_)) => read.text.push('\n'),
            Event::Html(text) | Event::InlineHtml(text) | Event::Code(text) => {
                read.markup.push(text.to_string())
            }
            Event::Start(Tag::Emphasis | Tag::Link { .. } | Tag::Strikethrough | Tag::Image { .. }) => {
                read.markup.push(format!("{event:?}"));
            }
            _ => {}
        }
    }
    read
}

#[test]
fn markdown_of_every_kind_has_verdict_table_cautions_and_the_command() {
    for (name, outline) in outlines() {
        let markdown = outline.markdown();
        let read = read(&markdown);
        let takeaway = &outline.takeaway;
        assert!(read.text.contains(&takeaway.headline), "{name}: {markdown}");
        for said in takeaway.details.iter().chain(&takeaway.cautions) {
            assert!(read.text.contains(said.as_str()), "{name}: {said}: {}", read.text);
        }
        assert_eq!(read.items, takeaway.cautions.len(), "{name}: {markdown}");
        assert_eq!(read.code, [format!("{}\n", outline.command.join(" "))], "{name}");
        assert!(
            read.rows.len() > 1 && read.rows.iter().all(|cells| *cells == read.rows[0]),
            "{name}: {markdown}"
        );
        assert_eq!(read.markup, Vec::<String>::new(), "{name}: {markdown}");
        assert!(markdown.len() < 65_536, "{name}: an issue takes no more: {}", markdown.len());
    }
}

#[test]
fn names_in_markdown_are_no_markup() {
    let (_, mut facts, records) = every_kind().swap_remove(0);
    facts.host.cpu = "1. <b> `x` *y* _z_ | [a](b) ~~c~~ &amp; \n# d".into();
    facts.command = vec!["virtbench".into(), "--name=```".into(), "it's".into()];
    let markdown = outline(&facts, &records, &BTreeMap::new()).markdown();
    let read = read(&markdown);
    assert!(read.text.contains("1. <b> `x` *y* _z_ | [a](b) ~~c~~ &amp;  # d"), "{}", read.text);
    assert_eq!((read.code.len(), read.markup.len()), (1, 0), "{markdown}");
    assert!(read.code[0].contains("```"), "{markdown}");
}

#[test]
fn text_of_every_kind_keeps_to_80_columns_and_draws() {
    for (name, outline) in outlines() {
        let text = outline.text();
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{name}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&words(&outline.takeaway.headline)), "{name}: {text}");
        let is_drawn = text.chars().any(|letter| "█│▓".contains(letter));
        assert!(is_drawn, "{name}: {text}");
        assert!(text.contains("virtbench compare --grid"), "{name}: {text}");
    }
}

#[test]
fn every_drawing_of_every_kind_is_an_svg_file() {
    for (name, outline) in outlines() {
        let files = outline.svgs();
        let names: BTreeSet<&String> = files.iter().map(|file| &file.name).collect();
        assert_eq!(names.len(), files.len(), "{name}: {names:?}");
        assert!(!files.is_empty(), "{name}");
        for file in &files {
            let document =
                Document::parse(&file.text).unwrap_or_else(|error| panic!("{name}: {error}: {}", file.text));
            let root = document.root_element();
            assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"), "{name}");
            assert!(root.attribute("width").is_some() && root.attribute("viewBox").is_some(), "{name}");
            let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter);
            assert!(file.name.ends_with(".svg") && file.name.chars().all(is_safe), "{}", file.name);
            assert!(!file.text.contains("var(--"), "colours are written out: {}", file.name);
        }
    }
}

#[test]
fn csv_of_every_kind_has_rows_as_long_as_its_header() {
    for (name, facts, records) in every_kind() {
        let text = documents(&facts, &records, &BTreeMap::new()).unwrap().csv;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns = reader.headers().unwrap().len();
        let rows: Vec<csv::StringRecord> =
            reader.records().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(columns > 3 && !rows.is_empty(), "{name}: {text:.300}");
    }
}

#[test]
fn a_run_without_results_has_every_form_too() {
    for (name, facts, records) in every_kind() {
        let none = match &records {
            Records::Points(_) => Records::Points(Vec::new()),
            Records::Sets(_) => Records::Sets(Vec::new()),
            Records::Trials(_) => Records::Trials(Vec::new()),
            Records::Oltp(_) => Records::Oltp(Vec::new()),
            Records::Operations(_) => Records::Operations(Vec::new()),
            Records::Application(_) => Records::Application(Vec::new()),
            Records::Desktops(_) => Records::Desktops(Vec::new()),
            Records::Tiles(_) => Records::Tiles(Vec::new()),
            Records::Samples(_) => Records::Samples(Vec::new()),
        };
        let outline = outline(&facts, &none, &BTreeMap::new());
        assert!(!outline.takeaway.headline.is_empty(), "{name}");
        assert!(read(&outline.markdown()).text.contains(&outline.takeaway.headline), "{name}");
        assert!(outline.text().lines().all(|line| line.chars().count() <= 80), "{name}");
    }
}
