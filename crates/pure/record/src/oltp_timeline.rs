//! What else happened while a database was under load, second by second.

use serde::{Deserialize, Serialize};

/// What may make a second differ from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpCause {
    /// The database wrote its dirty pages.
    Checkpoint,
    /// The database cleaned or analysed tables by itself.
    Autovacuum,
    /// A hypervisor below this host took processor time away.
    StolenTime,
    /// Other programs used this host.
    BusyHost,
    /// The first seconds, in which caches are still filled.
    ColdCache,
}

impl OltpCause {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Checkpoint, Self::Autovacuum, Self::StolenTime, Self::BusyHost, Self::ColdCache];

    /// As a reader knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Autovacuum => "autovacuum",
            Self::StolenTime => "stolen time",
            Self::BusyHost => "busy host",
            Self::ColdCache => "cold caches",
        }
    }
}

/// Something that took a while.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpEvent {
    /// What disturbs the database meanwhile.
    pub cause: OltpCause,
    /// Its begin, in nanoseconds since measuring began; before that it is below zero.
    pub begin_ns: i64,
    /// Its end, likewise.
    pub end_ns: i64,
}

/// The host and the storage in one second of measuring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpHostSecond {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Use of the host's processors, in percent of one.
    pub cpu_percent: f64,
    /// Time that a hypervisor below took, in percent of one processor.
    pub steal_percent: f64,
    /// Other programs, in percent of one processor.
    pub others_percent: Option<f64>,
    /// Whether they used so much that it disturbs.
    pub busy: bool,
    /// Operations of the disk of the data, per second.
    pub iops: Option<f64>,
    /// Context switches of the whole host, per second.
    pub context_switches: Option<f64>,
}

/// Everything on one timeline beside the transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpTimeline {
    /// Each second but the first, which is over when the host is looked at for the first time.
    pub seconds: Vec<OltpHostSecond>,
    /// What the database says that it did, in the order of its log.
    pub events: Vec<OltpEvent>,
    /// What is not known, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
}
