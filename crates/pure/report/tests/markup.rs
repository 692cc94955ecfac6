//! What holds of the markup of every page: charts are well-formed and named, references lead somewhere, and a browser runs no
//! script but the page's own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::pages;

use std::collections::BTreeSet;

use base64::Engine;
use roxmltree::Document;
use sha2::{Digest, Sha256};

/// The charts of a page with their markup; samples of keys are no charts.
fn charts(html: &str) -> Vec<&str> {
    let begins = html.match_indices("<svg class=\"chart\"").map(|(begin, _)| begin);
    let whole = |begin: usize| {
        let (mut depth, mut at) = (0, begin);
        loop {
            let next = at + html[at..].find("svg").unwrap();
            match &html[next - 1..next] {
                "<" => depth += 1,
                "/" => depth -= 1,
                _ => {}
            }
            at = next + 3;
            if depth == 0 {
                return &html[begin..=at];
            }
        }
    };
    begins.map(whole).collect()
}

#[test]
fn every_chart_is_well_formed_and_has_a_name_and_a_description() {
    let mut all = 0;
    for page in pages::full().iter().chain(&pages::sparse()) {
        for chart in charts(&page.html) {
            let document =
                Document::parse(chart).unwrap_or_else(|error| panic!("{}: {error}: {chart}", page.name));
            let root = document.root_element();
            assert_eq!(
                (root.tag_name().name(), root.attribute("role")),
                ("svg", Some("img")),
                "{}",
                page.name
            );
            let names: Vec<_> = root.children().filter(|child| child.is_element()).take(2).collect();
            for (child, tag) in names.iter().zip(["title", "desc"]) {
                assert_eq!(child.tag_name().name(), tag);
                assert!(child.text().is_some_and(|text| text.len() > 5), "{}: {chart:.300}", page.name);
            }
            all += 1;
        }
    }
    assert!(all > 100, "{all} charts");
}

#[test]
fn ids_are_unique_and_what_refers_to_one_finds_it() {
    let values = |html: &str, attribute: &str| -> Vec<String> {
        let begin = format!(" {attribute}=\"");
        let parts = html.split(begin.as_str()).skip(1);
        parts.map(|part| part.split('"').next().unwrap().to_owned()).collect()
    };
    for page in pages::full() {
        let ids = values(&page.html, "id");
        let unique: BTreeSet<&String> = ids.iter().collect();
        let again: Vec<&String> =
            unique.iter().copied().filter(|id| ids.iter().filter(|other| other == id).count() > 1).collect();
        assert!(again.is_empty(), "{}: {again:?} several times", page.name);
        let named = values(&page.html, "aria-labelledby").join(" ");
        for name in named.split(' ') {
            assert!(unique.contains(&name.to_owned()), "{}: {name}", page.name);
        }
    }
}

#[test]
fn a_browser_runs_the_page_s_own_script_and_no_other() {
    for page in pages::full() {
        let (_, rest) = page.html.split_once("<script>").unwrap();
        let (script, rest) = rest.split_once("</script>").unwrap();
        assert!(!rest.contains("<script"), "{}", page.name);
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(script));
        let allowed = format!("script-src 'sha256-{hash}';");
        assert!(page.html.contains(&allowed), "SCRIPT_SHA256 in src/page.rs has to be {hash}");
        assert!(page.html.contains("default-src 'none'") && !page.html.contains(" onclick="));
    }
}

#[test]
fn the_page_of_a_simulated_evaluation_says_what_held_and_what_did_not() {
    let page = pages::full().iter().find(|page| page.name == "fence").unwrap();
    for words in
        ["not held, by 15.0 percentage points", "<td>held</td>", "Deviation &lt;b&gt;", "3 % &amp; 4 %"]
    {
        assert!(page.html.contains(words), "{words}");
    }
}
