//! The lines of a table, and the columns that all tables of repetitions have.

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use crate::line_numbers::LineNumbers;
use crate::table::{CONFIGURATION, MAX_TEXT, TableError, bad, damaged};

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
