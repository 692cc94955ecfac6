//! In which lines of a text its records stand.

use csv::StringRecord;

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
