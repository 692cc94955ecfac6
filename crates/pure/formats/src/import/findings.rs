//! What a reader finds beside the load: notes, and what it did not understand.

use super::{Location, Remark};

/// Remarks and notes beyond this many are counted, not kept.
const MOST: usize = 50;

/// Notes and remarks, each kept once, bounded.
#[derive(Debug, Default)]
pub struct Findings {
    notes: Vec<String>,
    ignored: Vec<Remark>,
    more_ignored: usize,
    hopeless: Vec<Remark>,
    left_out: Vec<(String, usize)>,
}

impl Findings {
    /// A difference the user should know.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notes.len() < MOST && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// An option that changes nothing about the load.
    pub fn leave_out(&mut self, name: &str, line: usize) {
        let entry = (name.to_owned(), line);
        if self.left_out.len() < MOST && !self.left_out.contains(&entry) {
            self.left_out.push(entry);
        }
    }

    /// Something that cannot be honoured.
    pub fn ignore(&mut self, at: Location, what: impl Into<String>) {
        let remark = Remark { at, what: what.into() };
        if self.ignored.contains(&remark) {
        } else if self.ignored.len() < MOST {
            self.ignored.push(remark);
        } else {
            self.more_ignored += 1;
        }
    }

    /// Something that makes the file one that cannot be run, whatever the caller tolerates.
    pub fn refuse(&mut self, at: Location, what: impl Into<String>) {
        let remark = Remark { at, what: what.into() };
        if self.hopeless.len() < MOST && !self.hopeless.contains(&remark) {
            self.hopeless.push(remark);
        }
    }

    /// The notes, the remarks in the file's order, and how many of these are hopeless.
    pub fn into_parts(mut self) -> (Vec<String>, Vec<Remark>, usize) {
        if !self.left_out.is_empty() {
            let names: Vec<String> =
                self.left_out.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
            self.notes.push(format!("left out, because it does not change the load: {}", names.join(", ")));
        }
        self.ignored.sort_by_key(|remark| remark.at);
        if let (Some(last), true) = (self.ignored.last_mut(), self.more_ignored > 0) {
            last.what.push_str(&format!(" (and {} more like these)", self.more_ignored));
        }
        let hopeless = self.hopeless.len();
        self.ignored.append(&mut self.hopeless);
        self.ignored.sort_by_key(|remark| remark.at);
        (self.notes, self.ignored, hopeless)
    }
}
