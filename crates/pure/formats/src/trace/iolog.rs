//! fio's iolog, versions 2 and 3 (axboe/fio, HOWTO.rst, "Trace file format").

use std::collections::BTreeMap;
use std::io::BufRead;

use virtbench_workload::TraceAction;

use super::error::TraceError;
use super::lines::Lines;
use super::ops::{Trace, checked};

/// The most files of a trace.
const MAX_FILES: usize = 1024;

/// Version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Time passes in `wait` lines, in microseconds.
    Two,
    /// Each line begins with its time. The manual gives no unit; fio writes microseconds (iolog.c,
    /// and a test records a log with fio itself).
    Three,
}

/// Reads the lines below the version. Operations of all files go to the one target that is replayed on.
pub fn read<R: BufRead>(lines: &mut Lines<R>, trace: &mut Trace, version: Version) -> Result<(), TraceError> {
    let mut now_ns: u64 = 0;
    let mut files: BTreeMap<String, ()> = BTreeMap::new();
    while let Some((line, text)) = lines.next()? {
        let syntax = |why: &str| TraceError::Syntax { line, why: why.to_owned() };
        let mut words = text.split_ascii_whitespace();
        if version == Version::Three {
            let stamp: u64 =
                words.next().and_then(|word| word.parse().ok()).ok_or_else(|| syntax("no time stamp"))?;
            now_ns = stamp.checked_mul(1_000).ok_or_else(|| syntax("the time is out of range"))?;
        }
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err(syntax("a line has a file name and an action"));
        };
        if matches!(action, "add" | "open" | "close") {
            if files.len() == MAX_FILES {
                return Err(syntax("more files than an index can number"));
            }
            files.entry(file.to_owned()).or_default();
            continue;
        }
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
        let (offset, length) = (number(words.next()), number(words.next()));
        let range = || match (offset, length) {
            (Some(offset), Some(length)) => Ok((offset, length)),
            _ => Err(syntax("an action has an offset and a length in bytes")),
        };
        let action = match action {
            "read" => TraceAction::Read,
            "write" => TraceAction::Write,
            "trim" => TraceAction::Trim,
            "sync" | "datasync" => TraceAction::Flush,
            "wait" if version == Version::Two => {
                let wait_ns =
                    range()?.0.checked_mul(1000).ok_or_else(|| syntax("the wait is out of range"))?;
                now_ns = now_ns.checked_add(wait_ns).ok_or_else(|| syntax("the time is out of range"))?;
                continue;
            }
            _ => {
                return Err(syntax(
                    "known actions are add, open, close, read, write, trim, sync, datasync, and wait in version 2",
                ));
            }
        };
        let (offset, length) = if action == TraceAction::Flush { (0, 0) } else { range()? };
        trace.push(checked(now_ns, offset, length, action, line)?, line)?;
    }
    if files.len() > 1 {
        trace.note("the trace has several files; all of its operations go to one target");
    }
    Ok(())
}
