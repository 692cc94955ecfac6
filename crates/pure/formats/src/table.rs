//! Tables of results (docs/formats.md): what a paper published, what a user collected, or the
//! `results.csv` of a run.

use std::collections::{BTreeMap, BTreeSet};

use csv::{Reader, ReaderBuilder, StringRecord, Trim};
use thiserror::Error;
use virtbench_record::{PointKey, PointMetrics, ResultRow, ResultTable, TableFacts};
use virtbench_units::parse_bytes;

/// The largest table, in bytes.
pub const MAX_TABLE_BYTES: usize = 16 << 20;

/// The most rows.
pub const MAX_ROWS: usize = 100_000;

/// The most configurations: all are compared with each other.
pub const MAX_CONFIGURATIONS: usize = 32;

/// The most points.
pub const MAX_POINTS: usize = 256;

/// The most facts above the header; those beyond are only comments.
const MAX_FACTS: usize = 64;

/// The most characters of a name or a fact that are kept.
pub(crate) const MAX_TEXT: usize = 400;

/// A table that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum TableError {
    /// It is too large.
    #[error("more than {most} {what}: split the table")]
    TooMany {
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// A column is missing.
    #[error("no column {0}: the first line that is no comment names the columns (docs/formats.md)")]
    NoColumn(&'static str),
    /// A column that such a table has not, which may be a mistyped one.
    #[error("column {name}: not known; the columns are {known} (docs/formats.md)")]
    UnknownColumn {
        /// Its name.
        name: String,
        /// Those that are known.
        known: String,
    },
    /// A run has rows of its infrastructure load alone.
    #[error("{configuration}: no row is of a tile; the infrastructure load alone makes no score")]
    NoTile {
        /// Of which configuration.
        configuration: String,
    },
    /// There are no rows.
    #[error("no rows below the header")]
    Empty,
    /// A line cannot be understood.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// Columns by their first name; the others are what else they may be called.
pub(crate) const CONFIGURATION: [&str; 2] = ["configuration", "environment"];

const BLOCK: [&str; 2] = ["block", "block_bytes"];

const IOPS: [&str; 1] = ["iops"];

const BYTES_PER_SECOND: [&str; 1] = ["bytes_per_second"];

const CPU: [&str; 2] = ["cpu_percent", "host_cpu_percent"];

const LATENCY_NS: [&str; 1] = ["latency_mean_ns"];

const RESPONSE_MS: [&str; 1] = ["response_ms"];

/// Reads a table.
///
/// # Errors
/// It is too large, a column is missing, or a line cannot be understood.
pub fn read_table(bytes: &[u8]) -> Result<ResultTable, TableError> {
    if bytes.len() > MAX_TABLE_BYTES {
        return Err(TableError::TooMany { what: "bytes", most: MAX_TABLE_BYTES });
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    let facts = facts(text);
    let outstanding = facts
        .get("outstanding")
        .and_then(|value| value.parse::<u32>().ok())
        .filter(|outstanding| *outstanding > 0);
    let mut reader =
        ReaderBuilder::new().comment(Some(b'#')).trim(Trim::All).flexible(true).from_reader(text.as_bytes());
    let columns = Columns::find(reader.headers().map_err(|error| damaged(&error))?)?;
    let mut table = ResultTable { facts, ..ResultTable::default() };
    let mut seen = RowsRead::default();
    let (mut record, mut numbers) = (StringRecord::new(), LineNumbers::new(text));
    while reader.read_record(&mut record).map_err(|error| damaged(&error))? {
        let line = numbers.of(&record);
        let mut row = columns.row(&record).map_err(|why| TableError::Line { line, why })?;
        if let (None, Some(outstanding), true) = (row.figures.latency_ns, outstanding, row.figures.iops > 0.0)
        {
            row.figures.latency_ns = Some(f64::from(outstanding) / row.figures.iops * 1e9);
            table.latency_derived = true;
        }
        seen.add(&row, line)?;
        table.rows.push(row);
    }
    if table.rows.is_empty() { Err(TableError::Empty) } else { Ok(table) }
}

/// Lines `# name: value` above the header.
pub(crate) fn facts(text: &str) -> TableFacts {
    let short = |text: &str| text.trim().chars().take(MAX_TEXT).collect::<String>();
    let named = text
        .lines()
        .map_while(|line| if line.trim().is_empty() { Some("") } else { line.strip_prefix('#') })
        .filter_map(|comment| comment.split_once(':'))
        .map(|(name, value)| (short(name), short(value)))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .take(MAX_FACTS);
    TableFacts(named.collect())
}

pub(crate) fn damaged(error: &csv::Error) -> TableError {
    let line = error.position().map_or(0, csv::Position::line);
    TableError::Line { line, why: error.to_string() }
}

/// What has been read so far, held against the limits.
#[derive(Default)]
struct RowsRead {
    configurations: BTreeSet<String>,
    points: BTreeSet<PointKey>,
    rows: BTreeMap<(String, PointKey, u32), u64>,
}

impl RowsRead {
    fn add(&mut self, row: &ResultRow, line: u64) -> Result<(), TableError> {
        self.configurations.insert(row.configuration.clone());
        self.points.insert(row.point);
        let key = (row.configuration.clone(), row.point, row.repetition);
        if let Some(earlier) = self.rows.insert(key, line) {
            let why = format!(
                "{} at {} was given in line {earlier}: number repetitions in a column repetition",
                row.configuration, row.point
            );
            return Err(TableError::Line { line, why });
        }
        for (what, number, most) in [
            ("configurations", self.configurations.len(), MAX_CONFIGURATIONS),
            ("points", self.points.len(), MAX_POINTS),
            ("rows", self.rows.len(), MAX_ROWS),
        ] {
            if number > most {
                return Err(TableError::TooMany { what, most });
            }
        }
        Ok(())
    }
}

/// Which column is where.
#[derive(Debug)]
struct Columns {
    configuration: usize,
    block: usize,
    read: usize,
    random: usize,
    repetition: Option<usize>,
    iops: Option<usize>,
    bytes_per_second: Option<usize>,
    latency_ns: Option<usize>,
    response_ms: Option<usize>,
    cpu: Option<usize>,
}

impl Columns {
    fn find(header: &StringRecord) -> Result<Self, TableError> {
        let find = |names: &[&str]| {
            header.iter().position(|column| names.contains(&column.to_ascii_lowercase().as_str()))
        };
        let need = |names: &[&'static str]| find(names).ok_or(TableError::NoColumn(names[0]));
        let columns = Self {
            configuration: need(&CONFIGURATION)?,
            block: need(&BLOCK)?,
            read: need(&["read_percent"])?,
            random: need(&["random_percent"])?,
            repetition: find(&["repetition"]),
            iops: find(&IOPS),
            bytes_per_second: find(&BYTES_PER_SECOND),
            latency_ns: find(&LATENCY_NS),
            response_ms: find(&RESPONSE_MS),
            cpu: find(&CPU),
        };
        match (columns.iops, columns.bytes_per_second) {
            (None, None) => Err(TableError::NoColumn("iops")),
            _ => Ok(columns),
        }
    }

    fn row(&self, record: &StringRecord) -> Result<ResultRow, String> {
        let cell = |index: usize| record.get(index).unwrap_or_default();
        let name = cell(self.configuration);
        if name.is_empty() || name.chars().count() > MAX_TEXT {
            return Err(format!(
                "{:?} is no name of a configuration",
                name.chars().take(40).collect::<String>()
            ));
        }
        let point = PointKey {
            block_bytes: parse_bytes(cell(self.block))
                .ok()
                .filter(|bytes| *bytes > 0)
                .ok_or_else(|| bad(BLOCK[0], cell(self.block)))?,
            read_percent: percent("read_percent", cell(self.read))?,
            random_percent: percent("random_percent", cell(self.random))?,
        };
        let number = |index: Option<usize>, name: &str| match index.map_or("", cell) {
            "" => Ok(None),
            text => positive(text).map(Some).ok_or_else(|| bad(name, text)),
        };
        let block = point.block_bytes as f64;
        let rates = (number(self.iops, IOPS[0])?, number(self.bytes_per_second, BYTES_PER_SECOND[0])?);
        let (iops, bytes_per_second) = match rates {
            (Some(iops), Some(bytes)) => (iops, bytes),
            (Some(iops), None) => (iops, iops * block),
            (None, Some(bytes)) => (bytes / block, bytes),
            (None, None) => return Err("neither iops nor bytes_per_second is given".into()),
        };
        let response_ns = number(self.response_ms, RESPONSE_MS[0])?.map(|ms| ms * 1e6);
        let repetition = match self.repetition.map_or("", cell) {
            "" => 0,
            text => text.parse().map_err(|_| bad("repetition", text))?,
        };
        let figures = PointMetrics {
            iops,
            bytes_per_second,
            latency_ns: number(self.latency_ns, LATENCY_NS[0])?.or(response_ns),
            cpu_percent: number(self.cpu, CPU[0])?,
        };
        Ok(ResultRow { configuration: name.to_owned(), point, repetition, figures })
    }
}

pub(crate) fn bad(column: &str, text: &str) -> String {
    format!("{column}: {:?} cannot be read", text.chars().take(40).collect::<String>())
}

fn percent(column: &str, text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|value| *value <= 100).ok_or_else(|| bad(column, text))
}

/// Large enough for any disk, small enough that no product of such numbers is infinite.
const LARGEST: f64 = 1e18;

pub(crate) fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value| (0.0..=LARGEST).contains(value))
}

/// Which column has one of these names, in capitals or not.
pub(crate) fn position(header: &StringRecord, names: &[&str]) -> Option<usize> {
    header.iter().position(|column| names.contains(&column.to_ascii_lowercase().as_str()))
}

/// Refuses a column that is none of these.
pub(crate) fn refuse_unknown(header: &StringRecord, known: &[&str]) -> Result<(), TableError> {
    match header.iter().find(|column| !known.contains(&column.to_ascii_lowercase().as_str())) {
        Some(name) => Err(TableError::UnknownColumn { name: name.into(), known: known.join(", ") }),
        None => Ok(()),
    }
}

/// The lines of a table after its header.
pub(crate) struct Lines<'a> {
    pub(crate) header: StringRecord,
    reader: Reader<&'a [u8]>,
    numbers: LineNumbers<'a>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, TableError> {
        let mut builder = ReaderBuilder::new();
        builder.comment(Some(b'#')).trim(Trim::All).flexible(true);
        let mut reader = builder.from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| damaged(&error))?.clone();
        Ok(Self { header, reader, numbers: LineNumbers::new(text) })
    }

    /// Reads the next line into `record`; its number, or nothing at the end.
    pub(crate) fn next(&mut self, record: &mut StringRecord) -> Result<Option<u64>, TableError> {
        let is_there = self.reader.read_record(record).map_err(|error| damaged(&error))?;
        Ok(is_there.then(|| self.numbers.of(record)))
    }
}

