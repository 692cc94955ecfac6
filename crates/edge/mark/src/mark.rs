//! What is written on a thing.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::system::{began, boot_parts, fill_random, machine_parts};

/// How every mark begins; the number is its format.
const BEGINNING: &str = "virtbench-mark-1";

/// Digits of a run's id.
const RUN_DIGITS: usize = 16;

/// Names a run, the same after it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    /// An id that no run has had before.
    #[must_use]
    pub fn new_random() -> Self {
        let mut bytes = [0u8; RUN_DIGITS / 2];
        // The kernel gives as many as these at once; should it not, the clock tells runs apart as well.
        if !fill_random(&mut bytes) {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            bytes = u64::try_from(now.map_or(0, |now| now.as_nanos() & u128::from(u64::MAX)))
                .unwrap_or_default()
                .to_be_bytes();
        }
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_hexadecimal(text, RUN_DIGITS).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says of a thing that virtbench made it, in which run, by which process, and what for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The run that it belongs to.
    pub run: RunId,
    /// The process that made it.
    pub maker: Maker,
    /// What it is for: a word of small letters, digits and hyphens.
    purpose: String,
}

impl Mark {
    /// The mark of something that this process makes.
    #[must_use]
    pub fn new(run: RunId, purpose: &str) -> Self {
        let purpose = purpose.chars().map(|letter| if is_of_word(letter) { letter } else { '-' }).collect();
        Self { run, maker: Maker::this_process(), purpose }
    }

    /// What the thing is for.
    #[must_use]
    pub fn purpose(&self) -> &str {
        &self.purpose
    }

    /// What has become of its maker.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.maker.owner()
    }

    /// The same where the thing lies on this very machine.
    #[must_use]
    pub fn owner_here(&self) -> Owner {
        self.maker.owner_here()
    }

    /// Reads what [`Display`](fmt::Display) writes, and nothing else: white space around it is passed over, as stores add it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut words = text.split(' ');
        if words.next() != Some(BEGINNING) {
            return None;
        }
        let mut value = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=');
        let run = RunId::parse(value("run")?)?;
        let purpose = value("for").filter(|word| !word.is_empty() && word.chars().all(is_of_word))?;
        let machine = value("machine").filter(|word| is_hexadecimal(word, DIGITS))?;
        let boot = value("boot").filter(|word| is_hexadecimal(word, DIGITS))?;
        let process = value("process")?.parse().ok()?;
        let began = value("began")?.parse().ok()?;
        let maker = Maker { machine: machine.to_owned(), boot: boot.to_owned(), process, began };
        let mark = Self { run, maker, purpose: purpose.to_owned() };
        // Not one that only reads alike, such as with a plus sign or more words.
        (mark.to_string() == text).then_some(mark)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, purpose, maker: Maker { machine, boot, process, began } } = self;
        write!(
            f,
            "{BEGINNING} run={run} for={purpose} machine={machine} boot={boot} process={process} began={began}"
        )
    }
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

const fn is_of_word(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
}

/// Digits of a machine's and of a boot's name.
pub(crate) const DIGITS: usize = 10;

/// A process on some machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Maker {
    /// Its machine, as far as process numbers mean something.
    pub(crate) machine: String,
    /// The boot of that machine.
    pub(crate) boot: String,
    pub(crate) process: u32,
    /// When the process began, in the units of its system: process numbers are used again.
    pub(crate) began: u64,
}

/// What is known of a maker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It is this process.
    Own,
    /// It still runs on this machine.
    Lives,
    /// It has ended: what it made is left over.
    Gone,
    /// It runs, or ran, where this process cannot look: on another machine, in another container, or on this machine before it was started
    /// anew. The last may be a machine that was cloned from this one, and lives.
    Elsewhere,
}

impl Maker {
    /// This process.
    #[must_use]
    pub fn this_process() -> Self {
        Self::of_process(std::process::id())
    }

    pub(crate) fn of_process(process: u32) -> Self {
        Self { machine: machine(), boot: boot(), process, began: began(process).unwrap_or(0) }
    }

    /// What has become of it.
    #[must_use]
    pub fn owner(&self) -> Owner {
        if self.machine != machine() || self.boot != boot() {
            Owner::Elsewhere
        } else if began(self.process) != Some(self.began) {
            Owner::Gone
        } else if self.process == std::process::id() {
            Owner::Own
        } else {
            Owner::Lives
        }
    }

    /// The same for one that has made something on this very machine, where no clone of it writes: what ran before this start has ended.
    #[must_use]
    pub fn owner_here(&self) -> Owner {
        if self.machine == machine() && self.boot != boot() { Owner::Gone } else { self.owner() }
    }
}

fn digits(parts: &[Vec<u8>]) -> String {
    let mut sum = Sha256::new();
    parts.iter().for_each(|part| sum.update(part));
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..DIGITS].to_owned()
}

fn machine() -> String {
    digits(&machine_parts())
}

fn boot() -> String {
    digits(&boot_parts())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mark_is_read_again_and_nothing_else_is_one() {
        let mark = Mark::new(RunId::new_random(), "test disk");
        let text = mark.to_string();
        assert_eq!(mark.purpose(), "test-disk");
        assert_eq!(Mark::parse(&format!("  {text}\n")), Some(mark.clone()));
        for other in [
            String::new(),
            "virtbench".to_owned(),
            BEGINNING.to_owned(),
            format!("{text} more"),
            format!("my {text}"),
            text.to_uppercase(),
            text.replacen("mark-1", "mark-2", 1),
            text.replacen("process=", "process=+", 1),
            text.replacen(' ', "  ", 1),
        ] {
            assert_eq!(Mark::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn runs_have_ids_of_their_own() {
        let (one, two) = (RunId::new_random(), RunId::new_random());
        assert_ne!(one, two);
        assert_eq!(RunId::parse(&one.to_string()), Some(one));
        assert_eq!(RunId::parse("0123"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(virtbench-mark-1 )?[ a-z0-9=+]{0,80}") {
            if let Some(mark) = Mark::parse(&text) {
                prop_assert_eq!(mark.to_string(), text.trim());
            }
        }
    }

    #[test]
    fn a_maker_lives_by_its_number_and_beginning() {
        let mine = Maker::this_process();
        assert_eq!(mine.owner(), Owner::Own);
        assert_eq!(Maker { began: mine.began + 1, ..mine.clone() }.owner(), Owner::Gone);
        let earlier = Maker { boot: "0".repeat(DIGITS), ..mine.clone() };
        assert_eq!(
            (earlier.owner(), earlier.owner_here()),
            (Owner::Elsewhere, Owner::Gone),
            "it may be of a clone"
        );
        assert_eq!(Maker { machine: "0".repeat(DIGITS), ..mine.clone() }.owner(), Owner::Elsewhere);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Maker { process: child.id(), began: began(child.id()).unwrap(), ..mine };
        assert_eq!(other.owner(), Owner::Lives);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(other.owner(), Owner::Gone);
    }
}
