//! The sentences a reader takes away. Each must stay true whatever the run looks like.

mod application;
mod application_study;
pub(crate) mod cautions;
mod completeness;
mod configurations;
mod desktops;
mod oltp;
mod operations;
mod platform;
mod predictions;
mod samples;
mod sets;
mod tiles;
mod tiles_study;
mod words;

use virtbench_model::{Comparison, RatioSummary};

use crate::environments::Environments;
use crate::format::{MEGABYTE, count, ratio, ratio_span, significant};
use crate::run::{Run, RunGuest, RunPoint, RunSide};

pub(crate) use application::of_application;
pub(crate) use application_study::of_application_study;
pub(crate) use desktops::of_desktops;
pub(crate) use oltp::of_oltp;
pub use operations::growth_takeaway;
pub(crate) use operations::of_operations;
pub(crate) use platform::{
    DEAREST as PLATFORM_DEAREST, change as platform_change, domain_sentence, line as platform_line,
    of_platform,
};
pub(crate) use predictions::predictions_takeaway;
pub(crate) use samples::of_samples;
pub(crate) use sets::{of_deviation, of_neighbours};
pub(crate) use tiles::of_tiles;
pub(crate) use tiles_study::of_tiles_study;
pub(crate) use words::group_name;

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
fn reaches(who: &str, what: &str, summary: &RatioSummary, points: usize) -> String {
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
