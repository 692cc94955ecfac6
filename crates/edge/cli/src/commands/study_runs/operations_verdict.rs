//! With which exit code a study of management operations ends.

use virtbench_model::operations::{OperationsAnalysis, StepAnalysis, analyse_operations, without_result};
use virtbench_record::{OperationsPlan, OperationsRecord};

use crate::args::operations::OperationsFailOn;
use crate::exit::{Failure, Kind, Outcome};

/// Fails where nothing was done, where more failed than is allowed, and where a piece is no result, in this order: what is known to be bad is
/// said before what is not known.
pub fn verdict(
    on: &[OperationsFailOn],
    plan: Option<&OperationsPlan>,
    records: &[OperationsRecord],
) -> Outcome {
    let Some(plan) = plan else { return Ok(()) };
    let analysis = analyse_operations(plan, records);
    nothing_done(records)?;
    for one in on {
        if let OperationsFailOn::Failures(most) = one {
            failures(*most, &analysis)?;
        }
    }
    no_result(records)?;
    let short = analysis.steps.iter().find(|step| step.per_minute.is_some() && step.kept_up.is_none());
    match short.filter(|_| on.contains(&OperationsFailOn::Undecided)) {
        None => Ok(()),
        Some(step) => {
            let said = format!("{}: pieces are too short to tell whether the platform kept up", name(step));
            Err(Failure::message(Kind::Undecided, said))
        }
    }
}

/// Operations were to start, and none succeeded.
fn nothing_done(records: &[OperationsRecord]) -> Outcome {
    let seen = || records.iter().filter_map(OperationsRecord::seen);
    if seen().any(|one| one.done() > 0) {
        return Ok(());
    }
    let words: Vec<String> = seen().flat_map(|one| &one.first_failures).take(3).cloned().collect();
    let why = if words.is_empty() { "none was started".to_owned() } else { words.join("\n") };
    Err(Failure::message(Kind::Measured, format!("no operation did what it is for: {why}")))
}

/// A step fails by itself: one that is light does not make up for one that is not. A rate that a search found to be too high is none.
fn failures(most_percent: f64, analysis: &OperationsAnalysis) -> Outcome {
    let counts = |step: &&StepAnalysis| {
        let too_high = |most: f64| step.per_minute.is_some_and(|rate| rate > most * (1.0 + 1e-9));
        !analysis.sustained_per_minute.is_some_and(too_high)
    };
    for step in analysis.steps.iter().filter(counts) {
        let (done, failed) = (step.done(), step.failed().values().sum::<u64>());
        let percent = 100.0 * failed as f64 / (done + failed).max(1) as f64;
        if done == 0 || percent > most_percent {
            let said = format!(
                "{}: {failed} of {} operations failed ({percent:.1} %), {done} were done; --fail-on allows {most_percent} %",
                name(step),
                done + failed
            );
            return Err(Failure::message(Kind::Measured, said));
        }
    }
    Ok(())
}

/// Pieces are no result.
fn no_result(records: &[OperationsRecord]) -> Outcome {
    let without: Vec<(&OperationsRecord, &str)> = without_result(records).collect();
    let Some((first, why)) = without.first() else { return Ok(()) };
    let said = format!(
        "{} of {} pieces are no result; the first, {} at {} VMs: {why}. --resume measures them again",
        without.len(),
        records.len(),
        first.key.piece + 1,
        first.key.vms
    );
    Err(Failure::message(Kind::Undecided, said))
}

fn name(step: &StepAnalysis) -> String {
    let at = step
        .per_minute
        .map_or_else(|| "in a closed loop".to_owned(), |rate| format!("at {rate:.0} a minute"));
    format!("{} VMs {at}", step.vms)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use virtbench_record::{OperationKind, Status};
    use virtbench_samples::operations::{numbers, plan, record};

    use super::*;

    fn of(piece: u32, rate: f64, done: u64, failed: u64) -> OperationsRecord {
        record(
            10,
            piece,
            Some(rate),
            BTreeMap::from([(OperationKind::PowerOn, numbers(done, 1_000_000, failed))]),
        )
    }

    fn incomplete(record: OperationsRecord) -> OperationsRecord {
        let Status::Measured(partly) = record.status else { panic!() };
        let status = Status::Incomplete { why: "59 of 98 operations were not issued".into(), partly };
        OperationsRecord { status, ..record }
    }

    fn code(on: &[OperationsFailOn], records: &[OperationsRecord]) -> Option<Kind> {
        verdict(on, Some(&plan()), records).err().map(|failure| failure.kind())
    }

    #[test]
    fn more_failures_than_are_allowed_are_exit_code_5_whichever_step_has_them() {
        let records = [of(0, 100.0, 99, 1), of(1, 500.0, 98, 2)];
        assert_eq!(code(&[], &records), None);
        assert_eq!(code(&[OperationsFailOn::Failures(2.0)], &records), None);
        assert_eq!(code(&[OperationsFailOn::Failures(1.0)], &records), Some(Kind::Measured));
        let said =
            verdict(&[OperationsFailOn::Failures(1.0)], Some(&plan()), &records).unwrap_err().to_string();
        assert!(said.contains("at 500 a minute: 2 of 100 operations failed (2.0 %)"), "{said}");
    }

    #[test]
    fn nothing_done_is_a_failure_whatever_is_allowed() {
        let all = [OperationsFailOn::Failures(100.0)];
        assert_eq!(code(&all, &[]), Some(Kind::Measured));
        assert_eq!(code(&all, &[of(0, 100.0, 0, 0)]), Some(Kind::Measured));
        assert_eq!(
            code(&all, &[of(0, 100.0, 100, 0), of(1, 500.0, 0, 0)]),
            Some(Kind::Measured),
            "one step did nothing"
        );
    }

    #[test]
    fn a_piece_that_is_no_result_is_exit_code_10_until_it_was_measured_again() {
        let (whole, broken) = (of(0, 100.0, 100, 0), incomplete(of(1, 100.0, 39, 0)));
        assert_eq!(code(&[], &[whole.clone(), broken.clone()]), Some(Kind::Undecided));
        assert_eq!(code(&[], &[whole.clone(), broken.clone(), of(1, 100.0, 100, 0)]), None);
        let failing = [of(0, 100.0, 50, 50), broken];
        assert_eq!(
            code(&[OperationsFailOn::Failures(1.0)], &failing),
            Some(Kind::Measured),
            "known to be bad"
        );
    }

    #[test]
    fn what_is_too_short_to_tell_is_undecided_where_that_is_asked_for() {
        // The samples have no steady state.
        let records = [of(0, 100.0, 100, 0)];
        assert_eq!(code(&[OperationsFailOn::Undecided], &records), Some(Kind::Undecided));
        assert_eq!(code(&[OperationsFailOn::Failures(1.0)], &records), None);
    }
}
