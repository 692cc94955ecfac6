//! A day out of its file.

use crate::check::check;
use crate::day::Day;
use crate::error::DayError;

impl Day {
    /// Reads a day.
    ///
    /// # Errors
    /// It is no TOML, or invalid; the error names the field.
    pub fn parse(text: &str) -> Result<Self, DayError> {
        let day = toml::from_str(text)?;
        check(&day)?;
        Ok(day)
    }
}
