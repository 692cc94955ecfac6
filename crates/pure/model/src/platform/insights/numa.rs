//! Memory on another node than the processors that use it.

use virtbench_record::NumaPages;

use super::rule::{Evidence, Finding, Outcome, Seen};

/// So large a part of the pages may be given on another node.
const REMOTE: f64 = 0.05;
/// So many pages may be moved, for each that is given.
const MIGRATED: f64 = 0.01;

pub(super) fn numa(seen: &Seen<'_>) -> Outcome {
    let nodes = match seen.tuning().and_then(|tuning| tuning.numa_nodes) {
        None => return Outcome::unavailable("this kernel does not tell how many NUMA nodes there are"),
        Some(0 | 1) => return Outcome::Silent,
        Some(nodes) => nodes,
    };
    let all: Vec<NumaPages> = seen.observed().filter_map(|observed| observed.numa).collect();
    if all.is_empty() {
        return Outcome::unavailable("this kernel does not count memory by NUMA node");
    }
    let sum = |of: fn(&NumaPages) -> u64| all.iter().map(of).sum::<u64>() as f64;
    let (local, remote, migrated) =
        (sum(|pages| pages.local), sum(|pages| pages.remote), sum(|pages| pages.migrated));
    let given = (local + remote).max(1.0);
    if remote / given < REMOTE && migrated / given < MIGRATED {
        return Outcome::Silent;
    }
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new("NUMA nodes", f64::from(nodes), ""),
            Evidence::new("pages given on another node", 100.0 * remote / given, "%"),
            Evidence::new("pages moved between nodes", migrated, ""),
        ],
        sentence: "Memory lies on another node than the processors that use it, so that accesses take the way between nodes.".into(),
        change: "Hold each VM to the processors and the memory of one node, and measure again.".into(),
        gain: None,
    })
}
