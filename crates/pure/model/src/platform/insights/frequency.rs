//! Processors whose frequency changed while something was measured.

use super::rule::{Evidence, Finding, Outcome, Seen};

/// So many times the least frequency the greatest may be.
const STEADY: f64 = 1.1;

pub(super) fn frequency(seen: &Seen<'_>) -> Outcome {
    let ranges: Vec<[u32; 2]> = seen.observed().filter_map(|observed| observed.frequency_mhz).collect();
    let least = ranges.iter().map(|range| range[0]).min();
    let most = ranges.iter().map(|range| range[1]).max();
    let (Some(least), Some(most)) = (least.filter(|least| *least > 0), most) else {
        return Outcome::unavailable(
            "this kernel does not tell the processors' frequency, as in most virtual machines",
        );
    };
    if f64::from(most) < STEADY * f64::from(least) {
        return Outcome::Silent;
    }
    let governor = seen.tuning().and_then(|tuning| tuning.frequency.as_ref());
    let under = governor.map_or_else(String::new, |facts| format!(", under the governor {}", facts.governor));
    Outcome::Fires(Finding {
        evidence: vec![
            Evidence::new(format!("least mean frequency{under}"), f64::from(least), "MHz"),
            Evidence::new("greatest mean frequency", f64::from(most), "MHz"),
        ],
        sentence: "The processors were not equally fast all the time, so that two sides may have had different ones.".into(),
        change: "Set the governor to performance while measuring, and measure again.".into(),
        gain: None,
    })
}
