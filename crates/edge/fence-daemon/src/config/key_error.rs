//! What is wrong at a key of a configuration, and in which line of the file that is.

use std::fmt::{self, Display};

use toml_edit::{Document, Item};

/// A key whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyError {
    /// The tables that lead to it, a disk by its place, and the key.
    pub(super) path: Vec<PathPart>,
    pub(super) says: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathPart {
    Table(&'static str),
    /// `[pool.NAME]`
    Pool(String),
    Disk(usize, String),
}

impl Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.path.iter().enumerate() {
            let behind = if place + 1 == self.path.len() { " " } else { "." };
            match step {
                PathPart::Disk(_, name) => write!(f, "disk {name}: ")?,
                PathPart::Table(name) => write!(f, "{name}{behind}")?,
                PathPart::Pool(name) => write!(f, "pool.{name}{behind}")?,
            }
        }
        f.write_str(&self.says)
    }
}

impl KeyError {
    /// With the line where it stands in the file that it came from; that of the table where the key itself is not there.
    pub(super) fn in_text(&self, text: &str) -> String {
        let line = self.start(text).map(|start| text[..start].matches('\n').count() + 1);
        line.map_or_else(|| self.to_string(), |line| format!("line {line}: {self}"))
    }

    fn start(&self, text: &str) -> Option<usize> {
        let document = Document::parse(text).ok()?;
        let (mut item, mut found): (&Item, _) = (document.as_item(), None);
        for step in &self.path {
            let next = match step {
                PathPart::Table(name) => item.get(name),
                PathPart::Pool(name) => item.get("pool").and_then(|pools| pools.get(name)),
                PathPart::Disk(place, _) => item.get("disk").and_then(|disks| disks.get(*place)),
            };
            let Some(next) = next else { break };
            (item, found) = (next, start_of(next).or(found));
        }
        found
    }
}

/// Where an item begins; `[pool.a]` may be there by its parts alone.
fn start_of(item: &Item) -> Option<usize> {
    let parts = || item.as_table_like()?.iter().filter_map(|(_, part)| start_of(part)).min();
    item.span().map(|span| span.start).or_else(parts)
}
