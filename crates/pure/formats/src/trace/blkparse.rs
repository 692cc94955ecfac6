//! What `blkparse` prints of blktrace's events: `8,0 3 1 0.000000000 697 Q WS 223490 + 8 [program]`. Operations are replayed as they were
//! queued, before the kernel merged and sorted them.

use std::collections::BTreeSet;
use std::io::BufRead;

use virtbench_workload::TraceAction;

use super::error::TraceError;
use super::lines::Lines;
use super::ops::{Trace, checked};

/// The kernel's sector, in bytes.
const SECTOR_BYTES: u64 = 512;
/// Devices that are told apart.
const MOST_DEVICES: usize = 1000;

/// What the kernel did with an operation, as one line says it.
struct Event<'a> {
    device: &'a str,
    time_ns: u64,
    /// `Q` where an operation was queued.
    kind: &'a str,
    /// What it does: letters such as `R`, `WS`, `D`, `FN`.
    what: &'a str,
    /// Sector and number of sectors.
    range: Option<(u64, u64)>,
}

/// A line as an event; nothing where it is none, as in the summary at the end.
fn event(text: &str) -> Option<Event<'_>> {
    let mut words = text.split_ascii_whitespace();
    let device = words.next()?;
    let (major, minor) = device.split_once(',')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (processor, number) = (words.next()?, words.next()?);
    if ![major, minor, processor, number].into_iter().all(is_number) {
        return None;
    }
    let time_ns = time_ns(words.next()?)?;
    let (_process, kind, what) = (words.next()?, words.next()?, words.next()?);
    let mut range = || {
        let sector = words.next()?.parse().ok()?;
        if words.next()? != "+" {
            return None;
        }
        Some((sector, words.next()?.parse().ok()?))
    };
    Some(Event { device, time_ns, kind, what, range: range() })
}

/// `12.000345678`, seconds.
fn time_ns(text: &str) -> Option<u64> {
    let (seconds, part) = text.split_once('.')?;
    let part: u64 = (part.len() == 9).then(|| part.parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Whether the first line of a text is an event.
pub fn begins(first: &str) -> bool {
    event(first).is_some()
}

/// Reads the events from the first on.
pub fn read<R: BufRead>(
    first: (usize, &str),
    lines: &mut Lines<R>,
    trace: &mut Trace,
) -> Result<(), TraceError> {
    let mut devices: BTreeSet<String> = BTreeSet::new();
    let mut take = |line: usize, text: &str| {
        // What follows the events is a summary.
        let Some(event) = event(text).filter(|event| event.kind == "Q") else { return Ok(()) };
        let action = match event.what {
            what if what.contains('D') => TraceAction::Trim,
            what if what.contains('R') => TraceAction::Read,
            what if what.contains('W') => TraceAction::Write,
            what if what.contains('F') => TraceAction::Flush,
            _ => return Ok(()),
        };
        let bytes = |sectors: u64| {
            let why = "a range beyond any device".to_owned();
            sectors.checked_mul(SECTOR_BYTES).ok_or(TraceError::Syntax { line, why })
        };
        let (sector, count) = event.range.unwrap_or((0, 0));
        // A write of nothing is a flush.
        let (action, sector) = if count == 0 { (TraceAction::Flush, 0) } else { (action, sector) };
        if devices.len() < MOST_DEVICES {
            devices.insert(event.device.to_owned());
        }
        trace.push(checked(event.time_ns, bytes(sector)?, bytes(count)?, action, line)?, line)
    };
    take(first.0, first.1)?;
    while let Some((line, text)) = lines.next()? {
        take(line, text)?;
    }
    if devices.len() > 1 {
        trace.note("the trace has several devices; all of its operations go to one target");
    }
    if trace.ops.is_empty() {
        let why = "no event of kind Q: trace queued operations (blktrace -a queue, or without -a)".to_owned();
        return Err(TraceError::Syntax { line: first.0, why });
    }
    Ok(())
}
