//! The attributes of a definition, of which each must be taken by somebody.

use std::collections::BTreeMap;

use super::error::FilebenchError;
use super::values::Value;

/// Attributes by their names.
#[derive(Debug)]
pub(super) struct Attributes {
    /// What they belong to, for messages.
    of: String,
    line: usize,
    values: BTreeMap<String, (usize, Option<Value>)>,
}

impl Attributes {
    pub(super) fn new(of: String, line: usize) -> Self {
        Self { of, line, values: BTreeMap::new() }
    }

    /// Adds one; an attribute without a value says only that it is so.
    pub(super) fn add(
        &mut self,
        line: usize,
        name: &str,
        value: Option<Value>,
    ) -> Result<(), FilebenchError> {
        match self.values.insert(name.to_owned(), (line, value)) {
            None => Ok(()),
            Some(_) => Err(FilebenchError::syntax(line, format!("{} has {name} twice", self.of))),
        }
    }

    /// Takes one out and reads it.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, FilebenchError> {
        let Some((line, value)) = self.values.remove(name) else { return Ok(None) };
        let wrong = |why: String| FilebenchError::syntax(line, format!("{name} of {}: {why}", self.of));
        match value {
            Some(value) => read(&value).map(Some).map_err(wrong),
            None => Err(wrong("it needs a value".into())),
        }
    }

    /// The same of one that must be there.
    pub(super) fn need<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, FilebenchError> {
        self.take(name, read)?
            .ok_or_else(|| FilebenchError::syntax(self.line, format!("{} needs {name}", self.of)))
    }

    /// Takes out one that is true when it stands there alone.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, FilebenchError> {
        match self.values.get(name) {
            None => Ok(false),
            Some((_, None)) => {
                self.values.remove(name);
                Ok(true)
            }
            Some(_) => Ok(self.take(name, Value::truth)?.unwrap_or(false)),
        }
    }

    /// Takes out one that stands alone, or has a number.
    pub(super) fn number_or(&mut self, name: &str, alone: u64) -> Result<Option<u64>, FilebenchError> {
        if let Some((_, None)) = self.values.get(name) {
            self.values.remove(name);
            return Ok(Some(alone));
        }
        self.take(name, Value::number)
    }

    /// Takes out what changes nothing, and says so.
    pub(super) fn leave_out(&mut self, names: &[&str], notes: &mut Vec<String>) {
        for name in names {
            if self.values.remove(*name).is_some() {
                let note = format!("left out, because it does not change the load: {name}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }

    /// Whether all were taken.
    pub(super) fn end(self) -> Result<(), FilebenchError> {
        match self.values.into_iter().min_by_key(|(_, (line, _))| *line) {
            None => Ok(()),
            Some((name, (line, _))) => {
                let name = super::tokens::shorten(&name);
                Err(FilebenchError::syntax(
                    line,
                    format!("attribute {name:?} of {} is not supported", self.of),
                ))
            }
        }
    }

    /// Where the definition stands.
    pub(super) fn line(&self) -> usize {
        self.line
    }
}
