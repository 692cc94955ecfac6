//! Lines of a stream, each bounded.

use std::io::{BufRead, Read};

use super::error::TraceError;
use super::limits::MAX_TRACE_BYTES;

/// The longest line, in bytes.
const MAX_LINE_BYTES: u64 = 8192;

/// Reads lines into one buffer.
pub struct Lines<R> {
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
