//! The page without a browser: escaping, self-containment, and runs of any shape.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::pages::synthetic;

use std::collections::BTreeMap;

use proptest::prelude::*;
use synthetic::{html, measured_mut, provenance, records, sets_html, small_plan, takeaway, unavailable};
use virtbench_record::PointRecord;
use virtbench_report::csv;
use virtbench_units::Random;

const HOSTILE: &str = "</script><script>alert(1)</script>\"'&";

/// What a reader sees: the page without scripts, styles and tags, a space for each tag.
fn visible(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let end = ["script", "style"].into_iter().find(|name| after.starts_with(name));
        let after = end.map_or(after, |name| after.split_once(&format!("</{name}")).unwrap().1);
        rest = after.split_once('>').unwrap().1;
    }
    text + rest
}

#[test]
fn no_number_of_a_page_has_more_digits_than_a_reader_can_use() {
    use synthetic::configurations::{adapters_plan, adapters_provenance, adapters_records};
    use synthetic::sets::{deviation, matrix, neighbours};
    let small = small_plan();
    let adapters = adapters_plan(3);
    let mut pages = vec![
        html(&provenance(small.clone()), &records(&small), &BTreeMap::new()),
        html(&adapters_provenance(adapters.clone()), &adapters_records(&adapters), &BTreeMap::new()),
    ];
    pages.extend([deviation(), matrix(), neighbours()].map(|(facts, records)| sets_html(&facts, &records)));
    for page in &pages {
        let text = visible(page);
        let numbers = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',' || c == '-'));
        for number in numbers.filter(|number| number.contains('.')) {
            let decimals = number.rsplit_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert!(decimals <= 6, "{number}");
            assert!(!number.starts_with("-0") || number.contains(|c| ('1'..='9').contains(&c)), "{number}");
        }
        assert!(page.len() < 400_000, "{} bytes", page.len());
    }
}

#[test]
fn whatever_names_contain_is_only_text() {
    let mut plan = small_plan();
    plan.grid = HOSTILE.into();
    let mut records = records(&plan);
    measured_mut(&mut records[0]).outcome.notes.push(HOSTILE.into());
    records.push(unavailable(records[0].point, "vm", 7, HOSTILE));
    let mut provenance = provenance(plan);
    provenance.command.push(HOSTILE.into());
    provenance.notes.push(HOSTILE.into());
    provenance.host.cpu = HOSTILE.into();
    let guest = provenance.guest.as_mut().unwrap();
    guest.adapter = HOSTILE.into();
    guest.command_line.push(HOSTILE.into());
    guest.accelerator.why = HOSTILE.into();
    let html = html(&provenance, &records, &BTreeMap::new());
    assert!(!html.contains("<script>alert"));
    assert!(html.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn nothing_comes_from_elsewhere() {
    let plan = small_plan();
    let records = records(&plan);
    let html = html(&provenance(plan), &records, &BTreeMap::new());
    for forbidden in [" src=", " href=", "url(", "@import", "http://", "https://", "fetch(", "XMLHttpRequest"]
    {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert!(html.contains("default-src 'none'"));
}

/// A run with holes: records left out, unavailable, without operations, of other environments.
fn any_records() -> impl Strategy<Value = Vec<PointRecord>> {
    let key = (prop::sample::select(vec![512u64, 4096, 65536]), 0u8..=2, 0u8..=2);
    let one = (key, 0u32..3, prop::sample::select(vec!["native", "vm", "else"]), 0u8..5, any::<u64>());
    prop::collection::vec(one, 0..24).prop_map(|drawn| {
        drawn
            .into_iter()
            .map(|((block_bytes, read, random), repetition, environment, fate, seed)| {
                let point = virtbench_record::PointKey {
                    block_bytes,
                    read_percent: read * 50,
                    random_percent: random * 50,
                };
                let mut record = synthetic::record(point, environment, repetition, &mut Random::new(seed));
                match fate {
                    0 => record = unavailable(point, environment, repetition, "drawn"),
                    1 => {
                        let measured = measured_mut(&mut record);
                        measured.outcome.total = Default::default();
                        measured.host.cpu_percent = 0.0;
                    }
                    2 => measured_mut(&mut record).outcome.total.bytes_per_second = f64::NAN,
                    _ => {}
                }
                record
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_records_panic_it(records in any_records()) {
        let provenance = provenance(small_plan());
        let html = html(&provenance, &records, &BTreeMap::new());
        prop_assert!(html.ends_with("</html>"));
        csv(&records).unwrap();
        let takeaway = takeaway(&provenance, &records);
        for sentence in [vec![takeaway.headline], takeaway.details, takeaway.cautions].concat() {
            prop_assert!(sentence.ends_with('.') && !sentence.contains("NaN") && !sentence.contains("inf"), "{sentence}");
        }
    }
}

#[test]
fn pages_of_the_papers_grids_hold_every_value_and_are_small() {
    use synthetic::configurations::{adapters_plan, adapters_provenance, adapters_records};
    let mut adapters = adapters_plan(3);
    adapters.blocks_bytes = vec![512, 4096, 16384, 65536, 262_144];
    let page = html(&adapters_provenance(adapters.clone()), &adapters_records(&adapters), &BTreeMap::new());
    assert!(
        page.len() < 400_000,
        "[ESX Adapters 2006]'s twenty points of four configurations: {} bytes",
        page.len()
    );
    let fifths = [0, 25, 50, 75, 100];
    let mut paper = synthetic::plan(&[1024, 4096, 8192, 16384], &fifths, &fifths, 3);
    paper.environments = small_plan().environments;
    let page = html(&provenance(paper.clone()), &records(&paper), &BTreeMap::new());
    assert!(page.len() < 1_000_000, "[ESX Disk 2003]'s hundred points, three times: {} bytes", page.len());
    // Nothing is left out for that: every repetition, a latency curve of every point, three maps of every block size, the ratios,
    // three ways to look at the CPU cost of every block size.
    assert_eq!(page.matches("<td class=\"text\">").count(), 2 * 3 * 100);
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 3 * 4 + 1 + 100 + 3 * 4);
}
