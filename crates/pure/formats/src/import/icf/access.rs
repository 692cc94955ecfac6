//! The section ACCESS SPECIFICATIONS.

use virtbench_workload::{AccessLine, AccessSpec};

use super::super::{Findings, ImportError, Location, MAX_JOBS};
use super::lines::{Columns, Lines, number, shorten, starts};

/// The most lines of a specification, Iometer's own limit.
const MAX_ROWS: usize = 100;
const COLUMNS: [&str; 8] = ["size", "% of size", "% reads", "% random", "delay", "burst", "align", "reply"];

/// A named access specification.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// The mix; empty for the idle specification. An alignment of 0 is the sector of the device.
    pub access: AccessSpec,
}

/// Reads the section up to its end.
pub fn read(
    lines: &mut Lines<'_>,
    specs: &mut Vec<Spec>,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let mut columns: Option<Columns<'_>> = None;
    loop {
        let Some((line, content)) = lines.next() else {
            let why = "the file ends inside the access specifications".into();
            return Err(ImportError::Syntax { at: Location::line(1), why });
        };
        if starts(content, "'end access specifications") {
            return Ok(());
        }
        if starts(content, "'access specification name") {
            let (_, value) = lines.next_value().unwrap_or((line, ""));
            let name = value.split(',').next().unwrap_or("").trim();
            if name.is_empty() {
                let why = "the access specification has no name on the next line".into();
                return Err(ImportError::Syntax { at: Location::line(line), why });
            }
            if specs.len() == MAX_JOBS {
                let (at, what) = (Location::line(line), "access specifications");
                return Err(ImportError::TooMany { at, what, most: MAX_JOBS });
            }
            // As in Iometer, a second one of the same name takes the place of the first.
            specs.retain(|spec| spec.name != name);
            specs.push(Spec { name: name.to_owned(), access: AccessSpec { lines: Vec::new() } });
            columns = None;
        } else if starts(content, "'size") {
            let named = Columns::new(content);
            for name in named.names().iter().filter(|name| !name.is_empty()) {
                if !COLUMNS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                    findings.ignore(Location::line(line), format!("column {:?} is not known", shorten(name)));
                }
            }
            columns = Some(named);
        } else if content.starts_with('\'') {
            findings.ignore(Location::line(line), format!("{:?} is not known here", shorten(content)));
        } else {
            let (Some(spec), Some(columns)) = (specs.last_mut(), &columns) else {
                let why = "a row of an access specification before the line that names its columns".into();
                return Err(ImportError::Syntax { at: Location::line(line), why });
            };
            if spec.access.lines.len() == MAX_ROWS {
                let at = Location::line(line);
                return Err(ImportError::TooMany { at, what: "rows in a specification", most: MAX_ROWS });
            }
            spec.access.lines.extend(row(columns, content, line, findings)?);
        }
    }
}

/// One row; nothing where its share is zero.
fn row(
    columns: &Columns<'_>,
    content: &str,
    line: usize,
    findings: &mut Findings,
) -> Result<Option<AccessLine>, ImportError> {
    let needed = |name: &str| {
        columns.get(content, name).ok_or_else(|| ImportError::Syntax {
            at: Location::line(line),
            why: format!("the row has no value for {name:?}"),
        })
    };
    let size_bytes: u64 = number(needed("size")?, "size", line)?;
    let share_percent: f64 = number(needed("% of size")?, "% of size", line)?;
    let read_percent: f64 = number(needed("% reads")?, "% reads", line)?;
    let random_percent: f64 = number(needed("% random")?, "% random", line)?;
    let delay_ms: u64 = columns.number(content, "delay", line)?.unwrap_or(0);
    let burst: u32 = columns.number(content, "burst", line)?.unwrap_or(1);
    let align: u64 = columns.number(content, "align", line)?.unwrap_or(size_bytes);
    let reply: u64 = columns.number(content, "reply", line)?.unwrap_or(0);
    if reply != 0 {
        findings.ignore(Location::line(line), format!("a reply of {reply} bytes: replies are for networks"));
    }
    let delay_ns = delay_ms.checked_mul(1_000_000).ok_or_else(|| ImportError::Syntax {
        at: Location::line(line),
        why: format!("a delay of {delay_ms} ms is out of range"),
    })?;
    Ok((share_percent != 0.0).then(|| AccessLine {
        share_percent,
        delay_ns,
        burst: burst.max(1),
        align_bytes: align,
        ..AccessLine::new(size_bytes, read_percent, random_percent)
    }))
}
