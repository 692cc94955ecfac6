//! The drawing of the crates in ARCHITECTURE.md is made from the table of edges.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::tidy::{EDGES, root};

/// Rewrites the drawing.
const UPDATE: &str = "VIRTBENCH_UPDATE_DRAWING";
const BEGIN: &str = "<!-- crates: begin -->\n";
const END: &str = "<!-- crates: end -->\n";
/// Longer lines go on below.
const WIDTH: usize = 110;

type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Everything that a crate depends on, directly or not.
fn below<'a>(name: &str, edges: &Edges<'a>) -> BTreeSet<&'a str> {
    edges[name].iter().flat_map(|other| below(other, edges).into_iter().chain([*other])).collect()
}

/// How many crates stand below one another under a crate.
fn height(name: &str, edges: &Edges<'_>) -> usize {
    edges[name].iter().map(|other| height(other, edges) + 1).max().unwrap_or(0)
}

/// A line for each crate, the highest first, with those of its dependencies that no other of them has below it.
fn drawing(table: &[(&str, &[&str])]) -> String {
    let edges: Edges<'_> =
        table.iter().map(|(name, others)| (*name, others.iter().copied().collect())).collect();
    let mut order: Vec<(usize, &str)> = edges.keys().map(|name| (height(name, &edges), *name)).collect();
    order.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    let longest = edges.keys().map(|name| name.len()).max().unwrap_or(0);
    let (mut text, mut last) = (String::new(), None);
    for (height, name) in order {
        let level = if last == Some(height) { String::new() } else { height.to_string() };
        last = Some(height);
        let own = &edges[name];
        let inherited: BTreeSet<&str> = own.iter().flat_map(|other| below(other, &edges)).collect();
        let mut line = format!("{level:>2}  {name:longest$}");
        for other in own.difference(&inherited) {
            if line.len() + 1 + other.len() > WIDTH {
                text.push_str(&format!("{}\n", line.trim_end()));
                line = " ".repeat(4 + longest);
            }
            line.push_str(&format!(" {other}"));
        }
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text
}

#[test]
fn the_architecture_draws_every_crate_and_edge() {
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (drawn, after) = rest.split_once(END).unwrap();
    let wanted = format!("```text\n{}```\n", drawing(EDGES));
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, [before, BEGIN, &wanted, END, after].concat()).unwrap();
        return;
    }
    assert_eq!(drawn, wanted, "{UPDATE}=1 cargo test -p virtbench --test repository drawing:: draws it anew");
}

#[test]
fn an_edge_that_another_implies_is_not_drawn() {
    let table: &[(&str, &[&str])] =
        &[("units", &[]), ("record", &["units"]), ("lab", &["record", "units"]), ("tls", &[])];
    assert_eq!(drawing(table), " 2  lab    record\n 1  record units\n 0  tls\n    units\n");
}
