//! What a reader takes away from a study of a database.

use virtbench_model::oltp::{OltpAnalysis, OltpSideAnalysis, UsersEnd};
use virtbench_record::{OltpStudyPlan, Provenance, Quantity};

use super::cautions::emulation;
use super::{Takeaway, of_application};
use crate::format::{MILLISECOND_NS, count, rounded, significant, trimmed};

/// Runs of one side should be no further apart than this, in percent.
const WANTED_SPREAD_PERCENT: f64 = 5.0;

/// The sides at their saturation; then at equal users, what limits each, and how far its runs are apart.
pub(crate) fn of_oltp(provenance: &Provenance, plan: &OltpStudyPlan, analysis: &OltpAnalysis) -> Takeaway {
    let saturated = of_application(&analysis.saturated);
    let mut details = saturated.details;
    let headline = if analysis.saturated.ratios.is_empty() {
        "No two sides have been measured at their saturation yet.".to_owned()
    } else {
        saturated.headline
    };
    for against in &analysis.equal.ratios {
        if let Some(done) = against.ratios.get(&Quantity::TransactionsPerSecond) {
            let users = analysis.equal.sides[0].known.get(&Quantity::Users);
            details.push(format!(
                "With {} users on both, {} does {} of {}'s transactions.",
                users.map_or_else(String::new, |users| trimmed(users.mean, 1)),
                analysis.equal.sides[against.side].name,
                crate::format::ratio(done.value),
                analysis.equal.sides[0].name
            ));
        }
    }
    details.extend(analysis.sides.iter().filter_map(limit));
    details.extend(analysis.sides.iter().filter_map(repeats));
    details.extend(analysis.sides.iter().filter_map(spread_causes));
    let mut cautions: Vec<String> = emulation(provenance).into_iter().chain(saturated.cautions).collect();
    cautions.extend(analysis.sides.iter().flat_map(doubts));
    if plan.sides.iter().any(|side| side.vcpus >= provenance.host.processors) {
        cautions
            .push("The driver shares processors with the database where that has all of them.".to_owned());
    }
    cautions.push(
        "Transactions after TPC-C's specification; not comparable with published TPC results.".to_owned(),
    );
    Takeaway { headline, details, cautions }
}

fn limit(one: &OltpSideAnalysis) -> Option<String> {
    let found = one.found?;
    let name = &one.side.name;
    let users = count(found.point.users as usize, "user");
    Some(match found.end {
        UsersEnd::Saturated => format!("{users} saturate the processors of {name}."),
        UsersEnd::NoGrowth => {
            let idle = found.point.idle_percent;
            let idle = idle.map_or_else(String::new, |idle| {
                format!(", with {} % of its processors idle", rounded(idle, 0))
            });
            format!(
                "More than {users} do not do more on {name}{idle}: something other than processors is its limit."
            )
        }
        UsersEnd::MostUsers => {
            format!("{name} does more with every user up to {users}, the most that were tried.")
        }
    })
}

fn repeats(one: &OltpSideAnalysis) -> Option<String> {
    let between = one.spread.between_percent?;
    let within = one
        .spread
        .within_percent
        .map_or_else(String::new, |within| format!(", parts of a run by {} %", rounded(within, 1)));
    let p90 = one.p90_ns.map_or_else(String::new, |p90| {
        format!(" 90 % of its New-Orders take at most {} ms.", significant(p90.mean / MILLISECOND_NS))
    });
    Some(format!(
        "Runs of {} at saturation, each after a boot of its own, differ by {} % (standard deviation of {}){within}.{p90}",
        one.side.name,
        rounded(between, 1),
        count(one.spread.runs, "run")
    ))
}

/// Where the variance of a side's seconds lies.
fn spread_causes(one: &OltpSideAnalysis) -> Option<String> {
    let causes = one.causes.as_ref().filter(|causes| causes.marked.seconds > 0)?;
    let percent = |share: f64| rounded(100.0 * share, 0);
    let each = causes.by_cause.iter().map(|(cause, marked)| {
        format!("{} {} % in {}", cause.name(), percent(marked.variance_share), marked.seconds)
    });
    Some(format!(
        "Of the variance between the seconds of {}, {} % lies in {} of {} seconds in which something else happened too: {}.",
        one.side.name,
        percent(causes.marked.variance_share),
        causes.marked.seconds,
        causes.seconds,
        each.collect::<Vec<_>>().join(", ")
    ))
}

fn doubts(one: &OltpSideAnalysis) -> Vec<String> {
    let name = &one.side.name;
    let mut doubts = Vec::new();
    if one.spread.between_percent.is_some_and(|percent| percent > WANTED_SPREAD_PERCENT) {
        doubts.push(format!(
            "Runs of {name} are further apart than {WANTED_SPREAD_PERCENT} %: more repetitions narrow the intervals."
        ));
    }
    if one.driver_is_limit {
        doubts.push(format!(
            "The driver was the limit in a run of {name}: its threads were busy for more than 90 % of the time, so the database can do more."
        ));
    }
    if let Some(first) = one.failures.first() {
        doubts.push(format!("{} of {name} failed: {first}", count(one.failures.len(), "measurement")));
    }
    doubts
}
