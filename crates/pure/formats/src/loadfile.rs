//! dbench's loadfiles: what a file server was asked, a line each (dbench 4, `client.txt`).
//!
//! ```text
//! [SECONDS] OPERATION ["NAME" ["NAME"]] NUMBERS... STATUS
//! NTCreateX "\clients\client1\a.txt" 0x40 0x2 9938 NT_STATUS_OK
//! WriteX 9938 0 65536 65536 NT_STATUS_OK
//! ```

use std::collections::BTreeMap;

use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::files::{DbenchAction, DbenchOp, DbenchSpec, MAX_DBENCH_OPS};

/// The largest loadfile that is read, in bytes; Debian's has 25 MiB.
pub const MAX_LOADFILE_BYTES: usize = 64 << 20;
/// The longest line, in bytes.
const MAX_LINE_BYTES: usize = 4096;
/// The latest time a line may be due at, in seconds: a week.
const MAX_SECONDS: f64 = 604_800.0;

/// A loadfile that cannot be used.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum LoadfileError {
    /// It is too large.
    #[error("the loadfile has {bytes} bytes, more than {}", format_bytes(MAX_LOADFILE_BYTES as u64))]
    TooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// It holds nothing.
    #[error("the loadfile holds no operation")]
    Empty,
    /// A line that is not understood.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// Reads a loadfile, for one client.
///
/// # Errors
/// The first line that is not understood; commands of newer versions (`LOOP`, `REPEAT`, `RANDOMSTRING`,
/// `SLEEP`) are among them.
pub fn read_loadfile(bytes: &[u8]) -> Result<DbenchSpec, LoadfileError> {
    if bytes.len() > MAX_LOADFILE_BYTES {
        return Err(LoadfileError::TooLarge { bytes: bytes.len() });
    }
    let mut names = Names::default();
    let mut ops = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let wrong = |why: String| LoadfileError::Line { line: number + 1, why };
        if line.len() > MAX_LINE_BYTES {
            return Err(wrong(format!("it is longer than {MAX_LINE_BYTES} bytes")));
        }
        let line = std::str::from_utf8(line).map_err(|_| wrong("it is not UTF-8 text".into()))?.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if ops.len() == MAX_DBENCH_OPS {
            return Err(wrong(format!("more than {MAX_DBENCH_OPS} operations")));
        }
        ops.push(operation(line, &mut names).map_err(wrong)?);
    }
    if ops.is_empty() {
        return Err(LoadfileError::Empty);
    }
    Ok(DbenchSpec { clients: 1, names: names.list, ops, client_bytes_per_second: None })
}

/// Every name once.
#[derive(Debug, Default)]
struct Names {
    numbers: BTreeMap<String, u32>,
    list: Vec<String>,
}

impl Names {
    fn number(&mut self, text: &str) -> Result<u32, String> {
        let name = text.replace('\\', "/");
        if name.split('/').any(|part| part == "." || part == "..") || name.contains('\0') {
            return Err(format!("the name {:?} leaves the client's folder", shorten(text)));
        }
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.list.len()).map_err(|error| error.to_string())?;
        self.list.push(name.clone());
        self.numbers.insert(name, number);
        Ok(number)
    }
}

/// The words of a line; a name in quotes is one.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<Option<&'a str>, String> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Ok(None);
        }
        if let Some(quoted) = self.rest.strip_prefix('"') {
            let (name, rest) = quoted.split_once('"').ok_or("the quotes are not closed")?;
            self.rest = rest;
            return Ok(Some(name));
        }
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(Some(word))
    }

    fn need(&mut self, what: &str) -> Result<&'a str, String> {
        self.next()?.ok_or_else(|| format!("{what} is missing"))
    }

    fn number<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, String> {
        let word = self.need(what)?;
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let number = parsed.ok().and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| format!("{what} {:?} is no number, or too large", shorten(word)))
    }
}

fn operation(line: &str, names: &mut Names) -> Result<DbenchOp, String> {
    let mut words = Words { rest: line };
    let mut word = words.need("the operation")?;
    let due_ns = if word.starts_with(|c: char| c.is_ascii_digit()) {
        let seconds: f64 = word.parse().map_err(|_| format!("{:?} is no time in seconds", shorten(word)))?;
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            return Err(format!("a time of {seconds} s is outside 0 to {MAX_SECONDS}"));
        }
        word = words.need("the operation")?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some((seconds * 1e9) as u64)
    } else {
        None
    };
    let action = action(word, &mut words, names)?;
    // What is left is ignored up to the status, as dbench does: a transfer's result size, a level.
    let mut status = words.need("the status")?;
    while let Some(next) = words.next()? {
        status = next;
    }
    let is_zero = |digits: &str| u64::from_str_radix(digits, 16).is_ok_and(|code| code == 0);
    let succeeds = match status {
        "NT_STATUS_OK" | "SUCCESS" => true,
        status if status.starts_with("NT_STATUS_") => false,
        status => match status.strip_prefix("0x") {
            Some(digits) => is_zero(digits),
            None => return Err(format!("the status {:?} is none", shorten(status))),
        },
    };
    Ok(DbenchOp { due_ns, action, succeeds })
}

