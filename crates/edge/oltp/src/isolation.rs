//! Isolations by their names in SQL.

use virtbench_record::OltpIsolation;

/// The name of an isolation in SQL.
pub fn isolation_name(isolation: OltpIsolation) -> &'static str {
    match isolation {
        OltpIsolation::ReadCommitted => "READ COMMITTED",
        OltpIsolation::RepeatableRead => "REPEATABLE READ",
        OltpIsolation::Serializable => "SERIALIZABLE",
    }
}
