//! Block traces: virtbench's CSV, fio's iolog, what blkparse prints, and those of MSR Cambridge, read line by line.
//!
//! What `blkparse` prints of blktrace's events: `8,0 3 1 0.000000000 697 Q WS 223490 + 8 [program]`. Operations are replayed as they were
//! queued, before the kernel merged and sorted them.
//!
//! Traces of MSR Cambridge, as SNIA's repository has them: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, without a head.
//! Timestamps are Windows's: units of 100 ns since 1601.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read};

use thiserror::Error;
use virtbench_workload::{MAX_BLOCK_BYTES, TraceAction, TraceOp};

/// Reads a trace whose format the first line shows. At most one line is held beside the operations.
///
/// # Errors
/// Reading failed, the trace is empty, too large, damaged or of no known format.
pub fn read_trace(reader: impl BufRead) -> Result<Trace, TraceError> {
    let mut lines = Lines::new(reader);
    let mut trace = Trace::default();
    let Some((line, first)) = lines.next()? else { return Err(TraceError::Empty) };
    let first = first.to_owned();
    match first.as_str() {
        "fio version 2 iolog" => read_iolog(&mut lines, &mut trace, Version::Two)?,
        "fio version 3 iolog" => read_iolog(&mut lines, &mut trace, Version::Three)?,
        row if msr_begins(row) => read_msr((line, row), &mut lines, &mut trace)?,
        event if begins(event) => read_blkparse((line, event), &mut lines, &mut trace)?,
        head => {
            let head = Head::read(head).ok_or(TraceError::UnknownFormat)?;
            read_csv(&mut lines, &mut trace, &head)?;
        }
    }
    if trace.ops.is_empty() {
        return Err(TraceError::Empty);
    }
    let early = trace.ops.windows(2).find(|pair| pair[1].time_ns < pair[0].time_ns).map(|pair| pair[1].line);
    if let Some(line) = early {
        let note =
            format!("line {line} is earlier than the operation before it: the trace was sorted by time");
        trace.ops.sort_by_key(|op| op.time_ns);
        trace.notes.push(note);
    }
    Ok(trace)
}

