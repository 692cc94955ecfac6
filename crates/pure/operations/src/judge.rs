//! Whether a piece is a result, by how many of its operations were issued.
//!
//! A piece is none where less than nine tenths of the operations that were due reached the platform: because nobody answered, or because
//! no VM was in a state for them. That holds for every piece at a given rate, not only after an outage: figures of what was left would be
//! those of a lighter load. In a closed loop nothing is due while the platform is away, so the time counts in place of the number. While
//! the highest rate is searched, a rate for which there are too few VMs is an answer: it is too high. There only an outage spoils a piece.

use virtbench_record::{OperationsLoad, OperationsMeasured, Status};

/// The least share of a piece's operations, or of its time, for it to be a result.
const LEAST_ISSUED: f64 = 0.9;

/// What became of a piece of `length_ns` nanoseconds at `per_minute`, or in a closed loop.
#[must_use]
pub fn judged(
    measured: OperationsMeasured,
    load: &OperationsLoad,
    per_minute: Option<f64>,
    length_ns: u64,
) -> Status<OperationsMeasured> {
    let why = match (load, per_minute) {
        (_, None) => too_long_away(&measured, length_ns).or_else(|| nothing_due(&measured, per_minute)),
        (OperationsLoad::Max { .. }, Some(_)) => too_few(&measured, measured.unreachable())
            .or_else(|| too_long_away(&measured, length_ns))
            .or_else(|| nothing_due(&measured, per_minute)),
        (_, Some(_)) => too_few(&measured, measured.not_reached()),
    };
    let measured = Box::new(measured);
    match why {
        None => Status::Measured(measured),
        Some(why) => Status::Incomplete { why, partly: measured },
    }
}

/// Why a piece is none, where so many of its operations are missing.
fn too_few(measured: &OperationsMeasured, missing: u64) -> Option<String> {
    let (intended, unreachable) = (measured.intended, measured.unreachable().min(missing));
    let missing_share = missing as f64 / intended.max(1) as f64;
    if 1.0 - missing_share >= LEAST_ISSUED {
        return None;
    }
    let causes = [
        (unreachable, "found nobody who answered"),
        (missing - unreachable, "had no VM in a state for them"),
    ];
    let causes: Vec<String> = causes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    Some(format!(
        "{missing} of {intended} operations ({:.0} %) were not issued: {}",
        100.0 * missing_share,
        causes.join(", ")
    ))
}

/// Why a piece is none, where nobody answered for more than a tenth of it.
fn too_long_away(measured: &OperationsMeasured, length_ns: u64) -> Option<String> {
    let away = measured.outage_ns as f64 / length_ns.max(1) as f64;
    if 1.0 - away < LEAST_ISSUED {
        let seconds = [measured.outage_ns, length_ns].map(|ns| ns as f64 / 1e9);
        return Some(format!("nobody answered for {:.1} s of {:.1} s", seconds[0], seconds[1]));
    }
    None
}

/// Why a piece is none in which no operation was to start.
fn nothing_due(measured: &OperationsMeasured, per_minute: Option<f64>) -> Option<String> {
    let why = match per_minute {
        None => "no VM was in a state for any operation",
        Some(_) => "no operation was due: the piece is too short for its rate",
    };
    (measured.intended == 0).then(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use virtbench_record::{FailureKind, OperationKind, OperationNumbers};

    use super::*;

    const S: u64 = 1_000_000_000;

    fn measured(intended: u64, not_issued: u64, unreachable: u64, outage_ns: u64) -> OperationsMeasured {
        let numbers = OperationNumbers {
            done: intended - not_issued - unreachable,
            failed: BTreeMap::from([(FailureKind::Unreachable, unreachable)]),
            ..OperationNumbers::default()
        };
        let operations = BTreeMap::from([(OperationKind::PowerOn, numbers)]);
        OperationsMeasured { intended, not_issued, outage_ns, operations, ..OperationsMeasured::default() }
    }

    fn why(load: &OperationsLoad, per_minute: Option<f64>, measured: OperationsMeasured) -> Option<String> {
        match judged(measured, load, per_minute, 10 * S) {
            Status::Incomplete { why, .. } => Some(why),
            _ => None,
        }
    }

    #[test]
    fn under_nine_tenths_issued_is_no_result_whatever_the_cause() {
        let load = OperationsLoad::Open(vec![60.0]);
        let why = |measured| why(&load, Some(60.0), measured);
        assert_eq!(why(measured(100, 5, 5, 0)), None, "nine tenths are enough");
        let outage = why(measured(100, 7, 4, 0)).unwrap();
        assert_eq!(
            outage,
            "11 of 100 operations (11 %) were not issued: 4 found nobody who answered, 7 had no VM in a state for them"
        );
        assert!(why(measured(120, 120, 0, 0)).unwrap().starts_with("120 of 120"), "an empty piece");
        assert_eq!(why(measured(0, 0, 0, 0)), None, "nothing was due");
    }

    #[test]
    fn in_a_closed_loop_the_time_counts() {
        let load = OperationsLoad::Closed(4);
        let why = |measured| why(&load, None, measured);
        assert_eq!(why(measured(1_000, 0, 4, S)), None);
        assert_eq!(why(measured(1_000, 0, 4, 4 * S)).unwrap(), "nobody answered for 4.0 s of 10.0 s");
        assert!(why(measured(0, 0, 0, 0)).unwrap().contains("no VM"), "an empty piece");
    }

    #[test]
    fn a_piece_of_a_search_in_which_nothing_was_due_is_no_result() {
        let why = why(&OperationsLoad::Max { limit_ns: 1 }, Some(3.0), measured(0, 0, 0, 0)).unwrap();
        assert!(why.contains("no operation was due"), "{why}");
    }

    #[test]
    fn too_few_vms_tell_a_search_that_a_rate_is_too_high_and_an_outage_tells_nothing() {
        let load = OperationsLoad::Max { limit_ns: 1 };
        assert_eq!(why(&load, Some(60.0), measured(100, 60, 5, 0)), None);
        assert!(why(&load, Some(60.0), measured(100, 0, 11, 0)).is_some());
        assert!(why(&load, Some(60.0), measured(100, 60, 5, 4 * S)).is_some());
    }
}
