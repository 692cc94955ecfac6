//! What a server says is wrong, by what can be done about it.

use std::time::Duration;

/// What kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Two transactions wait for each other.
    Deadlock,
    /// Transactions cannot be put in an order.
    Serialization,
    /// A lock was not had in time.
    LockTimeout,
    /// Nobody listens there, or nobody answers.
    Refused,
    /// User or password are wrong.
    Login,
    /// The server is read-only.
    ReadOnly,
    /// Rights are missing.
    Denied,
    /// The server has forgotten a statement that was prepared, or knows another of its name: a pooler stands before it.
    NotPrepared,
    /// The server wants an encrypted connection or has none, or it is not believed.
    Encryption,
    /// The server ended a connection that it took for idle.
    Idle,
    /// There is no database of this name.
    NoDatabase,
    /// There is no such table.
    NoTable,
    /// The server accepts no more connections.
    TooManyConnections,
    /// The connection ended.
    Gone,
    /// No answer in time.
    Timeout,
    /// The server's disk is full.
    Full,
    /// Anything else.
    Other,
}

impl FaultKind {
    /// Whether the transaction may succeed when it is tried again.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Deadlock | Self::Serialization | Self::LockTimeout)
    }

    /// Whether nothing more can be measured.
    pub fn ends_all(self) -> bool {
        matches!(
            self,
            Self::Gone
                | Self::Timeout
                | Self::Full
                | Self::NoTable
                | Self::ReadOnly
                | Self::Denied
                | Self::NotPrepared
                | Self::Idle
        )
    }
}

/// A fault, in the server's words.
pub type Fault = virtbench_users::Fault<FaultKind>;

/// No answer within this time.
pub fn no_answer(limit: Duration) -> Fault {
    Fault::new(FaultKind::Timeout, format!("no answer within {} s", limit.as_secs()))
}

/// What is wrong by PostgreSQL's SQLSTATE (its manual, appendix A).
pub fn of_sqlstate(state: &str) -> FaultKind {
    match state {
        "40P01" => FaultKind::Deadlock,
        "40001" => FaultKind::Serialization,
        "55P03" => FaultKind::LockTimeout,
        "57014" => FaultKind::Timeout,
        "3D000" => FaultKind::NoDatabase,
        "42P01" => FaultKind::NoTable,
        "53300" => FaultKind::TooManyConnections,
        "25006" => FaultKind::ReadOnly,
        "42501" => FaultKind::Denied,
        "26000" | "42P05" => FaultKind::NotPrepared,
        "25P03" | "57P05" => FaultKind::Idle,
        "53100" => FaultKind::Full,
        "57P01" | "57P02" | "57P03" => FaultKind::Gone,
        _ if state.starts_with("28") => FaultKind::Login,
        _ if state.starts_with("08") => FaultKind::Gone,
        _ => FaultKind::Other,
    }
}

/// What is wrong by MariaDB's error number (its Knowledge Base, "MariaDB Error Codes").
pub fn of_mariadb(code: u16) -> FaultKind {
    match code {
        1213 => FaultKind::Deadlock,
        1020 => FaultKind::Serialization,
        1205 => FaultKind::LockTimeout,
        1969 => FaultKind::Timeout,
        1049 => FaultKind::NoDatabase,
        1146 => FaultKind::NoTable,
        1290 | 1792 | 1836 | 1874 => FaultKind::ReadOnly,
        1142 | 1143 | 1227 | 1370 => FaultKind::Denied,
        1243 => FaultKind::NotPrepared,
        3159 => FaultKind::Encryption,
        4031 | 4032 | 1159 => FaultKind::Idle,
        1040 | 1203 => FaultKind::TooManyConnections,
        1044 | 1045 | 1698 => FaultKind::Login,
        1021 | 1114 => FaultKind::Full,
        1053 | 1077 | 1079 | 1927 => FaultKind::Gone,
        _ => FaultKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_say_the_same_in_codes_of_their_own() {
        for (state, code, kind) in [
            ("40P01", 1213, FaultKind::Deadlock),
            ("40001", 1020, FaultKind::Serialization),
            ("55P03", 1205, FaultKind::LockTimeout),
            ("3D000", 1049, FaultKind::NoDatabase),
            ("28P01", 1045, FaultKind::Login),
            ("53300", 1040, FaultKind::TooManyConnections),
            ("53100", 1114, FaultKind::Full),
            ("57P01", 1053, FaultKind::Gone),
            ("25006", 1290, FaultKind::ReadOnly),
            ("42501", 1142, FaultKind::Denied),
            ("26000", 1243, FaultKind::NotPrepared),
            ("57P05", 4031, FaultKind::Idle),
            ("22012", 1365, FaultKind::Other),
        ] {
            assert_eq!((of_sqlstate(state), of_mariadb(code)), (kind, kind), "{state}");
        }
        assert!(FaultKind::Deadlock.may_pass() && !FaultKind::Full.may_pass() && FaultKind::Full.ends_all());
    }
}
