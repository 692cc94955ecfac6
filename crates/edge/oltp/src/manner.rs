//! How transactions are sent.

use virtbench_record::OltpIsolation;

/// How transactions are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Manner {
    /// What keeps them apart.
    pub isolation: OltpIsolation,
    /// Whether the server keeps statements, and settings of the connection, from one transaction to the next. Behind a pooler it may be
    /// another server process each time.
    pub keeps: bool,
}