/// Writes the CSV that [`read_trace`] reads.
#[must_use]
pub fn write_csv(ops: &[TraceOp]) -> String {
    let mut text = String::from("time_ns,offset,size,operation\n");
    for op in ops {
        let name = match op.action {
            TraceAction::Read => "read",
            TraceAction::Write => "write",
            TraceAction::Trim => "trim",
            TraceAction::Flush => "flush",
        };
        text.push_str(&format!("{},{},{},{name}\n", op.time_ns, op.offset, op.len));
    }
    text
}

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
    let time_ns = blkparse_time_ns(words.next()?)?;
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
fn blkparse_time_ns(text: &str) -> Option<u64> {
    let (seconds, part) = text.split_once('.')?;
    let part: u64 = (part.len() == 9).then(|| part.parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Whether the first line of a text is an event.
fn begins(first: &str) -> bool {
    event(first).is_some()
}

/// Reads the events from the first on.
fn read_blkparse<R: BufRead>(
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

/// Which column is where.
#[derive(Debug)]
struct Head {
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
fn read_csv<R: BufRead>(lines: &mut Lines<R>, trace: &mut Trace, head: &Head) -> Result<(), TraceError> {
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

/// A trace that cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Reading failed.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Syntax {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It is larger than can be replayed.
    #[error("line {line}: the trace has more than {MAX_OPS} operations or 1 GiB: cut it")]
    TooLarge {
        /// Where the limit was passed.
        line: usize,
    },
    /// Its first line is of no known format.
    #[error(
        "the first line is neither \"fio version 2 iolog\", \"fio version 3 iolog\", an event of blkparse, a line as MSR Cambridge's \
             traces have them nor a CSV head such as time_us,offset,size,operation (see docs/formats.md)"
    )]
    UnknownFormat,
    /// Nothing is in it.
    #[error("the trace has no operation")]
    Empty,
}

/// The most files of a trace.
const MAX_FILES: usize = 1024;

/// Version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Time passes in `wait` lines, in microseconds.
    Two,
    /// Each line begins with its time. The manual gives no unit; fio writes microseconds (iolog.c,
    /// and a test records a log with fio itself).
    Three,
}

/// Reads the lines below the version. Operations of all files go to the one target that is replayed on.
fn read_iolog<R: BufRead>(
    lines: &mut Lines<R>,
    trace: &mut Trace,
    version: Version,
) -> Result<(), TraceError> {
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

/// The most operations of a trace.
pub const MAX_OPS: usize = 10_000_000;

/// The largest trace file, in bytes.
pub const MAX_TRACE_BYTES: u64 = 1 << 30;

/// The longest line, in bytes.
const MAX_LINE_BYTES: u64 = 8192;

/// Reads lines into one buffer.
struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    text: String,
    line: usize,
    read_bytes: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), text: String::new(), line: 0, read_bytes: 0 }
    }

    /// The next line that is neither empty nor a comment (`#`), trimmed, with its number from 1;
    /// nothing at the end.
    pub fn next(&mut self) -> Result<Option<(usize, &str)>, TraceError> {
        loop {
            self.buffer.clear();
            let read = (&mut self.reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut self.buffer)? as u64;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.read_bytes += read;
            if self.read_bytes > MAX_TRACE_BYTES {
                return Err(TraceError::TooLarge { line: self.line });
            }
            if read == MAX_LINE_BYTES && self.buffer.last() != Some(&b'\n') {
                let why = format!("the line is longer than {MAX_LINE_BYTES} bytes");
                return Err(TraceError::Syntax { line: self.line, why });
            }
            let whole = String::from_utf8_lossy(&self.buffer);
            let trimmed = whole.trim();
            if !trimmed.is_empty() && !trimmed.starts_with('#') {
                self.text.clear();
                self.text.push_str(trimmed);
                return Ok(Some((self.line, &self.text)));
            }
        }
    }
}

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
fn msr_begins(first: &str) -> bool {
    row(first).is_some()
}

/// Reads the lines from the first on. Times count from it.
fn read_msr<R: BufRead>(
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

/// A recorded sequence of operations, ordered by time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// The operations.
    pub ops: Vec<TraceOp>,
    /// What a reader should know, such as that several files became one target.
    pub notes: Vec<String>,
}

impl Trace {
    fn push(&mut self, op: TraceOp, line: usize) -> Result<(), TraceError> {
        if self.ops.len() == MAX_OPS {
            return Err(TraceError::TooLarge { line });
        }
        self.ops.push(op);
        Ok(())
    }

    fn note(&mut self, text: &str) {
        if self.notes.len() < 20 && !self.notes.iter().any(|note| note == text) {
            self.notes.push(text.to_owned());
        }
    }
}

/// An operation whose range makes sense.
fn checked(
    time_ns: u64,
    offset: u64,
    size: u64,
    action: TraceAction,
    line: usize,
) -> Result<TraceOp, TraceError> {
    let most = if action == TraceAction::Trim { u64::from(u32::MAX) } else { MAX_BLOCK_BYTES };
    let len = u32::try_from(size).ok().filter(|_| size <= most && (size > 0 || action == TraceAction::Flush));
    let len = len.ok_or_else(|| TraceError::Syntax {
        line,
        why: format!("a size of {size} bytes is outside 1 to {most}"),
    })?;
    if offset.checked_add(size).is_none_or(|end| end > i64::MAX.unsigned_abs()) {
        return Err(TraceError::Syntax { line, why: format!("offset {offset} lies beyond any device") });
    }
    // A file of 1 GiB has fewer lines than that.
    let line = u32::try_from(line).unwrap_or(u32::MAX);
    Ok(TraceOp { time_ns, offset, len, action, line })
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
