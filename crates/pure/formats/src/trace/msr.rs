//! Traces of MSR Cambridge, as SNIA's repository has them: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, without a head.
//! Timestamps are Windows's: units of 100 ns since 1601.

use std::collections::BTreeSet;
use std::io::BufRead;

use virtbench_workload::TraceAction;

use super::error::TraceError;
use super::lines::Lines;
use super::ops::{Trace, checked};

/// Nanoseconds in a unit of time.
const UNIT_NS: u64 = 100;
/// Disks that are told apart.
const MOST_DISKS: usize = 1000;

/// A line: when, on which disk, and what.
struct Row<'a> {
    time: u64,
    disk: (&'a str, &'a str),
    action: TraceAction,
    offset: u64,
    size: u64,
}

/// A line as one of such a trace; nothing where it is none.
fn row(text: &str) -> Option<Row<'_>> {
    let fields: Vec<&str> = text.split(',').map(str::trim).take(8).collect();
    let [time, host, disk, kind, offset, size, _response] = fields[..] else { return None };
    let action = match kind {
        "Read" | "read" => TraceAction::Read,
        "Write" | "write" => TraceAction::Write,
        _ => return None,
    };
    let number = |text: &str| text.parse::<u64>().ok();
    Some(Row {
        time: number(time)?,
        disk: (host, disk),
        action,
        offset: number(offset)?,
        size: number(size)?,
    })
}

/// Whether the first line of a text is one of such a trace.
pub fn begins(first: &str) -> bool {
    row(first).is_some()
}

/// Reads the lines from the first on. Times count from it.
pub fn read<R: BufRead>(
    first: (usize, &str),
    lines: &mut Lines<R>,
    trace: &mut Trace,
) -> Result<(), TraceError> {
    let mut disks: BTreeSet<(String, String)> = BTreeSet::new();
    let mut begin = None;
    let mut take = |line: usize, text: &str| {
        let syntax =
            || TraceError::Syntax { line, why: "no line of a trace as MSR Cambridge has them".into() };
        let Row { time, disk: (host, disk), action, offset, size } = row(text).ok_or_else(syntax)?;
        let begin = *begin.get_or_insert(time);
        if disks.len() < MOST_DISKS {
            disks.insert((host.to_owned(), disk.to_owned()));
        }
        let time_ns = time.saturating_sub(begin).checked_mul(UNIT_NS).ok_or_else(syntax)?;
        trace.push(checked(time_ns, offset, size, action, line)?, line)
    };
    take(first.0, first.1)?;
    while let Some((line, text)) = lines.next()? {
        take(line, text)?;
    }
    if disks.len() > 1 {
        trace.note("the trace has several disks; all of its operations go to one target");
    }
    Ok(())
}
