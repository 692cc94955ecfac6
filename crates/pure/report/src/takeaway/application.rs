//! What a reader takes away from an application on several sides.

use virtbench_model::ApplicationAnalysis;
use virtbench_model::application::{ApplicationSide, SideRatio};
use virtbench_model::{Ratio, Span};
use virtbench_record::Quantity;

use super::Takeaway;
use crate::format::{count, ratio, ratio_span, rounded, significant, trimmed};

/// What the first side compared comes to; the others are details.
pub(crate) fn of_application(analysis: &ApplicationAnalysis) -> Takeaway {
    let Some(reference) = analysis.sides.first() else { return Takeaway::default() };
    let mut sentences: Vec<String> = analysis.sides.iter().filter_map(stall).collect();
    for against in &analysis.ratios {
        let side = &analysis.sides[against.side];
        sentences.extend(throughput(reference, side, against));
        sentences.extend(cycles(reference, side, against));
    }
    let mut cautions: Vec<String> = analysis.sides.iter().filter_map(mismatch).collect();
    cautions.extend(analysis.sides.iter().filter_map(partial_stall));
    let ratios = || analysis.ratios.iter().flat_map(|against| against.ratios.values());
    if ratios().next().is_some() && ratios().all(|ratio| ratio.interval.is_none()) {
        cautions.push("Each side has a single value, so nothing is known of the spread.".into());
    }
    let nothing = || "There is nothing that two sides have in common.".to_owned();
    let mut sentences = sentences.into_iter();
    Takeaway { headline: sentences.next().unwrap_or_else(nothing), details: sentences.collect(), cautions }
}

/// A side that did nothing at all comes before any ratio: it has none.
fn stall(side: &ApplicationSide) -> Option<String> {
    let has_stalled = side.counted > 0 && side.stalled == side.counted;
    has_stalled.then(|| format!("{} completed no transaction in {}.", side.name, repetitions(side.counted)))
}

fn partial_stall(side: &ApplicationSide) -> Option<String> {
    let is_partial = side.stalled > 0 && side.stalled < side.counted;
    is_partial.then(|| {
        format!(
            "{} completed no transaction in {} of {}: ratios leave these out and are too kind to it.",
            side.name,
            side.stalled,
            repetitions(side.counted)
        )
    })
}

fn repetitions(number: usize) -> String {
    count(number, "repetition")
}

fn throughput(reference: &ApplicationSide, side: &ApplicationSide, against: &SideRatio) -> Option<String> {
    let done = against.ratios.get(&Quantity::TransactionsPerSecond)?;
    let mean = |side: &ApplicationSide, quantity| side.known.get(&quantity).map(|estimate| estimate.mean);
    let users = |of: &ApplicationSide| match mean(of, Quantity::Users) {
        Some(users) => format!(" with {} users", trimmed(users, 1)),
        None => String::new(),
    };
    let rate = |of| mean(of, Quantity::TransactionsPerSecond).map_or_else(String::new, significant);
    Some(format!(
        "{} does {} of {}'s transactions{}: {} a second{} against {}{}.",
        side.name,
        ratio(done.value),
        reference.name,
        span(done),
        rate(side),
        users(side),
        rate(reference),
        users(reference)
    ))
}

fn cycles(reference: &ApplicationSide, side: &ApplicationSide, against: &SideRatio) -> Option<String> {
    let growth = against.growth?;
    let change = |ratio: f64| {
        let percent = 100.0 * (ratio - 1.0);
        format!("{} % {}", rounded(percent.abs(), 0), if percent < 0.0 { "less" } else { "more" })
    };
    let parts = growth.slower_percent().map_or_else(String::new, |slower| {
        format!(" {} % of that growth is slower instructions, the rest is more of them.", rounded(slower, 0))
    });
    Some(format!(
        "A transaction takes {} cycles on {} than on {}: CPI {}, path length {}.{}",
        change(growth.cycles),
        side.name,
        reference.name,
        change(growth.cycles_per_instruction),
        change(growth.instructions),
        if growth.cycles_per_instruction >= 1.0 && growth.instructions >= 1.0 {
            parts
        } else {
            String::new()
        }
    ))
}

fn mismatch(side: &ApplicationSide) -> Option<String> {
    let mismatch = side.mismatch?;
    Some(format!(
        "CPI times path length is {} cycles on {}, {} % off the {} that were counted: one of the three is wrong.",
        significant(mismatch.product),
        side.name,
        rounded(mismatch.off_percent(), 1),
        significant(mismatch.cycles)
    ))
}

fn span(ratio: &Ratio) -> String {
    ratio.interval.map_or_else(String::new, |span: Span| format!(" ({})", ratio_span(span)))
}
