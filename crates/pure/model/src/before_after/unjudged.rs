//! What of a comparison could not be judged, and why. "Nothing got worse" must not be said of what nobody could see.

use super::compared::{BeforeAfter, ChangedEnvironment};
use crate::quantity::Direction;
use virtbench_record::Better;

/// A change to half or double that would not have shown: of less, too little was seen to be called judged.
const BLIND: f64 = 2.0;

/// Each reason in words, that which concerns most first.
pub(super) fn unjudged(compared: &BeforeAfter) -> Vec<String> {
    let mut reasons = Vec::new();
    if compared.same_run {
        reasons.push("both sides are the same run".to_owned());
    }
    if compared.environments.is_empty() {
        reasons.push("the runs have no point in common".to_owned());
        return reasons;
    }
    for environment in &compared.environments {
        reasons.extend(of_environment(environment));
    }
    for name in &compared.unmatched_environments {
        reasons.push(format!("{name} is in one run only"));
    }
    if compared.unmatched_points > 0 {
        reasons.push(format!("{} in one run only", points(compared.unmatched_points, "is", "are")));
    }
    reasons
}

fn of_environment(environment: &ChangedEnvironment) -> Vec<String> {
    let name = &environment.name;
    if let Some(busier) = &environment.busier {
        return vec![format!("{name}: {}", busier.words())];
    }
    let mut reasons = Vec::new();
    let idle =
        environment.points.iter().filter(|point| point.changes.iter().any(|change| change.ratio.is_nan()));
    let idle = idle.count();
    if idle > 0 {
        reasons.push(format!(
            "{name}: at {} both runs completed nothing in some repetition",
            points(idle, "", "")
        ));
    }
    let is_single = |point: &&super::compared::ChangedPoint| {
        point.changes.is_empty()
            || point.changes.iter().any(|change| !change.is_judged() && change.ratio.is_finite())
    };
    let single = environment.points.iter().filter(is_single).count();
    if single > 0 {
        let what = points(single, "was", "were");
        reasons.push(format!("{name}: {what} measured once on a side, so the spread is unknown"));
    }
    let blind = environment.overall.iter().find_map(|change| {
        let [low, high] = change.interval.filter(|_| change.verdict == Direction::Undecided)?;
        let is_blind = match change.quantity.better() {
            Better::Higher => low < 1.0 / BLIND,
            Better::Lower | Better::Neither => high > BLIND,
        };
        is_blind.then_some(change.quantity)
    });
    if let Some(quantity) = blind {
        reasons.push(format!("{name}: half or double the {} would not have shown", quantity.name()));
    }
    reasons
}

fn points(number: usize, one: &str, many: &str) -> String {
    let (noun, verb) = if number == 1 { ("point", one) } else { ("points", many) };
    format!("{number} {noun} {verb}").trim_end().to_owned()
}
