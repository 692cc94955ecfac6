//! What a reader finds beside the load: notes, and what it did not understand.

use std::collections::BTreeMap;

use super::{ImportedJob, Place, Remark};

/// Remarks and notes beyond this many are counted, not kept.
const MOST: usize = 50;

/// Notes and remarks, each kept once, bounded.
#[derive(Debug, Default)]
pub struct Findings {
    notes: Vec<String>,
    ignored: Vec<Remark>,
    more_ignored: usize,
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
    pub fn ignore(&mut self, at: Place, what: impl Into<String>) {
        let remark = Remark { at, what: what.into() };
        if self.ignored.contains(&remark) {
        } else if self.ignored.len() < MOST {
            self.ignored.push(remark);
        } else {
            self.more_ignored += 1;
        }
    }

    /// Says which jobs would have run together.
    pub fn note_groups(&mut self, jobs: &[ImportedJob]) {
        let mut groups: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for job in jobs {
            groups.entry(job.group).or_default().push(&job.name);
        }
        for names in groups.values().filter(|names| names.len() > 1) {
            let shown = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(8);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            self.note(format!(
                "{shown}{more} would run at the same time in the tool this was written for; here they run one after another"
            ));
        }
    }

    /// The notes and the remarks, in the file's order.
    pub fn into_parts(mut self) -> (Vec<String>, Vec<Remark>) {
        if !self.left_out.is_empty() {
            let names: Vec<String> =
                self.left_out.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
            self.notes.push(format!("left out, because it does not change the load: {}", names.join(", ")));
        }
        self.ignored.sort_by_key(|remark| remark.at);
        if let (Some(last), true) = (self.ignored.last_mut(), self.more_ignored > 0) {
            last.what.push_str(&format!(" (and {} more like these)", self.more_ignored));
        }
        (self.notes, self.ignored)
    }
}
