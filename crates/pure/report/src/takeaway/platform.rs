//! What a reader takes away from a study of a platform.

use virtbench_model::platform::{DomainScore, MetricScore, Outcome};

use super::Takeaway;
use super::cautions::emulation;
use super::words::listed;
use crate::card::Card;
use crate::format::{count, ratio, ratio_span, with_unit};

/// So many of the figures that lose most are named.
pub(crate) const DEAREST: usize = 3;
/// Of more figures of a domain the least and the greatest are named.
const NAMED: usize = 4;
/// So many changes are named.
const CHANGES: usize = 3;

/// The score, then the domains, what costs most, what to change first and what rules have found.
pub(crate) fn of_platform(card: &Card<'_>) -> Takeaway {
    let mut details: Vec<String> = domains(card).into_iter().collect();
    details.extend(card.measured().filter(|one| one.ratio.is_none()).map(figures));
    details.extend(dearest(card));
    details.extend(card.insights.iter().filter_map(|insight| match &insight.outcome {
        Outcome::Fires(finding) => Some(finding.sentence.clone()),
        Outcome::Silent | Outcome::Unavailable(_) => None,
    }));
    details.extend(changes(card));
    Takeaway { headline: headline(card), details, cautions: cautions(card) }
}

/// All of it in one line, for a terminal.
pub(crate) fn line(card: &Card<'_>) -> String {
    let Some(score) = card.found.score else { return headline(card) };
    let span = score.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let domains: Vec<String> =
        card.measured().filter_map(|one| Some(format!("{} {}", one.name, ratio(one.ratio?.mean)))).collect();
    let under = card.executed_by().map_or_else(String::new, |name| format!(", under {name}"));
    format!(
        "{} of {}{span}: {}; profile {}{under}",
        ratio(score.mean),
        card.plan.base(),
        domains.join(", "),
        card.plan.profile
    )
}

/// `VMs reach 0.62 of this host (0.58 to 0.66): the score over 4 domains, ...`
fn headline(card: &Card<'_>) -> String {
    let Some(score) = card.found.score else {
        return "No domain has been measured yet, so there is no score.".into();
    };
    let names: Vec<&str> = card.found.counted().map(|domain| domain.name.as_str()).collect();
    let span = score.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let comparable = card.plan.domains.iter().filter(|domain| card.plan.compares(domain)).count();
    let of = if comparable == names.len() { String::new() } else { format!(" of {comparable}") };
    let subject = capitalised(card.plan.subject());
    let verb = if subject == "VMs" { "reach" } else { "reaches" };
    format!(
        "{subject} {verb} {} of {}{span}: the score over {}{of}, {}.",
        ratio(score.mean),
        card.plan.base(),
        count(names.len(), "domain"),
        listed(names.into_iter())
    )
}

/// `Storage 0.44 (0.40 to 0.48); network 0.18.`
fn domains(card: &Card<'_>) -> Option<String> {
    let all = card.measured().filter_map(|one| {
        let found = one.ratio?;
        let span = found.span().map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
        Some(format!("{} {}{span}", one.name, ratio(found.mean)))
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| format!("{}.", capitalised(&all.join("; "))))
}

/// What a domain without a counterpart came to.
fn figures(one: &DomainScore) -> String {
    format!("{}: {}", capitalised(&one.name), domain_sentence(one))
}

/// What a domain came to: what its only run says, or the means over the repetitions.
pub(crate) fn domain_sentence(one: &DomainScore) -> String {
    if !one.sentences.is_empty() {
        return one.sentences.join(" ");
    }
    let named = |metric: &MetricScore| format!("{} {}", metric.short_name(), ratio(metric.ratio));
    let all: Vec<String> = match one.metrics.as_slice() {
        [] => one
            .figures
            .iter()
            .map(|one| format!("{} {}", one.name, with_unit(one.value, &one.unit)))
            .collect(),
        metrics if metrics.len() > NAMED => {
            let by_ratio = |one: &&MetricScore, other: &&MetricScore| one.ratio.total_cmp(&other.ratio);
            let ends = [metrics.iter().min_by(by_ratio), metrics.iter().max_by(by_ratio)];
            let [least, most] = ends.map(|end| end.map_or_else(String::new, named));
            vec![format!("{} figures, from {least} to {most}", metrics.len())]
        }
        metrics => metrics.iter().map(named).collect(),
    };
    let of = match one.repetitions().len() {
        0 | 1 => String::new(),
        repetitions => format!("; means of {repetitions} repetitions"),
    };
    format!("{}{of}.", capitalised(&all.join("; ")))
}

fn dearest(card: &Card<'_>) -> Option<String> {
    let losing: Vec<String> = card
        .found
        .dearest(DEAREST)
        .iter()
        .filter(|(_, metric)| metric.ratio < 1.0)
        .map(|(domain, metric)| format!("{}, {} {}", domain.name, metric.short_name(), ratio(metric.ratio)))
        .collect();
    (!losing.is_empty()).then(|| format!("What costs most: {}.", losing.join("; ")))
}

fn changes(card: &Card<'_>) -> Option<String> {
    let all: Vec<String> = card.advice.iter().take(CHANGES).map(change).collect();
    (!all.is_empty()).then(|| format!("Change first: {}", all.join(" ")))
}

/// A change, with what was measured with it.
pub(crate) fn change(advice: &virtbench_model::platform::Advice) -> String {
    let sentence = &advice.sentence;
    match advice.gain {
        Some(gain) => format!("{sentence} Measured here: {} times as much.", ratio(gain)),
        None => format!("{sentence} It was not tried here."),
    }
}

fn cautions(card: &Card<'_>) -> Vec<String> {
    let mut cautions: Vec<String> = emulation(card.provenance).into_iter().collect();
    cautions.extend(other_accelerator(card));
    cautions.extend(card.others().map(|(used, processors)| {
        format!(
            "Other programs used {used:.1} of this host's {processors} processors meanwhile: what computes natively and in a VM had unequal \
             shares of the rest, so that ratios may be far off to either side. Measure again on a quiet host."
        )
    }));
    cautions.extend(card.found.domains.iter().filter_map(missing));
    if card.plan.repetitions < 3 {
        let times = if card.plan.repetitions == 1 { "once" } else { "twice" };
        cautions.push(format!("Each domain was measured {times}: intervals need three."));
    }
    cautions.push(
        "A score is of its domains and its profile: scores of other domains, of another profile or of VMs that something else \
         executes are not comparable with it."
            .into(),
    );
    cautions
}

/// Guests of the reference were executed by something else.
fn other_accelerator(card: &Card<'_>) -> Option<String> {
    let reference = card.plan.reference.as_ref()?;
    let (there, here) = (reference.accelerator.as_ref()?.to_uppercase(), card.executed_by()?);
    (there != here).then(|| {
        format!(
            "Guests here were executed by {here}, those of {} by {there}: the ratios compare {here} with {there}, and say nothing of the hosts.",
            reference.run
        )
    })
}

fn missing(one: &DomainScore) -> Option<String> {
    let name = capitalised(&one.name);
    match (&one.unavailable, one.failures.first(), one.ratio.is_some() || !one.figures.is_empty()) {
        (Some(why), _, false) => Some(format!("{name} has no part in the score: {why}")),
        (_, Some(why), false) => Some(format!("{name} has no part in the score, it failed: {why}")),
        (_, Some(why), true) => {
            Some(format!("{} of {} failed: {why}", count(one.failures.len(), "repetition"), one.name))
        }
        _ => None,
    }
}

pub(crate) fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
