//! What the three Filebench personalities do ([VirtualFence 2013], section 4.3), as their scripts in Filebench
//! 1.4 and 1.5 have it: mean file sizes, accesses of one round and their order.
//!
//! What reaches the disk is stated rather than simulated:
//! - Opening, closing, deleting and stat cost nothing: their metadata is in the guest's page cache.
//! - Reads miss the page cache, but for the share that an option gives: the file sets are meant to be
//!   far larger than a guest's 512 MB, or there would be no reads to measure.
//! - Writes are waited for. Mail's are synchronous in Filebench itself; the file server's go through a
//!   page cache that a saturated disk has filled, where a writer waits for the disk's rate.
//! - A new file takes the place of one that was deleted.
//! - The web server's log is appended in memory: the paper calls the workload read-only.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One of the paper's workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Personality {
    /// Whole files written and read, and appends: 128 KiB files.
    Fileserver,
    /// A read for each synchronous append: 16 KiB files (Filebench's varmail).
    Mailserver,
    /// Whole files read: 16 KiB files.
    Webserver,
}

/// A workload that does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no workload: write fileserver, mailserver or webserver")]
pub struct PersonalityError(String);

impl std::str::FromStr for Personality {
    type Err = PersonalityError;

    fn from_str(text: &str) -> Result<Self, PersonalityError> {
        Self::ALL
            .into_iter()
            .find(|personality| personality.name() == text)
            .ok_or_else(|| PersonalityError(text.to_owned()))
    }
}

/// What an access moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// A whole file is read.
    ReadWhole,
    /// A whole file is written.
    WriteWhole,
    /// Up to this many bytes are written at a file's end, uniformly (`appendfilerand`).
    Append(u32),
}

/// One access of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// What it moves.
    pub kind: AccessKind,
    /// Whether it is of the file of the access before it.
    pub same_file: bool,
}

const fn access(kind: AccessKind, same_file: bool) -> Access {
    Access { kind, same_file }
}

const APPEND: AccessKind = AccessKind::Append(16 << 10);

impl Personality {
    /// All of them, as the paper's figures order them.
    pub const ALL: [Self; 3] = [Self::Fileserver, Self::Mailserver, Self::Webserver];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fileserver => "fileserver",
            Self::Mailserver => "mailserver",
            Self::Webserver => "webserver",
        }
    }

    /// Mean file size in bytes; sizes follow a gamma distribution of shape 1.5.
    #[must_use]
    pub const fn mean_file_bytes(self) -> u64 {
        match self {
            Self::Fileserver => 128 << 10,
            Self::Mailserver | Self::Webserver => 16 << 10,
        }
    }

    /// The accesses of one round, which each thread repeats.
    #[must_use]
    pub const fn round(self) -> &'static [Access] {
        match self {
            Self::Fileserver => {
                const {
                    &[
                        access(AccessKind::WriteWhole, false),
                        access(APPEND, false),
                        access(AccessKind::ReadWhole, false),
                    ]
                }
            }
            Self::Mailserver => {
                const {
                    &[
                        access(APPEND, false),
                        access(AccessKind::ReadWhole, false),
                        access(APPEND, true),
                        access(AccessKind::ReadWhole, false),
                    ]
                }
            }
            Self::Webserver => const { &[access(AccessKind::ReadWhole, false)] },
        }
    }
}
