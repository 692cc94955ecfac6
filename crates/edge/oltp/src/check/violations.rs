//! What breaks a condition, gathered.

use virtbench_record::OltpViolation;

/// Rows that are named of each condition.
const MOST_ROWS: usize = 5;

/// The condition that every row of the population is there, which is none of clause 3.3.2: all of those hold of empty tables.
pub const COMPLETE: u32 = 0;

/// A condition, and the rows found so far that break it.
pub struct Violations(OltpViolation);

impl Violations {
    /// None yet.
    pub fn of(condition: u32, words: &str) -> Self {
        Self(OltpViolation { condition, words: words.to_owned(), rows: Vec::new() })
    }

    /// Adds a row, as long as there are few.
    pub fn add(&mut self, row: impl FnOnce() -> String) {
        if self.0.rows.len() < MOST_ROWS {
            self.0.rows.push(row());
        }
    }

    /// The condition with the rows that break it; nothing where it holds.
    pub fn found(self) -> Option<OltpViolation> {
        Some(self.0).filter(|violation| !violation.rows.is_empty())
    }
}
