//! Which process made a thing, and whether it still lives.

use sha2::{Digest, Sha256};

use crate::system::{began, boot_parts, machine_parts};

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
    use super::*;

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
