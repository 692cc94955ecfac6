//! What docs/formats.md shows is what is read.

#![allow(clippy::expect_used)]

use virtbench_formats::{Format, import, read_profile, read_table, trace::read_trace};

const DOCUMENT: &str = include_str!("../../../../docs/formats.md");

fn example(language: &str) -> &'static str {
    example_below("# Formats", language)
}

fn example_below(title: &str, language: &str) -> &'static str {
    let (_, section) = DOCUMENT.split_once(title).expect("the document has the section");
    let (_, rest) = section.split_once(&format!("```{language}\n")).expect("the document has an example");
    rest.split_once("```").expect("the example ends").0
}

#[test]
fn the_documented_load_is_read() {
    let load = import(example("json").as_bytes(), None, false).expect("a load");
    assert_eq!((load.jobs.len(), load.jobs[0].load.outstanding), (1, 16));
    let file = include_str!("examples/load.json");
    assert_eq!(import(file.as_bytes(), Some(Format::Json), false).expect("a load"), load);
}

#[test]
fn the_documented_trace_is_read() {
    let times: Vec<u64> =
        read_trace(example("csv").as_bytes()).expect("a trace").ops.iter().map(|op| op.time_ns).collect();
    assert_eq!(times, [0, 125_500, 300_000]);
}

#[test]
fn the_documented_table_is_read() {
    let table = read_table(example_below("## Tables of results", "csv").as_bytes()).expect("a table");
    assert_eq!((table.rows.len(), table.facts.get("title")), (4, Some("two drivers on one host")));
    assert_eq!((table.rows[3].repetition, table.rows[3].figures.cpu_percent), (1, Some(20.2)));
    assert!(table.latency_derived, "from the I/Os outstanding");
}

#[test]
fn the_documented_profile_is_read() {
    let profile = read_profile(example_below("## Profiles", "toml").as_bytes()).expect("a profile");
    assert_eq!((profile.concurrency(), profile.capacity().value), (Some(8), 120.0));
}
