//! Shares of the operations.

use std::collections::BTreeMap;

use thiserror::Error;
use virtbench_record::OperationKind;

use OperationKind::{
    AttachDisk, AttachPort, Clone, CreateSnapshot, DeleteSnapshot, DetachDisk, DetachPort, Migrate, PowerOff,
    PowerOn, Reconfigure, Remove, Resume, Shelve, Shutdown, Suspend, Unshelve,
};

/// What one operation makes others take away.
const PAIRS: [(OperationKind, &[OperationKind]); 7] = [
    (PowerOn, &[PowerOff, Shutdown]),
    (Clone, &[Remove]),
    (CreateSnapshot, &[DeleteSnapshot]),
    (Suspend, &[Resume]),
    (AttachDisk, &[DetachDisk]),
    (AttachPort, &[DetachPort]),
    (Shelve, &[Unshelve]),
];
/// The largest share: a deck holds as many cards of a kind.
const MOST: u32 = 1000;

/// Why operations cannot have these shares.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MixError {
    /// It is no table of operations and whole numbers.
    #[error("a mix is a TOML table of operations and whole numbers, such as `power_on = 8`: {0}")]
    Toml(String),
    /// There is no such operation.
    #[error("{word} is no operation; there are {}", names())]
    Unknown {
        /// What was written.
        word: String,
    },
    /// A share is too large.
    #[error("{} = {share}: shares are 0 to {MOST}", kind.name())]
    TooLarge {
        /// The operation that has it.
        kind: OperationKind,
        /// What was asked for.
        share: u32,
    },
    /// It cannot be kept for long.
    #[error(
        "{} has the share {made} and {} {taken}: what one makes the other takes away, so give both the same share",
        maker.name(), together(takers)
    )]
    Unbalanced {
        /// The operation that makes something.
        maker: OperationKind,
        /// What it was given.
        made: u32,
        /// Those that take it away.
        takers: &'static [OperationKind],
        /// What these were given together.
        taken: u32,
    },
    /// Nothing is to be done.
    #[error("the mix has no operation: give at least one a share")]
    Empty,
}

/// `power_off`, or `power_off and shutdown together`.
fn together(kinds: &[OperationKind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let together = if names.len() > 1 { " together" } else { "" };
    format!("{}{together}", names.join(" and "))
}

fn names() -> String {
    OperationKind::ALL.map(OperationKind::name).join(", ")
}

/// Shares of the operations, none of them 0. Only their ratios matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix {
    shares: BTreeMap<OperationKind, u32>,
}

impl Mix {
    /// The shares of [Platform 2014], Table 2.
    pub const PAPER: [(OperationKind, u32); 8] = [
        (PowerOn, 8),
        (PowerOff, 8),
        (Clone, 2),
        (Migrate, 8),
        (Remove, 2),
        (CreateSnapshot, 1),
        (DeleteSnapshot, 1),
        (Reconfigure, 4),
    ];

    /// What infrastructure load is beside tiles: VMs are cloned and deployed, moved, and snapshots taken, and as many go again.
    pub const INFRASTRUCTURE: [(OperationKind, u32); 7] = [
        (PowerOn, 1),
        (PowerOff, 1),
        (Clone, 1),
        (Migrate, 1),
        (Remove, 1),
        (CreateSnapshot, 1),
        (DeleteSnapshot, 1),
    ];

    /// That of the infrastructure load.
    #[must_use]
    pub fn infrastructure() -> Self {
        Self { shares: BTreeMap::from(Self::INFRASTRUCTURE) }
    }

    /// The paper's.
    #[must_use]
    pub fn paper() -> Self {
        Self { shares: BTreeMap::from(Self::PAPER) }
    }

    /// Of these shares.
    ///
    /// # Errors
    /// No run could keep them for long.
    pub fn new(shares: BTreeMap<OperationKind, u32>) -> Result<Self, MixError> {
        let share = |kind| shares.get(&kind).copied().unwrap_or(0);
        if let Some((kind, share)) = shares.iter().find(|(_, share)| **share > MOST) {
            return Err(MixError::TooLarge { kind: *kind, share: *share });
        }
        for (maker, takers) in PAIRS {
            let (made, taken) = (share(maker), takers.iter().map(|taker| share(*taker)).sum());
            if made != taken {
                return Err(MixError::Unbalanced { maker, made, takers, taken });
            }
        }
        let shares: BTreeMap<_, _> = shares.into_iter().filter(|(_, share)| *share > 0).collect();
        if shares.is_empty() { Err(MixError::Empty) } else { Ok(Self { shares }) }
    }

    /// Reads a table such as `power_on = 8`.
    ///
    /// # Errors
    /// It is no such table, or no run could keep it for long.
    pub fn parse(text: &str) -> Result<Self, MixError> {
        let table: BTreeMap<String, u32> =
            toml::from_str(text).map_err(|error| MixError::Toml(error.to_string().trim_end().to_owned()))?;
        let known = table.into_iter().map(|(word, share)| {
            let kind = OperationKind::ALL.into_iter().find(|kind| kind.name() == word);
            kind.map(|kind| (kind, share)).ok_or(MixError::Unknown { word })
        });
        Self::new(known.collect::<Result<_, _>>()?)
    }

    /// Without these; the others keep their ratios.
    ///
    /// # Errors
    /// Nothing is left, or only one of two that belong together is.
    pub fn without(&self, kinds: &[OperationKind]) -> Result<Self, MixError> {
        let left = self.shares.iter().filter(|(kind, _)| !kinds.contains(kind));
        Self::new(left.map(|(kind, share)| (*kind, *share)).collect())
    }

    /// The shares.
    #[must_use]
    pub fn shares(&self) -> &BTreeMap<OperationKind, u32> {
        &self.shares
    }

    /// All shares together: cards in a deck.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.shares.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_mix_can_be_kept() {
        assert_eq!(Mix::new(Mix::paper().shares().clone()), Ok(Mix::paper()));
        assert_eq!(Mix::paper().total(), 34);
        assert_eq!(Mix::new(Mix::infrastructure().shares().clone()), Ok(Mix::infrastructure()));
        assert_eq!(Mix::paper().without(&[Migrate]).unwrap().total(), 26);
    }

    #[test]
    fn a_mix_of_a_file_is_read_or_refused_with_its_reason() {
        let mix = Mix::parse("power_on = 1\npower_off = 1\nlist = 3\nmigrate = 0\n").unwrap();
        assert_eq!((mix.total(), mix.shares().len()), (5, 3));
        assert!(Mix::parse("power_on = 3\npower_off = 1\nshutdown = 2\nreset = 1").is_ok());
        for (text, word) in [
            ("power_up = 1", "power_up is no operation; there are power_on"),
            ("power_on = -1", "TOML table"),
            ("power_on = 1001", "0 to 1000"),
            ("power_on = 8\npower_off = 7", "same share"),
            ("clone = 1", "remove 0"),
            ("power_on = 3\npower_off = 1\nshutdown = 1", "power_off and shutdown together 2"),
            ("", "no operation"),
            ("list = 0", "no operation"),
        ] {
            let error = Mix::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let half = Mix::paper().without(&[DeleteSnapshot]);
        assert!(matches!(half, Err(MixError::Unbalanced { .. })), "{half:?}");
    }
}
