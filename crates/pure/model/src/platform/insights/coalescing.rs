//! Interrupts that are held back: times with two common values where natively there is one.

use virtbench_record::TimeCounts;

use super::rule::{Evidence, Finding, Outcome, Seen};
use crate::samples::peaks;

/// Fewer times than this have a shape by chance.
const LEAST_TIMES: u64 = 1000;

pub(super) fn coalescing(seen: &Seen<'_>) -> Outcome {
    let all: Vec<&TimeCounts> = seen.measured().flat_map(|measured| &measured.times).collect();
    let mut names: Vec<&str> = all.iter().map(|times| times.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let counts = |name: &str| -> Vec<(u64, u64)> {
        all.iter().filter(|times| times.name == name).flat_map(|times| times.counts.clone()).collect()
    };
    let is_enough = |name: &str| counts(name).iter().map(|(_, count)| count).sum::<u64>() >= LEAST_TIMES;
    let guests: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("native")).collect();
    if guests.is_empty() {
        return Outcome::unavailable("no distribution of times was measured: the domain network has one");
    }
    if !guests.iter().any(|name| is_enough(name)) {
        return Outcome::unavailable(format!(
            "fewer than {LEAST_TIMES} times were measured: their shape is chance"
        ));
    }
    let fires = guests.into_iter().find_map(|name| {
        let found = peaks(&counts(name));
        let (_, what) = name.split_once(": ")?;
        let is_native_too = !peaks(&counts(&format!("native: {what}"))).is_empty();
        (found.len() > 1 && !is_native_too).then_some((name, what, found))
    });
    let Some((name, what, found)) = fires else { return Outcome::Silent };
    let evidence = found.iter().map(|peak| {
        let share = 100.0 * peak.share;
        Evidence::new(format!("{name}, common time of {share:.0} %"), peak.at_ns as f64 / 1000.0, "us")
    });
    Outcome::Fires(Finding {
        evidence: evidence.collect(),
        sentence: format!(
            "A {what} takes one of {} common times in a VM and one natively: some wait for others, as where interrupts are coalesced.",
            found.len()
        ),
        change: "Shorten or turn off the adapter's interrupt moderation in guest and host (ethtool -C), and measure again.".into(),
        gain: None,
    })
}
