//! What a reader takes away from a study of desktops.

use virtbench_model::desktops::DesktopsAnalysis;
use virtbench_record::{DesktopsNumbers, DesktopsPlan, Provenance};

use super::Takeaway;
use super::cautions::{emulation, uml_guest};
use crate::format::{MILLISECOND_NS, SECOND_NS, count, rounded, significant};

/// Beyond this the processors are what limits, in percent of all of them.
const BUSY_PERCENT: f64 = 90.0;

/// How many fit, what breaks beyond, and what is behind it.
pub(crate) fn of_desktops(
    provenance: &Provenance,
    plan: &DesktopsPlan,
    analysis: &DesktopsAnalysis,
) -> Takeaway {
    let broken = analysis.numbers.iter().find(|at| Some(at.desktops) > analysis.most);
    let headline = match (analysis.most, analysis.numbers.last()) {
        (_, None) => "Nothing was measured of any number of desktops yet.".to_owned(),
        (None, Some(_)) if analysis.numbers.iter().all(|at| at.quality == "unknown") => {
            "No user got beyond the first application: have them work longer.".to_owned()
        }
        (None, Some(_)) => {
            let least = analysis.numbers.first().map_or(0, |at| at.desktops);
            format!("Users are not content even with {}.", count(least as usize, "desktop"))
        }
        (Some(most), Some(last)) => {
            let processors = f64::from(provenance.host.processors.max(1));
            let fit = if plan.are_existing() {
                format!("Users are content with {} where they are", count(most as usize, "desktop"))
            } else {
                let each = significant(f64::from(most) / processors);
                let verb = if most == 1 { "fits" } else { "fit" };
                format!("{} {verb} on this host, {each} a processor", count(most as usize, "desktop"))
            };
            let fit = format!("{fit}{}", by_the_picture(plan, analysis, most));
            match broken {
                Some(next) => format!("{fit}: with {} users are no longer content.", next.desktops),
                None if last.desktops == most => format!("{fit}; more were not tried."),
                None => format!("{fit}."),
            }
        }
    };
    let mut details = Vec::new();
    let at_most = analysis.numbers.iter().find(|at| Some(at.desktops) == analysis.most);
    details.extend(at_most.map(|at| quality(plan, at)));
    details
        .extend(at_most.filter(|at| at.quality != "passed").map(|at| surely(&analysis.numbers, at.desktops)));
    details.extend(at_most.and_then(|at| agreement(plan, at)));
    if let Some(at) = broken {
        details.extend(why_broken(plan, analysis, at));
    }
    details.extend(at_most.into_iter().flat_map(videos));
    details.extend(broken.into_iter().flat_map(videos));
    details.extend(at_most.and_then(echo));
    Takeaway { headline, details, cautions: cautions(provenance, plan, analysis) }
}

/// How many fit where the intervals keep to the limits as well, of up to `most`.
fn surely(numbers: &[DesktopsNumbers], most: u32) -> String {
    let sure = numbers.iter().take_while(|at| at.desktops <= most).filter(|at| at.quality == "passed").last();
    match sure {
        Some(at) => format!(
            "Sure by 95 % intervals: {}. Beyond that, up to {most}, a limit lies within the interval.",
            count(at.desktops as usize, "desktop")
        ),
        None => "By 95 % intervals no number is sure.".to_owned(),
    }
}

/// How many fit by the last change of the picture, where that is another number.
fn by_the_picture(plan: &DesktopsPlan, analysis: &DesktopsAnalysis, most: u32) -> String {
    match analysis.most_by_last_change {
        _ if plan.are_existing() => String::new(),
        Some(other) if other == most => String::new(),
        Some(other) => format!(" ({other} by the last change of the picture)"),
        None => " (none by the last change of the picture)".into(),
    }
}

/// How far the marker of an end and the last change of the picture are apart.
fn agreement(plan: &DesktopsPlan, at: &DesktopsNumbers) -> Option<String> {
    let found = at.agreement?;
    let seconds = |ns: u64| significant(ns as f64 / SECOND_NS);
    Some(format!(
        "The marker of an operation's end and the last change of the picture, which needs no help from inside, are at most {} s apart in \
         half of the operations and {} s in {} %; a cursor that blinks and a bar that fades are such changes.",
        seconds(found.median_ns),
        seconds(found.percentile_ns),
        significant(plan.share * 100.0)
    ))
}

fn quality(plan: &DesktopsPlan, at: &DesktopsNumbers) -> String {
    let groups = at.groups.iter().filter_map(|group| {
        let found = group.percentile?;
        Some(format!(
            "group {} {} s (limit {} s)",
            group.group.name(),
            significant(found.ns as f64 / SECOND_NS),
            significant(group.limit_ns as f64 / SECOND_NS)
        ))
    });
    let groups = groups.collect::<Vec<_>>().join(", ");
    format!(
        "With {}, {} % of the operations took at most: {groups}; {} % failed.",
        count(at.desktops as usize, "desktop"),
        significant(plan.share * 100.0),
        rounded(at.errors * 100.0, 1)
    )
}