/// The columns that every table of repetitions has.
pub(crate) struct Who {
    configuration: usize,
    repetition: Option<usize>,
}

impl Who {
    pub(crate) fn find(header: &StringRecord) -> Result<Self, TableError> {
        let configuration = position(header, &CONFIGURATION).ok_or(TableError::NoColumn(CONFIGURATION[0]))?;
        Ok(Self { configuration, repetition: position(header, &["repetition"]) })
    }

    /// Configuration and repetition of a line; a table without repetitions has number 0.
    pub(crate) fn of(&self, record: &StringRecord) -> Result<(String, u32), String> {
        let cell = |index: usize| record.get(index).unwrap_or_default();
        let name = cell(self.configuration);
        if name.is_empty() || name.chars().count() > MAX_TEXT {
            return Err(bad(CONFIGURATION[0], name));
        }
        let repetition = match self.repetition.map_or("", cell) {
            "" => 0,
            text => text.parse().map_err(|_| bad("repetition", text))?,
        };
        Ok((name.to_owned(), repetition))
    }
}

/// Numbers of lines.
pub(crate) struct LineNumbers<'a> {
    text: &'a [u8],
    /// How far lines have been counted: bytes, and the number of the line there.
    counted: (usize, u64),
}

impl<'a> LineNumbers<'a> {
    /// Of this text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), counted: (0, 1) }
    }

    /// The number of the line where a record begins. The reader's own stands still between the two bytes
    /// that end a line of DOS.
    pub(crate) fn of(&mut self, record: &StringRecord) -> u64 {
        let byte = record.position().map_or(0, csv::Position::byte);
        let (counted, line) = self.counted;
        let rest = self.text.get(usize::try_from(byte).unwrap_or(usize::MAX)..).unwrap_or_default();
        let ends = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let at = (self.text.len() - rest.len() + ends).max(counted);
        let passed = self.text[counted..at].iter().filter(|byte| **byte == b'\n').count();
        self.counted = (at, line + passed as u64);
        self.counted.1
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