fn action(word: &str, words: &mut Words<'_>, names: &mut Names) -> Result<DbenchAction, String> {
    let known = DbenchAction::NAMES.iter().find(|name| name.eq_ignore_ascii_case(word));
    let mut name = |words: &mut Words<'_>| words.need("a name").and_then(|text| names.number(text));
    Ok(match known.copied() {
        Some("NTCreateX") => DbenchAction::NtCreateX {
            name: name(words)?,
            options: words.number("the options")?,
            disposition: words.number("the disposition")?,
            handle: words.number("the handle")?,
        },
        Some("Close") => DbenchAction::Close { handle: words.number("the handle")? },
        Some(transfer @ ("ReadX" | "WriteX")) => {
            let (handle, offset) = (words.number("the handle")?, words.number("the offset")?);
            let size = words.number("the size")?;
            if transfer == "ReadX" {
                DbenchAction::ReadX { handle, offset, size }
            } else {
                DbenchAction::WriteX { handle, offset, size }
            }
        }
        Some("Flush") => DbenchAction::Flush { handle: words.number("the handle")? },
        Some("LockX") => DbenchAction::LockX {
            handle: words.number("the handle")?,
            offset: words.number("the offset")?,
            size: words.number("the size")?,
        },
        Some("UnlockX") => DbenchAction::UnlockX {
            handle: words.number("the handle")?,
            offset: words.number("the offset")?,
            size: words.number("the size")?,
        },
        Some("QUERY_PATH_INFORMATION") => DbenchAction::QueryPathInformation { name: name(words)? },
        Some("QUERY_FILE_INFORMATION") => {
            DbenchAction::QueryFileInformation { handle: words.number("the handle")? }
        }
        Some("QUERY_FS_INFORMATION") => DbenchAction::QueryFsInformation,
        Some("SET_FILE_INFORMATION") => {
            DbenchAction::SetFileInformation { handle: words.number("the handle")? }
        }
        Some("FIND_FIRST") => {
            let name = name(words)?;
            let _level: u32 = words.number("the level")?;
            DbenchAction::FindFirst { name, most: words.number("the most")? }
        }
        Some("Unlink") => DbenchAction::Unlink { name: name(words)? },
        Some("Rename") => DbenchAction::Rename { from: name(words)?, to: name(words)? },
        Some("Mkdir") => DbenchAction::Mkdir { name: name(words)? },
        Some("Rmdir") => DbenchAction::Rmdir { name: name(words)? },
        Some("Deltree") => DbenchAction::Deltree { name: name(words)? },
        _ => return Err(format!("operation {:?} is not supported", shorten(word))),
    })
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXAMPLE: &str = include_str!("../tests/examples/small.load");

    #[test]
    fn our_own_example_has_every_operation() {
        let load = read_loadfile(EXAMPLE.as_bytes()).unwrap();
        let mut seen: Vec<usize> = load.ops.iter().map(|op| op.action.index()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..DbenchAction::NAMES.len()).collect::<Vec<usize>>());
        assert!(load.ops.iter().any(|op| !op.succeeds));
        assert_eq!(load.ops.iter().filter_map(|op| op.due_ns).max(), Some(20_000_000));
        assert!(load.names.iter().all(|name| name.starts_with("/clients") && !name.contains('\\')));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, word) in [
            ("\n\nNTCreateX \"a\" 0x40 0x2\n", 3, "handle"),
            ("Close 1 NT_STATUS_OK\nLOOP 5\n", 2, "LOOP"),
            ("WriteX 1 2 99999999999 3 NT_STATUS_OK\n", 1, "size"),
            ("Unlink \"\\..\\x\" NT_STATUS_OK\n", 1, "leaves"),
            ("Unlink \"x NT_STATUS_OK\n", 1, "quotes"),
            ("Close 1 maybe\n", 1, "status"),
            ("1e99 Close 1 NT_STATUS_OK\n", 1, "outside"),
        ] {
            match read_loadfile(text.as_bytes()) {
                Err(LoadfileError::Line { line: found, why }) => {
                    assert_eq!(found, line, "{text}");
                    assert!(why.contains(word), "{text}: {why}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(read_loadfile(b"# nothing\n"), Err(LoadfileError::Empty));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_names_stay_inside(
            lines in prop::collection::vec("(Close|Unlink|Rename|ReadX|[0-9.]{1,5})? ?\"?[\\\\a-z./]{0,12}\"? [0-9x ]{0,12}(NT_STATUS_OK|0x0)?", 0..20),
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let text = [lines.join("\n").as_bytes(), &bytes].concat();
            let _ = read_loadfile(&text);
            if let Ok(load) = read_loadfile(lines.join("\n").as_bytes()) {
                prop_assert!(load.names.iter().all(|name| !name.split('/').any(|part| part == "..")));
            }
        }
    }
}
