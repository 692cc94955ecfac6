//! Why a database could not be populated, loaded or checked.

use std::time::Duration;

use thiserror::Error;
use virtbench_record::{DatabaseKind, OltpViolation};

use crate::address::{Address, Endpoint};
use crate::tables::Checksum;
use crate::tls::TlsMode;

/// Why not, with the next step.
#[derive(Debug, Error)]
pub enum OltpError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// No connection came about.
    #[error("cannot reach {address}: {fault}; {}", advice(address, fault))]
    Connect {
        /// Where to.
        address: Box<Address>,
        /// What is wrong.
        fault: Fault,
    },
    /// Another database that speaks the protocol.
    #[error("the server is not MariaDB but {0}: virtbench was not tried with MySQL, and does not load it")]
    NotMariaDb(String),
    /// A standby.
    #[error("{0} is a standby, which accepts no changes: name its primary")]
    Standby(Box<Address>),
    /// There is no population.
    #[error(
        "{0} is not populated in schema {1}: `virtbench oltp populate --database '{0}' --warehouses N` does that"
    )]
    NotPopulated(Box<Address>, String),
    /// A population was begun and not finished.
    #[error(
        "the population of {0} in schema {1} was not finished: `virtbench oltp populate --database '{0}'` makes it anew"
    )]
    Unfinished(Box<Address>, String),
    /// A population of another version of this program.
    #[error(
        "{0} was populated in schema {1} by another version of virtbench: populate it again with --replace"
    )]
    OtherFormat(Box<Address>, String),
    /// A population of a version that did not mark each table.
    #[error(
        "{0} has tables in schema {1} that an earlier version of virtbench made and did not mark each: drop virtbench_oltp and the \
         nine others yourself, or name another schema"
    )]
    Earlier(Box<Address>, String),
    /// Somebody populates it at this moment.
    #[error("{address} is being populated in schema {schema} at this moment: wait until that has ended")]
    Busy {
        /// Which database.
        address: Box<Address>,
        /// Its schema.
        schema: String,
    },
    /// A population of another size.
    #[error(
        "{address} has {found} warehouses, not {asked}: leave --warehouses out, or populate it again with --replace"
    )]
    OtherSize {
        /// Which database.
        address: Box<Address>,
        /// Warehouses that it has.
        found: u32,
        /// Warehouses that were asked for.
        asked: u32,
    },
    /// There is a population already.
    #[error(
        "{address} is populated already in schema {schema}, with {warehouses} warehouses: --replace removes them first"
    )]
    Populated {
        /// Which database.
        address: Box<Address>,
        /// Its schema.
        schema: String,
        /// Warehouses that it has.
        warehouses: u32,
    },
    /// Tables of somebody else's.
    #[error(
        "{address} has a table {table} in schema {schema} that virtbench did not make, and does not touch: use a database of its own"
    )]
    Foreign {
        /// Which database.
        address: Box<Address>,
        /// Its schema.
        schema: String,
        /// The table's name.
        table: String,
    },
    /// A table has something else than it was given.
    #[error(
        "table {table} does not hold what it was given: it has {} rows with checksum {:08x}, not {} with {:08x}",
        found.rows, found.sum, given.rows, given.sum
    )]
    Different {
        /// The table's name.
        table: &'static str,
        /// What was sent.
        given: Checksum,
        /// What is there.
        found: Checksum,
    },
    /// Populating was stopped or failed.
    #[error("{why}; {}", left.words())]
    Abandoned {
        /// What failed, or the stop.
        why: Box<Self>,
        /// What became of the tables.
        left: Left,
    },
    /// More connections are needed than the server has.
    #[error(
        "{users} users need {needed} connections, and the server has {most}: give fewer users or raise max_connections; where a pooler \
         stands before it, --prepared no says so"
    )]
    TooManyUsers {
        /// Users.
        users: u32,
        /// Connections, those of deferred Deliveries included.
        needed: u32,
        /// What the server has.
        most: u32,
    },
    /// The server failed.
    #[error("{what}: {fault}{}", remedy(fault))]
    Server {
        /// While what was done.
        what: String,
        /// What it said.
        fault: Fault,
    },
    /// The database is not consistent.
    #[error("the database breaks {}; the run has no result: populate it again with --replace", listed(.0))]
    Inconsistent(Vec<OltpViolation>),
    /// A stop was asked for before anything was measured.
    #[error("stopped")]
    Stopped,
    /// The driver itself failed.
    #[error("the driver failed: {0}")]
    Driver(#[from] std::io::Error),
}

