//! Names of tasks.

use std::fmt;

/// A task's name: on which node it runs, since when, what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upid {
    text: String,
    node: String,
    kind: String,
}

impl Upid {
    /// Reads `UPID:NODE:PID:PSTART:STARTTIME:TYPE:ID:USER:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(':');
        let (prefix, node) = (fields.next()?, fields.next()?);
        let hexadecimal =
            (0..3).all(|_| fields.next().is_some_and(|field| u64::from_str_radix(field, 16).is_ok()));
        let (kind, _id, _user) = (fields.next()?, fields.next()?, fields.next()?);
        // It becomes part of a path.
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b":-_.@!".contains(&letter);
        let is_one = prefix == "UPID" && hexadecimal && !node.is_empty() && !kind.is_empty();
        let (node, kind) = (node.to_owned(), kind.to_owned());
        (is_one && text.bytes().all(is_plain)).then(|| Self { text: text.to_owned(), node, kind })
    }

    /// The node on which it runs.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What it does, such as `qmstart`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tasks_name_says_where_it_runs_and_nothing_else_is_one() {
        let text = "UPID:pve1:0000C350:00055730:68A1B2C3:qmstart:100:root@pam!bench:";
        let upid = Upid::parse(text).unwrap();
        assert_eq!((upid.node(), upid.kind(), upid.to_string()), ("pve1", "qmstart", text.to_owned()));
        for other in [
            "",
            "UPID",
            "UPID:a:1:2:3:x",
            "UPID:a:q:2:3:x:1:u:",
            "UPID:a/../b:1:2:3:x:1:u:",
            "UPID::1:2:3:x:1:u:",
        ] {
            assert_eq!(Upid::parse(other), None, "{other}");
        }
    }
}
