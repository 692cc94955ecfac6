//! The sentences a reader takes away. Each must stay true whatever the run looks like.

pub(crate) mod cautions;

use std::collections::BTreeSet;

use virtbench_model::pairwise::{Access, Group, Kind, SMALL_MOST_BYTES};
use virtbench_model::{Comparison, RatioSummary};
use virtbench_units::format_bytes;

use crate::format::{MEGABYTE, count, ratio, ratio_span, significant};
use crate::run::{Environments, Run, RunGuest, RunPoint, RunSide};

/// The conclusions of a run in plain sentences, without markup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takeaway {
    /// The one sentence.
    pub headline: String,
    /// What supports and completes it.
    pub details: Vec<String>,
    /// What keeps a careful reader from taking it for more than it is.
    pub cautions: Vec<String>,
}

pub(crate) fn of_run(run: &Run<'_>) -> Takeaway {
    let headline = match run.only_guest() {
        Some(RunGuest { comparison, .. }) => match &comparison.summary {
            Some(summary) => compared(run, summary, comparison.curve.len()),
            None => not_compared(run),
        },
        None => several_compared(run).unwrap_or_else(|| not_compared(run)),
    };
    let of_guest = |guest: &RunGuest| {
        let (side, comparison) = (&guest.side, &guest.comparison);
        let judged =
            comparison.summary.as_ref().and_then(|found| significance(found, comparison.curve.len()));
        let judged = judged.map(|sentence| match run.only_guest() {
            Some(_) => sentence,
            None => format!("{}: {sentence}", side.name),
        });
        [judged, cpu_cost(side, comparison)]
    };
    Takeaway {
        headline,
        details: run.guests.iter().flat_map(of_guest).flatten().collect(),
        cautions: cautions::all(&Environments::of_run(run)),
    }
}

fn compared(run: &Run<'_>, summary: &RatioSummary, points: usize) -> String {
    let guest = run.provenance.guest.as_ref();
    let under =
        guest.map_or_else(String::new, |guest| format!(", under {},", guest.accelerator.name.to_uppercase()));
    let disk = guest.map_or_else(String::new, |guest| format!(" whose disk is {}", guest.adapter));
    let who = format!("On this host{under} a VM{disk}");
    reaches(&who, "native throughput", summary, points)
}

/// `... reaches on average 0.45 of native throughput under UML (...) and 0.23 under TCG (...)`, if any was compared.
fn several_compared(run: &Run<'_>) -> Option<String> {
    let of_guest = |guest: &RunGuest| {
        let summary = guest.comparison.summary.as_ref()?;
        let (mean, least, most) = (summary.mean.value, summary.min.ratio.value, summary.max.ratio.value);
        let points = count(guest.comparison.curve.len(), "point");
        let platform = &guest.side.name;
        Some((ratio(mean), format!("under {platform} ({} to {} over {points})", ratio(least), ratio(most))))
    };
    let mut found = run.guests.iter().filter_map(of_guest);
    let (first, where_) = found.next()?;
    let others: String = found.map(|(share, where_)| format!(" and {share} {where_}")).collect();
    let disk = run
        .provenance
        .guest
        .as_ref()
        .map_or_else(String::new, |guest| format!(" whose disk is {}", guest.adapter));
    Some(format!("On this host a VM{disk} reaches on average {first} of native throughput {where_}{others}."))
}

/// `WHO reaches 0.38 of WHAT on average over 18 points (...).`
pub(crate) fn reaches(who: &str, what: &str, summary: &RatioSummary, points: usize) -> String {
    let reach = format!("{who} reaches {} of {what}", ratio(summary.mean.value));
    let (least, most) = (ratio(summary.min.ratio.value), ratio(summary.max.ratio.value));
    match points {
        1 => {
            let interval = summary
                .min
                .ratio
                .interval
                .map_or_else(String::new, |span| format!("; 95 % interval {}", ratio_span(span)));
            format!("{reach} at the one point compared ({}{interval}).", summary.min.key)
        }
        points if least == most => format!("{reach} at each of {points} points."),
        points => {
            let interval = summary.mean.interval.map_or_else(
                || "too few points for an interval".to_owned(),
                |span| format!("95 % interval of the mean {}", ratio_span(span)),
            );
            format!("{reach} on average over {points} points ({least} to {most}; {interval}).")
        }
    }
}

