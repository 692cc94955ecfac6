//! Loads on a file system: what is done to files in a directory ([Multi-VM 2010], section 5; [VirtualFence 2013],
//! section 4.3; [ESX Disk 2003], section 4).
//!
//! A [`FileLoad`] is a value; who performs it is given a directory. Four kinds: Bonnie++'s tests,
//! Iozone's tests, a Filebench model (the three personalities are such models), a dbench loadfile.

mod dbench;
mod draw;
mod iozone;
mod model;
mod notation;
mod packed;
mod personality;

use serde::{Deserialize, Serialize};

pub use dbench::{DbenchAction, DbenchOp, DbenchSpec, MAX_CLIENTS, MAX_DBENCH_OPS};
pub use draw::{Draw, Drawer, TableRow};
pub use iozone::{BonnieSpec, CharacterIo, IozoneSpec, IozoneTest};
use model::range;
pub use model::{
    Action, FileChoice, FileLoadError, FileModel, FileSet, Flowop, Io, MAX_ENTRIES, MAX_FDS, MAX_FILESETS,
    MAX_FLOWOPS, MAX_MODEL_THREADS, ModelError, Process, Quit, ThreadFlow,
};
pub use personality::Personality;

use crate::arrivals::Rate;

/// What is done about the page cache between phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CacheControl {
    /// Files are synced and dropped from the cache, so that no phase reads what an earlier one left
    /// there. In a guest the whole cache is dropped, natively that of our own files.
    #[default]
    Drop,
    /// Nothing, as Bonnie++, Iozone, Filebench and dbench do.
    Keep,
    /// It is bypassed (`O_DIRECT`) by reads and writes of whole, aligned blocks.
    Direct,
}

/// When operations of a model or a loadfile may start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pace {
    /// Operations per second, of all threads together, and when they arrive.
    pub rate: Rate,
    /// Whether a thread that is late makes up for it, and response time counts from the intended
    /// start. Otherwise the rate is a limit, and response time counts from the real start.
    pub open: bool,
}

/// A load on a file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "tool", rename_all = "snake_case")]
pub enum FileLoad {
    /// Bonnie++'s tests.
    Bonnie(BonnieSpec),
    /// Iozone's tests.
    Iozone(IozoneSpec),
    /// A model in Filebench's terms.
    Model(FileModel),
    /// Clients that replay a loadfile.
    Dbench(DbenchSpec),
}

/// A load on a file system with what holds for every kind of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSpec {
    /// What is done.
    pub load: FileLoad,
    /// The page cache.
    #[serde(default)]
    pub cache: CacheControl,
    /// How long one run of a model or a loadfile is, in nanoseconds. Tests have an end of their own.
    pub run_ns: u64,
    /// The pace of a model or a loadfile; without it threads go as fast as they can.
    #[serde(default)]
    pub pace: Option<Pace>,
}

/// The longest run: a week, in nanoseconds.
const MAX_TIME_NS: u64 = 7 * 24 * 3_600_000_000_000;

impl FileLoad {
    /// Its name in the notation and in records.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bonnie(_) => "bonnie",
            Self::Iozone(_) => "iozone",
            Self::Model(model) => Personality::find(&model.name).map_or("model", Personality::name),
            Self::Dbench(_) => "dbench",
        }
    }

    /// Threads or clients that work at once.
    #[must_use]
    pub fn threads(&self) -> u32 {
        match self {
            Self::Bonnie(bonnie) => bonnie.seekers,
            Self::Iozone(_) => 1,
            Self::Model(model) => u32::try_from(model.threads()).unwrap_or(u32::MAX),
            Self::Dbench(dbench) => dbench.clients,
        }
    }
}

impl FileSpec {
    /// Whether it runs for a time, not to an end of its own.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        matches!(self.load, FileLoad::Model(_) | FileLoad::Dbench(_))
    }

    /// As it is recorded: without what only repeats a file that is elsewhere.
    #[must_use]
    pub(crate) fn recorded(&self) -> Self {
        let mut spec = self.clone();
        if let FileLoad::Dbench(dbench) = &self.load {
            spec.load = FileLoad::Dbench(dbench.without_loadfile());
        }
        spec
    }

    /// This load for a minute, at full speed, the cache dropped between phases.
    #[must_use]
    pub fn new(load: FileLoad) -> Self {
        Self { load, cache: CacheControl::Drop, run_ns: 60_000_000_000, pace: None }
    }

    /// Checks every field against its limits.
    ///
    /// # Errors
    /// The first thing found wrong, naming the flag to change.
    pub fn validate(&self) -> Result<(), FileLoadError> {
        range("run (ns)", self.run_ns, 1_000_000, MAX_TIME_NS)?;
        if let Some(pace) = self.pace {
            let per_second = pace.rate.per_second;
            if !(0.001..=crate::load_error::MAX_RATE).contains(&per_second) {
                return Err(FileLoadError::Rate(per_second.to_string()));
            }
            if matches!(self.load, FileLoad::Bonnie(_) | FileLoad::Iozone(_)) {
                return Err(FileLoadError::Useless {
                    flag: "rate",
                    why: "Bonnie++'s and Iozone's tests measure how fast a file system can be; leave it out",
                });
            }
        }
        if self.cache == CacheControl::Direct && self.is_timed() {
            return Err(FileLoadError::Useless {
                flag: "cache=direct",
                why: "files and requests of any size cannot bypass the cache; use cache=drop or cache=keep",
            });
        }
        match &self.load {
            FileLoad::Bonnie(bonnie) => bonnie.validate(),
            FileLoad::Iozone(iozone) => iozone.validate(),
            FileLoad::Model(model) => Ok(model.validate()?),
            FileLoad::Dbench(dbench) => dbench.validate(),
        }
    }
}
