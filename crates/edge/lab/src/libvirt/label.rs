//! Whose things on a hypervisor are: each carries the name of the process that made it.

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use procfs::process::Process;
use sha2::{Digest, Sha256};

/// How every name of ours begins.
const PREFIX: &str = "virtbench";
/// Digits of a machine's and of a start's name.
const DIGITS: usize = 10;

/// The volumes of a guest, as the ends of their names; where there are several of a kind, with a number.
pub(super) const KERNEL: &str = "kernel";
pub(super) const INITRAMFS: &str = "initramfs";
pub(super) const DISK: &str = "disk";

/// Names a controller, and one environment of its.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// Its machine, as far as process numbers mean something.
    machine: String,
    /// The start of that machine.
    boot: String,
    process: u32,
    /// When the process began, in ticks from the machine's start: numbers are used again.
    began: u64,
    /// The environment.
    number: u32,
}

/// What is known of whoever made something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It is still there.
    Lives,
    /// It has ended: what it made is left over.
    Gone,
    /// On another machine, where this one cannot look, or on this one before it was started anew.
    Elsewhere,
}

impl Label {
    /// A label that nothing has had before.
    #[allow(clippy::new_without_default, reason = "each is another one")]
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        Self {
            machine: machine(),
            boot: boot(),
            process,
            began: began(process).unwrap_or(0),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Reads what its display shows.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('-');
        if words.next() != Some(PREFIX) {
            return None;
        }
        let name = |word: &str| {
            let is_name = word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_name.then(|| word.to_owned())
        };
        let label = Self {
            machine: name(words.next()?)?,
            boot: name(words.next()?)?,
            process: words.next()?.parse().ok()?,
            began: words.next()?.parse().ok()?,
            number: words.next()?.parse().ok()?,
        };
        // Not one that only reads alike, such as with a plus sign.
        (words.next().is_none() && label.to_string() == text).then_some(label)
    }

    /// The volume's name for this purpose.
    pub(super) fn volume(&self, purpose: &str) -> String {
        format!("{self}-{purpose}")
    }

    /// The label in a volume's name.
    pub(super) fn of_volume(name: &str) -> Option<Self> {
        let (label, purpose) = name.rsplit_once('-')?;
        let purpose = purpose.trim_end_matches(|character: char| character.is_ascii_digit());
        [KERNEL, INITRAMFS, DISK].contains(&purpose).then(|| Self::parse(label)).flatten()
    }

    /// Whether whoever made it still lives. One of this machine's id and of another start may be of a machine that was cloned from this one, and
    /// lives.
    #[must_use]
    pub fn owner(&self) -> Owner {
        if self.machine != machine() || self.boot != boot() {
            Owner::Elsewhere
        } else if began(self.process) == Some(self.began) {
            Owner::Lives
        } else {
            Owner::Gone
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, boot, process, began, number } = self;
        write!(f, "{PREFIX}-{machine}-{boot}-{process}-{began}-{number}")
    }
}

fn digits(parts: &[Vec<u8>]) -> String {
    let mut sum = Sha256::new();
    parts.iter().for_each(|part| sum.update(part));
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..DIGITS].to_owned()
}

/// Containers of one host see other processes under the same numbers, and clones of a machine have its id.
fn machine() -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
    digits(&[
        fs::read("/etc/machine-id").unwrap_or_default(),
        fs::read("/proc/sys/kernel/hostname").unwrap_or_default(),
        namespace.unwrap_or_default().into_bytes(),
    ])
}

fn boot() -> String {
    digits(&[fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()])
}

/// When a process began; nothing where there is none.
fn began(process: u32) -> Option<u64> {
    let stat = Process::new(i32::try_from(process).ok()?).ok()?.stat().ok()?;
    (stat.state != 'Z').then_some(stat.starttime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_again_and_nothing_else_is_one() {
        let (one, two) = (Label::new(), Label::new());
        assert_ne!(one, two);
        assert_eq!(Label::parse(&one.to_string()), Some(one.clone()));
        assert_eq!(Label::of_volume(&one.volume("disk")), Some(one.clone()));
        assert_eq!(Label::of_volume(&one.volume("disk12")), Some(one.clone()));
        for text in [
            "virtbench-results".to_owned(),
            "virtbench-results-disk".to_owned(),
            format!("{one}-"),
            format!("my-{one}"),
            format!("{one}-backup"),
            one.to_string().to_uppercase(),
            one.to_string().replacen('-', "-+", 3),
        ] {
            assert_eq!((Label::parse(&text), Label::of_volume(&text)), (None, None), "{text}");
        }
    }

    #[test]
    fn the_owner_is_found_by_number_and_beginning() {
        let mine = Label::new();
        assert_eq!(mine.owner(), Owner::Lives);
        assert_eq!(Label { began: mine.began + 1, ..mine.clone() }.owner(), Owner::Gone);
        assert_eq!(Label { boot: "0".repeat(DIGITS), ..mine.clone() }.owner(), Owner::Elsewhere);
        assert_eq!(Label { machine: "0".repeat(DIGITS), ..mine }.owner(), Owner::Elsewhere);
    }
}
