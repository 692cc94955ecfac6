//! What a reader takes away from a study of a platform.

use std::fmt::Write;

use virtbench_model::platform::{DomainScore, MetricScore, PlatformScore};
use virtbench_record::{PlatformPlan, Provenance};

use super::Takeaway;
use super::cautions::emulation;
use super::words::listed;
use crate::format::{count, ratio, ratio_span};

/// So many of the figures that lose most are named.
const DEAREST: usize = 3;

/// The score, then each domain, then what costs most.
pub(crate) fn of_platform(provenance: &Provenance, plan: &PlatformPlan, found: &PlatformScore) -> Takeaway {
    let mut details: Vec<String> = found.domains.iter().filter_map(domain).collect();
    details.extend(dearest(found));
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    cautions.extend(found.domains.iter().filter_map(missing));
    if plan.repetitions < 3 {
        let times = if plan.repetitions == 1 { "once" } else { "twice" };
        cautions.push(format!("Each domain was measured {times}: intervals need three."));
    }
    cautions.push(
        "A score is of its domains and its profile: scores of other domains, of another profile or of VMs that something else \
         executes are not comparable with it."
            .into(),
    );
    Takeaway { headline: headline(plan, found), details, cautions }
}

/// `VMs reach 0.62 of this host (0.58 to 0.66) over 4 domains: ...`
fn headline(plan: &PlatformPlan, found: &PlatformScore) -> String {
    let Some(score) = found.score else {
        return "No domain has been measured yet, so there is no score.".into();
    };
    let names: Vec<String> = found.counted().map(|domain| domain.name.clone()).collect();
    let span = score.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let of =
        if plan.domains.len() == names.len() { String::new() } else { format!(" of {}", plan.domains.len()) };
    format!(
        "VMs reach {} of this host{span}: the score over {}{of}, {}.",
        ratio(score.mean),
        count(names.len(), "domain"),
        listed(names.iter().map(String::as_str))
    )
}

fn domain(one: &DomainScore) -> Option<String> {
    let found = one.ratio?;
    let span = found.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let mut sentence = format!("{}: {}{span}.", capitalised(&one.name), ratio(found.mean));
    if one.sentences.is_empty() {
        let figure = |metric: &MetricScore| format!("{} {}", metric.short_name(), ratio(metric.ratio));
        let figures: Vec<String> = one.metrics.iter().map(figure).collect();
        let _ = write!(sentence, " {}.", capitalised(&figures.join("; ")));
    }
    for words in &one.sentences {
        sentence.push(' ');
        sentence.push_str(words);
    }
    Some(sentence)
}

fn dearest(found: &PlatformScore) -> Option<String> {
    let all = found.dearest(DEAREST);
    let losing: Vec<String> = all
        .iter()
        .filter(|(_, metric)| metric.ratio < 1.0)
        .map(|(domain, metric)| format!("{}, {} {}", domain.name, metric.short_name(), ratio(metric.ratio)))
        .collect();
    (!losing.is_empty()).then(|| format!("What costs most: {}.", losing.join("; ")))
}

fn missing(one: &DomainScore) -> Option<String> {
    match (&one.unavailable, one.failures.first(), one.ratio) {
        (Some(why), _, None) => Some(format!("{} has no part in the score: {why}", capitalised(&one.name))),
        (_, Some(why), None) => {
            Some(format!("{} has no part in the score, it failed: {why}", capitalised(&one.name)))
        }
        (_, Some(why), Some(_)) => {
            Some(format!("{} of {} failed: {why}", count(one.failures.len(), "repetition"), one.name))
        }
        _ => None,
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
