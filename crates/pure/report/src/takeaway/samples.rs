//! What a reader takes away from a study of sides.

use virtbench_model::samples::{SampleFound, SamplesAnalysis, SamplesSide};
use virtbench_record::{Provenance, SidesPlan};

use super::Takeaway;
use super::cautions::emulation;
use crate::format::{count, ratio, ratio_span, rounded, significant, with_unit};

/// Nanoseconds in a microsecond.
const MICROSECOND_NS: f64 = 1e3;

/// Each side against the first by what sums it up; then times with several peaks.
pub(crate) fn of_samples(provenance: &Provenance, plan: &SidesPlan, analysis: &SamplesAnalysis) -> Takeaway {
    let (first, others) = match analysis.sides.split_first() {
        Some((first, others)) => (Some(first), others),
        None => (None, &[][..]),
    };
    let compared = others.iter().filter_map(|side| compared(plan, first?, side));
    let alone = first.filter(|_| others.is_empty()).and_then(|side| described(plan, side));
    let mut sentences = compared.chain(alone).chain(analysis.sides.iter().filter_map(several_peaks));
    let nothing = || "No two sides have been measured yet.".to_owned();
    let headline = sentences.next().unwrap_or_else(nothing);
    let details = sentences.collect();
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    cautions.extend(analysis.sides.iter().filter_map(failed));
    let unavailable =
        |side: &SamplesSide| Some(format!("{} is unavailable: {}.", side.name, side.unavailable.as_ref()?));
    cautions.extend(analysis.sides.iter().filter_map(unavailable));
    if plan.repetitions < 3 {
        let values = count(plan.repetitions as usize, "value");
        cautions.push(format!("Each side has {values} at most: intervals need three."));
    }
    Takeaway { headline, details, cautions }
}

/// `tap against native: TCP to, 1 stream 0.10 times (120 MB/s; 0.09 to 0.11), ...`
fn compared(plan: &SidesPlan, first: &SamplesSide, side: &SamplesSide) -> Option<String> {
    let parts: Vec<String> = plan.headlines.iter().filter_map(|name| part(side.sample(name)?)).collect();
    (!parts.is_empty()).then(|| format!("{} against {}: {}.", side.name, first.name, parts.join("; ")))
}

fn part(found: &SampleFound) -> Option<String> {
    let against = found.against_first?;
    let span = against.interval.map_or_else(String::new, |span| format!(", {}", ratio_span(span)));
    let value = with_unit(found.estimate?.mean, &found.unit);
    Some(format!("{} {} times ({value}{span})", found.name, ratio(against.value)))
}

/// The only side.
fn described(plan: &SidesPlan, side: &SamplesSide) -> Option<String> {
    let part = |name: &&str| {
        let found = side.sample(name)?;
        Some(format!("{} {}", found.name, with_unit(found.estimate?.mean, &found.unit)))
    };
    let parts: Vec<String> = plan.headlines.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| format!("{}: {}.", side.name, parts.join("; ")))
}

/// Requests that are answered at once and others that wait, which is how interrupts that are coalesced show.
fn several_peaks(side: &SamplesSide) -> Option<String> {
    let (times, [quick, slow, ..]) = (side.times.first()?, &side.peaks[..]) else { return None };
    let us = |ns: u64| significant(ns as f64 / MICROSECOND_NS);
    let percent = |share: f64| rounded(share * 100.0, 0);
    Some(format!(
        "{}: a {} takes about {} us in {} % of cases and {} us in {} %: two groups, as where interrupts are coalesced or a \
         processor has to be woken.",
        side.name,
        times.name,
        us(quick.at_ns),
        percent(quick.share),
        us(slow.at_ns),
        percent(slow.share)
    ))
}

fn failed(side: &SamplesSide) -> Option<String> {
    let why = side.failures.first()?;
    Some(format!("{} of {} failed: {why}", count(side.failures.len(), "measurement"), side.name))
}
