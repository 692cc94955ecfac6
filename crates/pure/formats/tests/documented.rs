//! What docs/formats.md shows is what is read.

#![allow(clippy::expect_used)]

use virtbench_formats::{Format, import, trace::read_trace};

const DOCUMENT: &str = include_str!("../../../../docs/formats.md");

fn example(language: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(&format!("```{language}\n")).expect("the document has an example");
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
