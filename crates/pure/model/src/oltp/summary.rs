//! A study of a database as programs read it.

use virtbench_record::{Conclusion, OltpCauseNumbers, OltpCurveNumbers, OltpSideNumbers, OltpSummary};

use super::analysis::{OltpAnalysis, OltpSideAnalysis};
use super::causes::{Causes, MarkedSeconds};
use crate::application::application_numbers;

/// The numbers of a study that comes to this conclusion.
#[must_use]
pub fn summarise_oltp(conclusion: Conclusion, analysis: &OltpAnalysis) -> OltpSummary {
    let (saturated, saturated_ratios) = application_numbers(&analysis.saturated);
    let (equal, equal_ratios) = application_numbers(&analysis.equal);
    let sides = analysis.sides.iter().map(side).collect();
    OltpSummary { conclusion, sides, saturated, saturated_ratios, equal, equal_ratios }
}

fn side(one: &OltpSideAnalysis) -> OltpSideNumbers {
    let curve = one.curve.iter().map(|at| OltpCurveNumbers {
        users: at.point.users,
        transactions_per_second: at.point.per_second,
        p90_ns: at.p90_ns,
        idle_percent: at.point.idle_percent,
    });
    OltpSideNumbers {
        side: one.side.clone(),
        users: one.found.map(|found| found.point.users),
        end: one.found.map(|found| found.end.name().to_owned()),
        p90_ns: one.p90_ns.map(Into::into),
        between_runs_percent: one.spread.between_percent,
        within_run_percent: one.spread.within_percent,
        causes: one.causes.as_ref().map(cause_numbers).unwrap_or_default(),
        curve: curve.collect(),
        failures: one.failures.clone(),
    }
}

fn cause_numbers(causes: &Causes) -> Vec<OltpCauseNumbers> {
    let numbers = |cause, marked: &MarkedSeconds| OltpCauseNumbers {
        cause,
        seconds: marked.seconds,
        of_seconds: causes.seconds,
        variance_percent: 100.0 * marked.variance_share,
        throughput_ratio: marked.throughput_ratio,
    };
    let each = causes.by_cause.iter().map(|(cause, marked)| numbers(Some(*cause), marked));
    std::iter::once(numbers(None, &causes.marked)).chain(each).collect()
}
