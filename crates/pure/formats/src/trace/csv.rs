//! virtbench's own trace format (docs/formats.md).

use std::io::BufRead;

use virtbench_workload::TraceAction;

use super::error::TraceError;
use super::lines::Lines;
use super::ops::{Trace, checked};

/// Which column is where.
#[derive(Debug)]
pub struct Head {
    time: usize,
    offset: usize,
    size: usize,
    operation: usize,
    /// Nanoseconds in a unit of the time column.
    unit_ns: u64,
}

impl Head {
    /// Reads the first line; nothing if a column is missing.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').to_ascii_lowercase();
        let names: Vec<&str> = text.split(',').map(str::trim).take(32).collect();
        let find = |name: &str| names.iter().position(|known| *known == name);
        let units = [("time_ns", 1), ("time_us", 1_000), ("time_ms", 1_000_000), ("time_s", 1_000_000_000)];
        let (time, unit_ns) = units.into_iter().find_map(|(name, unit)| Some((find(name)?, unit)))?;
        Some(Self {
            time,
            offset: find("offset")?,
            size: find("size")?,
            operation: find("operation")?,
            unit_ns,
        })
    }
}

/// Reads the lines below the head.
pub fn read<R: BufRead>(lines: &mut Lines<R>, trace: &mut Trace, head: &Head) -> Result<(), TraceError> {
    while let Some((at, text)) = lines.next()? {
        let mut fields = [""; 4];
        for (index, field) in text.split(',').enumerate().take(32) {
            let columns = [head.time, head.offset, head.size, head.operation];
            if let Some(slot) = columns.iter().position(|column| *column == index) {
                fields[slot] = field.trim();
            }
        }
        let damaged = |what: &str, text: &str| TraceError::Syntax {
            line: at,
            why: format!("{what}: {:?} cannot be read", text.chars().take(40).collect::<String>()),
        };
        let [time, offset, size, operation] = fields;
        let action = match operation.to_ascii_lowercase().as_str() {
            "read" | "r" => TraceAction::Read,
            "write" | "w" => TraceAction::Write,
            "trim" | "discard" | "t" | "d" => TraceAction::Trim,
            "flush" | "sync" | "f" => TraceAction::Flush,
            _ => return Err(damaged("operation", operation)),
        };
        let time_ns = time_ns(time, head.unit_ns).ok_or_else(|| damaged("time", time))?;
        let flush = action == TraceAction::Flush;
        let whole = |what: &str, text: &str| match text {
            "" if flush => Ok(0),
            text => text.parse::<u64>().map_err(|_| damaged(what, text)),
        };
        let op = checked(time_ns, whole("offset", offset)?, whole("size", size)?, action, at)?;
        trace.push(op, at)?;
    }
    Ok(())
}

/// A time with an optional fraction, without rounding through a float.
fn time_ns(text: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut part_ns = 0;
    let mut unit = unit_ns;
    for digit in fraction.bytes().take(9) {
        unit /= 10;
        part_ns += u64::from(digit - b'0') * unit;
    }
    whole.checked_mul(unit_ns)?.checked_add(part_ns)
}