fn videos(at: &DesktopsNumbers) -> impl Iterator<Item = String> {
    at.operations.iter().filter_map(|one| {
        let video = one.video?;
        Some(format!(
            "With {} users saw {} of {} frames a second in {} {}; {} % of the frames were dropped, and the picture stood still for {} ms at \
             most.",
            count(at.desktops as usize, "desktop"),
            rounded(video.seen_rate, 1),
            video.rate,
            one.operation.application,
            one.operation.operation,
            rounded(video.dropped_percent, 1),
            significant(video.longest_freeze_ns as f64 / MILLISECOND_NS)
        ))
    })
}

/// What made users discontent: desktops that were lost, operations that failed, or those that took too long, for which alone the
/// host's processors may be to blame.
fn why_broken(plan: &DesktopsPlan, analysis: &DesktopsAnalysis, at: &DesktopsNumbers) -> Vec<String> {
    let with = count(at.desktops as usize, "desktop");
    let mut details = Vec::new();
    if let Some(first) = at.lost.first() {
        let more = match at.lost.len() - 1 {
            0 => String::new(),
            more => format!(" {} more were lost.", count(more, "desktop")),
        };
        details.push(format!(
            "With {with} desktop {} could not be used: {}.{more}",
            first.user + 1,
            first.why
        ));
    }
    if let Some((why, times)) = at.error_kinds.iter().max_by_key(|(_, times)| **times) {
        details.push(format!(
            "With {with} {} % of the operations failed; most often, {}: {why}.",
            rounded(at.errors * 100.0, 1),
            match times {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            }
        ));
    }
    if let Some(first) = &analysis.broke_first {
        let is_slow =
            at.groups.iter().any(|group| group.percentile.is_some_and(|found| found.ns > group.limit_ns));
        let behind = if is_slow && !plan.are_existing() { behind(at) } else { String::new() };
        details.push(format!("With {with} {} {} broke first.{behind}", first.application, first.operation));
    }
    if at.groups.iter().any(|group| group.percentile.is_some()) {
        details.push(quality(plan, at));
    }
    details
}

fn behind(at: &DesktopsNumbers) -> String {
    at.host_busy_percent.map_or_else(String::new, |busy| {
        // Ticks are counted coarsely, and may come out a little above all that there is.
        let busy = busy.min(100.0);
        let busy_text = rounded(busy, 0);
        if busy >= BUSY_PERCENT {
            format!(" The processors were {busy_text} % busy: they are what limits.")
        } else {
            format!(" The processors were {busy_text} % busy: something else limits, or bursts do.")
        }
    })
}

fn echo(at: &DesktopsNumbers) -> Option<String> {
    let ms = significant(at.echo_median_ns? as f64 / MILLISECOND_NS);
    Some(format!(
        "The first key of a text changed the picture within {ms} ms, in half of the cases: the floor of everything interactive."
    ))
}

fn cautions(provenance: &Provenance, plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Vec<String> {
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    if plan.are_existing() {
        cautions.push(
            "Desktops were there already: what they cost is not in the use of this host. Nobody inside draws a marker, so operations end \
             with the last change of the picture, a cursor that blinks left out."
                .to_owned(),
        );
    } else if !plan.vm {
        cautions
            .push("Desktops are sessions on the host itself: no hypervisor is in these figures.".to_owned());
    } else if uml_guest(provenance).is_some() {
        cautions.push(
            "User Mode Linux has no screen: each desktop serves VNC itself over its network, as natively. Of a screen that a hypervisor \
             shows nothing is in these figures."
                .to_owned(),
        );
    }
    if let Some(link) = plan.link {
        cautions.push(format!(
            "Between users and desktops this process holds back what comes too early: {}. Nothing is lost there, and TCP's own control of \
             a slow link is not in these figures.",
            crate::provenance::link(link)
        ));
    }
    cautions.push("The users share the host with their desktops; what they cost is in its use.".to_owned());
    let open = analysis.numbers.iter().filter(|at| at.quality == "open").map(|at| at.desktops.to_string());
    let open: Vec<String> = open.collect();
    if !open.is_empty() {
        cautions.push(format!(
            "With {} {} the limit lies within the interval, or operations are too few for one: measure longer.",
            open.join(", "),
            if open == ["1"] { "desktop" } else { "desktops" }
        ));
    }
    cautions.extend(analysis.others.clone());
    let outside: u64 = analysis.numbers.iter().map(|at| at.outside).sum();
    if outside > 0 {
        cautions.push(format!(
            "Of {} the session's own clock tells more time than passed for its user: it runs fast, and times inside are not to be \
             trusted.",
            count(usize::try_from(outside).unwrap_or(usize::MAX), "operation")
        ));
    }
    for (desktops, why) in &analysis.failures {
        cautions.push(format!("{desktops} desktops did not stand: {why}"));
    }
    cautions
}
