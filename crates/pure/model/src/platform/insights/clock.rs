//! A clock that programs pay for each time they look at it.

use super::rule::{Evidence, Finding, Outcome, Seen};

/// A reading that costs more than this is no reading of a counter, in nanoseconds.
const DEAR_NS: u64 = 250;
/// The counter of the processor itself.
const CHEAP: &str = "tsc";

pub(super) fn clock(seen: &Seen<'_>) -> Outcome {
    let Some(clock) = seen.tuning().and_then(|tuning| tuning.clock.as_ref()) else {
        return Outcome::unavailable("this run does not tell which clock this host's kernel reads");
    };
    if clock.read_ns < DEAR_NS {
        return Outcome::Silent;
    }
    let change = match clock.others.iter().any(|other| other == CHEAP) {
        true => format!(
            "Have the kernel read {CHEAP} (clocksource={CHEAP}), if its log does not call it unstable, and measure again."
        ),
        false => "Find out in the kernel's log why no cheaper clock is used.".into(),
    };
    Outcome::Fires(Finding {
        evidence: vec![Evidence::new(
            format!("reading the clock {}", clock.source),
            clock.read_ns as f64,
            "ns",
        )],
        sentence: format!(
            "The clock {} costs each program that looks at the time, QEMU among them.",
            clock.source
        ),
        change,
        gain: None,
    })
}
