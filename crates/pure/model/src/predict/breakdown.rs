//! Where the time of one operation goes.

use serde::Serialize;

/// A part of the time of one operation ([ESX Disk 2003], Sourced 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// C: computing between operations, user code and system code not told apart.
    Compute,
    /// C: user code.
    User,
    /// C: system code.
    System,
    /// Neither computing nor waiting for the disk: the network, other processes, timers.
    Elsewhere,
    /// V: what virtualization adds to computing.
    Virtualization,
    /// S: system code of the operation itself, and waiting for a processor.
    SystemIo,
    /// L: the operation.
    Disk,
}

impl Part {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "computing (C)",
            Self::User => "user code (C)",
            Self::System => "system code (C)",
            Self::Elsewhere => "waiting elsewhere",
            Self::Virtualization => "virtualization of computing (V)",
            Self::SystemIo => "system code of I/O, ready queue (S)",
            Self::Disk => "disk (L)",
        }
    }
}

/// Where the time of one operation goes, in milliseconds, in the order in which it is spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Breakdown(pub Vec<(Part, f64)>);

impl Breakdown {
    /// All of it, in milliseconds.
    #[must_use]
    pub fn total_ms(&self) -> f64 {
        self.0.iter().map(|(_, ms)| ms).sum()
    }

    /// The parts that take any time.
    pub(super) fn from_parts(parts: impl IntoIterator<Item = (Part, f64)>) -> Self {
        Self(parts.into_iter().filter(|(_, ms)| *ms > 0.0).collect())
    }
}
