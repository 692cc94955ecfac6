//! Small pages under guests whose memory is slow.

use super::rule::{Evidence, Finding, Outcome, Seen};

/// Memory that is slower than this is looked into.
const SLOW: f64 = 0.9;

pub(super) fn huge_pages(seen: &Seen<'_>) -> Outcome {
    let Some(mode) = seen.tuning().and_then(|tuning| tuning.transparent_huge_pages.as_deref()) else {
        return Outcome::unavailable("this kernel does not tell of transparent huge pages");
    };
    let Some(ratio) = seen.ratio("memory") else {
        return Outcome::unavailable("memory was not measured");
    };
    if mode != "never" || ratio >= SLOW {
        return Outcome::Silent;
    }
    Outcome::Fires(Finding {
        evidence: vec![Evidence::new("memory, with transparent huge pages set to never", ratio, "times the base")],
        sentence: "Guests' memory is slow and lies in small pages, for each of which the processor walks two tables.".into(),
        change: "Set transparent huge pages to madvise or always, and measure memory again.".into(),
        gain: None,
    })
}
