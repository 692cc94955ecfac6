//! Where the spread of a database's seconds comes from: how much of their variance lies in seconds in which something else
//! happened too.

use std::collections::BTreeSet;

use virtbench_record::{OltpCause, OltpMeasured, OltpSecond, OltpTimeline};

/// Stolen time counts from this share of one processor on, in percent.
const STOLEN_PERCENT: f64 = 5.0;
/// Caches count as cold for so long, in nanoseconds since measuring began.
const COLD_NS: u64 = 5_000_000_000;
/// A second that is shorter, at the end, is left out.
const WHOLE_NS: u64 = 900_000_000;

/// Seconds with a mark, of all seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MarkedSeconds {
    /// How many there are.
    pub seconds: usize,
    /// How much of the variance of all seconds lies in them, as a share.
    pub variance_share: f64,
    /// Their mean throughput as a multiple of that of all.
    pub throughput_ratio: f64,
}

/// Where the variance of seconds lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Causes {
    /// Seconds in all.
    pub seconds: usize,
    /// By cause. A second may have several.
    pub by_cause: Vec<(OltpCause, MarkedSeconds)>,
    /// Seconds with any cause.
    pub marked: MarkedSeconds,
    /// What is not known, and why not.
    pub unavailable: Vec<String>,
}

/// A second's distance from the mean of its run, squared, in units of that mean; its throughput in that unit; its marks.
struct MeasuredSecond {
    square: f64,
    relative: f64,
    marks: BTreeSet<OltpCause>,
}

/// The causes in these runs of one side; nothing without a timeline.
#[must_use]
pub fn causes<'a>(runs: impl IntoIterator<Item = &'a OltpMeasured>) -> Option<Causes> {
    let (mut seen, mut unavailable) = (Vec::new(), BTreeSet::new());
    for run in runs {
        let Some(timeline) = &run.timeline else { continue };
        unavailable.extend(timeline.unavailable.iter().cloned());
        let whole: Vec<&OltpSecond> =
            run.outcome.series.iter().filter(|second| second.length_ns >= WHOLE_NS).collect();
        let mean = whole.iter().map(|second| rate(second)).sum::<f64>() / whole.len().max(1) as f64;
        if mean <= 0.0 {
            continue;
        }
        seen.extend(whole.into_iter().map(|second| {
            let relative = rate(second) / mean;
            MeasuredSecond { square: (relative - 1.0).powi(2), relative, marks: marks(second, timeline) }
        }));
    }
    let all: f64 = seen.iter().map(|second| second.square).sum();
    let of = |holds: &dyn Fn(&MeasuredSecond) -> bool| {
        let chosen: Vec<&MeasuredSecond> = seen.iter().filter(|second| holds(second)).collect();
        let number = chosen.len().max(1) as f64;
        MarkedSeconds {
            seconds: chosen.len(),
            variance_share: if all > 0.0 {
                chosen.iter().map(|second| second.square).sum::<f64>() / all
            } else {
                0.0
            },
            throughput_ratio: chosen.iter().map(|second| second.relative).sum::<f64>() / number,
        }
    };
    let by_cause = OltpCause::ALL.map(|cause| (cause, of(&|second| second.marks.contains(&cause))));
    (!seen.is_empty()).then(|| Causes {
        seconds: seen.len(),
        by_cause: by_cause.into_iter().filter(|(_, marked)| marked.seconds > 0).collect(),
        marked: of(&|second| !second.marks.is_empty()),
        unavailable: unavailable.into_iter().collect(),
    })
}

fn rate(second: &OltpSecond) -> f64 {
    second.transactions as f64 * 1e9 / second.length_ns.max(1) as f64
}

/// What happened in a second of a run.
#[must_use]
pub fn marks(second: &OltpSecond, timeline: &OltpTimeline) -> BTreeSet<OltpCause> {
    let (begin, end) = (second.start_ns, second.start_ns.saturating_add(second.length_ns));
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let overlap =
        timeline.events.iter().filter(|event| event.begin_ns < signed(end) && event.end_ns > signed(begin));
    let mut marks: BTreeSet<OltpCause> = overlap.map(|event| event.cause).collect();
    let middle = begin + second.length_ns / 2;
    let at = timeline.seconds.iter().rev().find(|at| at.start_ns <= middle);
    if let Some(at) = at.filter(|at| middle - at.start_ns < 2_000_000_000) {
        if at.steal_percent >= STOLEN_PERCENT {
            marks.insert(OltpCause::StolenTime);
        }
        if at.busy {
            marks.insert(OltpCause::BusyHost);
        }
    }
    if begin < COLD_NS {
        marks.insert(OltpCause::ColdCache);
    }
    marks
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;
