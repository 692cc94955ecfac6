//! Checkpoints and autovacuum out of PostgreSQL's log, as `log_checkpoints` and `log_autovacuum_min_duration = 0` write it.

use std::time::UNIX_EPOCH;

use virtbench_record::{OltpCause, OltpEvent};

/// What the server says that it did, in its log's order. `offset_ns` is added to its clock, in nanoseconds since 1970, to have
/// times since measuring began. What had begun before the log does is given from its own duration.
pub(super) fn events(log: &str, offset_ns: i64) -> Vec<OltpEvent> {
    let mut events = Vec::new();
    let mut checkpoint = None;
    let mut vacuum = None;
    for line in log.lines() {
        let at = moment(line).map(|at| at.saturating_add(offset_ns));
        if let Some(at) = at {
            vacuum = line.contains("LOG:  automatic ").then_some(at);
            if line.contains("LOG:  checkpoint starting") {
                checkpoint = Some(at);
            } else if line.contains("LOG:  checkpoint complete") {
                let took = seconds(line, "total=").unwrap_or(0);
                let begin_ns = checkpoint.take().unwrap_or(at.saturating_sub(took));
                events.push(OltpEvent { cause: OltpCause::Checkpoint, begin_ns, end_ns: at });
            }
        }
        if let (Some(end_ns), Some(took)) = (vacuum, seconds(line, "elapsed: ")) {
            let begin_ns = end_ns.saturating_sub(took);
            events.push(OltpEvent { cause: OltpCause::Autovacuum, begin_ns, end_ns });
            vacuum = None;
        }
    }
    // One that is not over lasts to the end.
    events.extend(checkpoint.map(|begin_ns| OltpEvent {
        cause: OltpCause::Checkpoint,
        begin_ns,
        end_ns: i64::MAX,
    }));
    events
}

/// The moment with which a line begins (`%m`), in nanoseconds since 1970; nothing where it is of another zone than UTC.
fn moment(line: &str) -> Option<i64> {
    let mut words = line.splitn(4, ' ');
    let (day, time, zone) = (words.next()?, words.next()?, words.next()?);
    if !matches!(zone, "UTC" | "GMT") {
        return None;
    }
    let at = humantime::parse_rfc3339_weak(&format!("{day} {time}")).ok()?;
    i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The seconds after a word, in nanoseconds.
#[allow(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn seconds(line: &str, word: &str) -> Option<i64> {
    let rest = line.split_once(word)?.1;
    let number: &str = rest.split(' ').next()?;
    let seconds: f64 = number.parse().ok().filter(|seconds: &f64| *seconds >= 0.0)?;
    Some((seconds * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of PostgreSQL 15.
    const LOG: &str = "\
2026-11-23 09:00:00.000 UTC [12] LOG:  database system is ready to accept connections
2026-11-23 09:00:10.500 UTC [14] LOG:  checkpoint starting: wal
2026-11-23 09:00:12.000 UTC [31] LOG:  automatic vacuum of table \"postgres.public.district\": index scans: 1
\tpages: 0 removed, 20 remain, 20 scanned (100.00% of total)
\tsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.25 s
2026-11-23 09:00:13.000 UTC [31] LOG:  automatic analyze of table \"postgres.public.stock\"
\tsystem usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 1.50 s
2026-11-23 09:00:20.250 UTC [14] LOG:  checkpoint complete: wrote 900 buffers (7.3%); 0 WAL file(s) added; write=9.6 s, sync=0.1 s, total=9.750 s; sync files=41
2026-11-23 09:05:00.000 UTC [14] LOG:  checkpoint starting: time
";

    #[test]
    fn checkpoints_and_autovacuum_are_found_with_their_times() {
        let begun = moment("2026-11-23 09:00:10.000 UTC [1]").unwrap();
        let found = events(LOG, -begun);
        #[allow(clippy::cast_possible_truncation, reason = "a few seconds")]
        let ns = |seconds: f64| (seconds * 1e9) as i64;
        let event = |cause, begin: f64, end: f64| (cause, ns(begin), ns(end));
        let expected = [
            event(OltpCause::Autovacuum, 1.75, 2.0),
            event(OltpCause::Autovacuum, 1.5, 3.0),
            event(OltpCause::Checkpoint, 0.5, 10.25),
        ];
        let seen: Vec<_> = found.iter().map(|one| (one.cause, one.begin_ns, one.end_ns)).collect();
        assert_eq!(seen[..3], expected);
        assert_eq!(seen[3], (OltpCause::Checkpoint, 290_000_000_000, i64::MAX));
    }

    #[test]
    fn a_checkpoint_whose_begin_is_not_in_the_log_lasts_as_long_as_it_says() {
        let complete = LOG.lines().find(|line| line.contains("complete")).unwrap();
        let found = events(complete, -moment("2026-11-23 09:00:10.000 UTC [1]").unwrap());
        assert_eq!((found[0].begin_ns, found[0].end_ns), (500_000_000, 10_250_000_000));
        assert_eq!(events("2026-11-23 09:00:00.000 CET [1] LOG:  checkpoint starting: wal\nnoise", 0), []);
    }
}
