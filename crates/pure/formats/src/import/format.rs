//! Which formats of loads there are.

use std::fmt;

/// A format of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An Iometer configuration file (`.icf`).
    Icf,
    /// A fio job file.
    Fio,
    /// fio command lines, one a line.
    FioCommand,
    /// diskspd command lines, one a line, or an XML profile.
    Diskspd,
    /// A Vdbench parameter file.
    Vdbench,
    /// virtbench's own (docs/formats.md).
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Icf => "Iometer configuration",
            Self::Fio => "fio job file",
            Self::FioCommand => "fio command line",
            Self::Diskspd => "diskspd load",
            Self::Vdbench => "Vdbench parameter file",
            Self::Json => "JSON load",
        })
    }
}
