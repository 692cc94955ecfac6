//! Names of what a run makes on a platform: no two runs have the same. Whose a thing is is known by its mark, never by its name.

use std::fmt;

use virtbench_mark::RunId;

/// How every name of ours begins.
const PREFIX: &str = "virtbench";

/// The volumes of a guest, as the ends of their names; where there are several of a kind, with a number.
pub(super) const KERNEL: &str = "kernel";
pub(super) const INITRAMFS: &str = "initramfs";
pub(super) const DISK: &str = "disk";

/// How names begin of what belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// A label that nothing has had before.
    #[allow(clippy::new_without_default, reason = "each is another one")]
    #[must_use]
    pub fn new() -> Self {
        Self(format!("{PREFIX}-{}", RunId::new_random()))
    }

    /// The volume's name for this purpose.
    pub(super) fn volume(&self, purpose: &str) -> String {
        format!("{self}-{purpose}")
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_labels_are_the_same() {
        let (one, two) = (Label::new(), Label::new());
        assert_ne!(one, two);
        assert_eq!(one.volume("disk"), format!("{one}-disk"));
    }
}
