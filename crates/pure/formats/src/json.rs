//! Figures as JSON, as far as they are known: seven significant digits. Everything that is printed or exported for other
//! programs is written here; records of a run folder stay exact.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use virtbench_units::rounded;

/// Writes a value in one line, without its end.
///
/// # Errors
/// `out` fails, or a key is not a string.
pub fn write(out: &mut impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Rounded(CompactFormatter)))
}

/// Writes a value in indented lines, without the last one's end.
///
/// # Errors
/// `out` fails, or a key is not a string.
pub fn write_pretty(out: &mut impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Rounded(PrettyFormatter::new())))
}

/// The value in one line.
///
/// # Errors
/// A key is not a string.
pub fn text(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    write(&mut text, value)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The value in indented lines.
///
/// # Errors
/// A key is not a string.
pub fn pretty_text(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    write_pretty(&mut text, value)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A formatter that rounds.
struct Rounded<F>(F);

impl<F: Formatter> Formatter for Rounded<F> {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        self.0.write_f64(out, rounded(value))
    }
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_have_seven_digits_at_most_and_counts_all_of_theirs() {
        let value = json!({ "a": [1.0 / 3.0, 123_456_789.0, 0.1 + 0.2], "b": 18_446_744_073_709_551_615_u64, "c": null });
        assert_eq!(
            text(&value).unwrap(),
            r#"{"a":[0.3333333,123456789.0,0.3],"b":18446744073709551615,"c":null}"#
        );
        let pretty = pretty_text(&value).unwrap();
        assert!(pretty.starts_with("{\n  \"a\": [\n    0.3333333,\n"), "{pretty}");
    }
}