/// What became of tables that were made for a population that did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// They are gone.
    Nothing,
    /// They stay, and the next `populate` makes them anew.
    Unfinished(String),
}

impl Left {
    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => "the tables were removed".into(),
            Self::Unfinished(why) => {
                format!(
                    "the tables could not be removed ({why}) and are marked as unfinished: populate again"
                )
            }
        }
    }
}

impl OltpError {
    /// Whether it is that a stop was asked for.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    /// A fault while something was done.
    pub(crate) fn server(what: impl Into<String>) -> impl FnOnce(Fault) -> Self {
        let what = what.into();
        move |fault| Self::Server { what, fault }
    }

    /// What the server said, if it said something.
    #[must_use]
    pub fn fault(&self) -> Option<FaultKind> {
        match self {
            Self::Connect { fault, .. } | Self::Server { fault, .. } => Some(fault.kind),
            Self::Abandoned { why, .. } => why.fault(),
            _ => None,
        }
    }
}

fn advice(address: &Address, fault: &Fault) -> String {
    let (server, password) = match address.kind {
        DatabaseKind::PostgreSql => ("PostgreSQL", "PGPASSWORD"),
        DatabaseKind::MariaDb => ("MariaDB", "MYSQL_PWD"),
    };
    match fault.kind {
        // PostgreSQL's rules for hosts, and its and MariaDB's words for a connection that is to be encrypted.
        FaultKind::Encryption => encryption(fault),
        FaultKind::Login if fault.words.contains("no encryption") || fault.words.contains("SSL off") => {
            "the server wants an encrypted connection, or none from here: ?sslmode=require in the address"
                .into()
        }
        FaultKind::Login if fault.words.contains("no pg_hba.conf entry") => {
            "its pg_hba.conf says who may come from where".into()
        }
        // MariaDB says no more of a connection that should have been encrypted.
        FaultKind::Login
            if address.kind == DatabaseKind::MariaDb
                && address.tls.mode == TlsMode::Disable
                && matches!(address.endpoint, Endpoint::Tcp(..)) =>
        {
            format!(
                "check user and password ({password} or --password-file), and whether the server wants encrypted connections \
                 (?sslmode=require in the address)"
            )
        }
        FaultKind::Login => format!("check user and password ({password} or --password-file)"),
        FaultKind::NoDatabase => format!("make it: CREATE DATABASE {}", address.database),
        FaultKind::TooManyConnections => "give fewer users or raise max_connections".into(),
        FaultKind::Refused => format!("check that {server} runs and listens there"),
        _ => format!("{server}'s log may say more"),
    }
}

fn encryption(fault: &Fault) -> String {
    let wants =
        ["insecure transport", "insecure connections"].iter().any(|words| fault.words.contains(words));
    let has_none =
        fault.words.contains("does not support TLS") || fault.words.contains("does not have this capability");
    if wants {
        "?sslmode=require in the address encrypts it".into()
    } else if has_none {
        "leave sslmode out of the address, or set ssl on the server".into()
    } else {
        "sslrootcert=FILE in the address names the authority, sslmode=require believes anybody".into()
    }
}

fn remedy(fault: &Fault) -> &'static str {
    match fault.kind {
        FaultKind::Full => "; make room on the server's disk",
        FaultKind::Gone => "; the server's log says why it went",
        FaultKind::Timeout => "; the server may be overloaded or hang",
        FaultKind::TooManyConnections => "; give fewer users or raise max_connections",
        FaultKind::ReadOnly => "; a server that is read-only or a standby cannot be loaded: name its primary",
        FaultKind::Denied => "; populate and run as the same user, or grant the rights",
        FaultKind::NotPrepared => {
            "; behind a pooler that gives each transaction another connection, give --prepared no"
        }
        FaultKind::Idle => "; raise its time limit for idle connections",
        _ if fault.words.contains("local_infile") || fault.words.contains("command is not allowed") => {
            "; SET GLOBAL local_infile = 1 on the server lets it load"
        }
        _ => "",
    }
}

/// The server's words with the next step, where there is one.
pub(crate) fn with_remedy(fault: &Fault) -> String {
    format!("{}{}", fault.words, remedy(fault))
}

fn listed(violations: &[OltpViolation]) -> String {
    let one = |violation: &OltpViolation| {
        let condition = match violation.condition {
            0 => "what every population has".to_owned(),
            number => format!("condition {number}"),
        };
        format!("{condition} ({}) in {}", violation.words, violation.rows.join("; "))
    };
    violations.iter().map(one).collect::<Vec<_>>().join(", and ")
}

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
