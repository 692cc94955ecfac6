//! Block traces: virtbench's CSV, fio's iolog, what blkparse prints, and those of MSR Cambridge, read line by line.

mod blkparse;
mod csv;
mod error;
mod iolog;
mod limits;
mod lines;
mod msr;
mod ops;

use std::io::BufRead;

use virtbench_workload::{TraceAction, TraceOp};

pub use error::TraceError;
pub use limits::{MAX_OPS, MAX_TRACE_BYTES};
use lines::Lines;
pub use ops::Trace;

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
        "fio version 2 iolog" => iolog::read(&mut lines, &mut trace, iolog::Version::Two)?,
        "fio version 3 iolog" => iolog::read(&mut lines, &mut trace, iolog::Version::Three)?,
        row if msr::begins(row) => msr::read((line, row), &mut lines, &mut trace)?,
        event if blkparse::begins(event) => blkparse::read((line, event), &mut lines, &mut trace)?,
        head => {
            let head = csv::Head::read(head).ok_or(TraceError::UnknownFormat)?;
            csv::read(&mut lines, &mut trace, &head)?;
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

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
