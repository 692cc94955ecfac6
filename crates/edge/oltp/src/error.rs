//! Why a database could not be populated, loaded or checked.

use thiserror::Error;
use virtbench_record::{DatabaseKind, OltpViolation};

use crate::address::{Address, Endpoint};
use crate::checksum::Checksum;
use crate::fault::{Fault, FaultKind};
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