fn not_compared(run: &Run<'_>) -> String {
    let throughputs = |side: &RunSide| -> Vec<f64> {
        let of_point = |point: &RunPoint| Some(point.side(side)?.throughput?.mean / MEGABYTE);
        run.points.iter().filter_map(of_point).collect()
    };
    let alone = |side: &RunSide, throughputs: &[f64]| {
        let least = throughputs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = throughputs.iter().copied().fold(0.0, f64::max);
        let range = if significant(least) == significant(most) {
            format!("{} MB/s", significant(most))
        } else {
            format!("{} to {} MB/s", significant(least), significant(most))
        };
        format!("Measured {}: {range} at {}.", side.place, count(throughputs.len(), "point"))
    };
    let measured: Vec<(&RunSide, Vec<f64>)> = run
        .sides
        .iter()
        .map(|side| (side, throughputs(side)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let sentences: Vec<String> = measured.iter().map(|(side, values)| alone(side, values)).collect();
    let guests = if run.only_guest().is_some() { "the VM" } else { "a VM" };
    let only = |guest: &RunGuest| guest.side.place.clone();
    match measured.first() {
        None => "Nothing has been measured.".into(),
        Some((side, _)) if side.index == 0 && measured.len() == 1 => format!(
            "Nothing has been measured {}, so nothing can be said about its cost. {}",
            run.only_guest().map_or_else(|| "in a VM".into(), only),
            sentences.join(" ")
        ),
        Some((side, _)) if side.index > 0 => format!(
            "Nothing has been measured natively, so there is nothing to compare {guests} with. {}",
            sentences.join(" ")
        ),
        Some(_) => "No repetition moved data on both sides, so there is no ratio.".into(),
    }
}

/// Whether the differences are more than chance.
fn significance(summary: &RatioSummary, points: usize) -> Option<String> {
    if summary.without_interval == points {
        return Some(
            "No point was measured often enough for an interval, so a difference cannot be told from chance."
                .into(),
        );
    }
    let of_all = |number: usize| match (number, points) {
        (1, 1) => "at this point".into(),
        (number, points) if number == points => format!("at all {points} points"),
        _ => format!("at {number} of {points} points"),
    };
    let mut parts = Vec::new();
    for (number, verdict) in [
        (summary.slower, "the VM is slower"),
        (summary.faster, "the VM is faster"),
        (summary.undecided, "no difference is shown"),
    ] {
        if number > 0 {
            parts.push(format!("{verdict} {}", of_all(number)));
        }
    }
    if summary.without_interval > 0 {
        parts.push(format!("{} cannot be judged from a single repetition", summary.without_interval));
    }
    Some(format!("By 95 % intervals, {}.", parts.join("; ")))
}

fn cpu_cost(side: &RunSide, comparison: &Comparison) -> Option<String> {
    let cost = comparison.cpu_per_io?;
    let over = match (cost.pairs, cost.interval) {
        (1, _) => "at one point".into(),
        (points, None) => format!("geometric mean over {points} points, too few for an interval"),
        (points, Some(span)) => {
            format!("geometric mean over {points} points; 95 % interval {}", ratio_span(span))
        }
    };
    Some(format!(
        "Each I/O {} costs {} times the host CPU of a native one ({over}).",
        side.place.replacen("in ", "from ", 1),
        ratio(cost.value)
    ))
}

/// `a, b and c`.
pub(crate) fn listed<'t>(items: impl Iterator<Item = &'t str>) -> String {
    let items: Vec<&str> = items.collect();
    match items.as_slice() {
        [] => String::new(),
        [only] => (*only).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `sequential reads up to 16 KiB`; without the size where there is only one.
pub(crate) fn group_name(group: &Group, sizes: bool) -> String {
    let kind = group.kind.to_string();
    let limit = format_bytes(SMALL_MOST_BYTES);
    match (sizes, group.small) {
        (false, _) => kind,
        (true, true) => format!("{kind} up to {limit}"),
        (true, false) => format!("{kind} above {limit}"),
    }
}

/// The groups of which `chosen` are indices, in as few words as are true: all, by access, by kind, by size.
pub(crate) fn reach(groups: &[Group], chosen: &[usize]) -> String {
    if chosen.len() == groups.len() {
        return "every kind of I/O measured".into();
    }
    let is_chosen = |index: &usize| chosen.contains(index);
    let of = |holds: &dyn Fn(Kind) -> bool| -> Vec<usize> {
        (0..groups.len()).filter(|index| holds(groups[*index].kind)).collect()
    };
    let accesses: BTreeSet<u8> = groups.iter().map(|group| group.kind.random_percent).collect();
    let mut parts = Vec::new();
    for access in accesses {
        let all = of(&|kind| kind.random_percent == access);
        let kinds: BTreeSet<Kind> = all.iter().map(|index| groups[*index].kind).collect();
        if kinds.len() > 1 && all.iter().all(is_chosen) {
            parts.push(format!("{} I/O", Access(access)));
            continue;
        }
        for kind in kinds {
            let sizes = of(&|other| other == kind);
            if sizes.iter().all(is_chosen) {
                parts.push(kind.to_string());
            } else {
                parts.extend(
                    sizes
                        .iter()
                        .filter(|index| is_chosen(index))
                        .map(|index| group_name(&groups[*index], true)),
                );
            }
        }
    }
    listed(parts.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequential and random, writes and reads, small and large.
    fn eight() -> Vec<Group> {
        let kinds = [(0, 0), (0, 100), (100, 0), (100, 100)];
        let group = |(random_percent, read_percent), small| Group {
            kind: Kind { random_percent, read_percent },
            small,
            points: Vec::new(),
            standings: Vec::new(),
        };
        kinds.into_iter().flat_map(|kind| [true, false].map(|small| group(kind, small))).collect()
    }

    #[test]
    fn groups_are_named_in_as_few_words_as_are_true() {
        let groups = eight();
        for (chosen, text) in [
            (vec![0, 1, 2, 3, 4, 5, 6, 7], "every kind of I/O measured"),
            (vec![0, 1, 2, 3], "sequential I/O"),
            (vec![4, 5], "random writes"),
            (vec![0, 1, 2, 3, 6, 7], "sequential I/O and random reads"),
            (vec![2, 5, 6, 7], "sequential reads up to 16 KiB, random writes above 16 KiB and random reads"),
        ] {
            assert_eq!(reach(&groups, &chosen), text);
        }
    }

    #[test]
    fn a_list_ends_with_and() {
        for (items, text) in
            [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "a and b"), (&["a", "b", "c"], "a, b and c")]
        {
            assert_eq!(listed(items.iter().copied()), text);
        }
    }
}
