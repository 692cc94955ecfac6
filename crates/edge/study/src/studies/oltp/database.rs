//! How the databases of the supplied appliances are reached.

use std::net::SocketAddr;

use virtbench_oltp::{Address, Connect, Endpoint};
use virtbench_record::DatabaseKind;

/// The recipe of a database.
pub(crate) fn recipe_name(kind: DatabaseKind) -> &'static str {
    match kind {
        DatabaseKind::PostgreSql => "postgresql",
        DatabaseKind::MariaDb => "mariadb",
    }
}

/// Which database a recipe is; nothing where it is none of ours.
pub(crate) fn database_kind(recipe: &str) -> Option<DatabaseKind> {
    [DatabaseKind::PostgreSql, DatabaseKind::MariaDb].into_iter().find(|kind| recipe_name(*kind) == recipe)
}

/// The port on which its recipe serves.
pub(crate) fn port(kind: DatabaseKind) -> u16 {
    match kind {
        DatabaseKind::PostgreSql => 5432,
        DatabaseKind::MariaDb => 3306,
    }
}

/// The account and the database that its recipe makes. Only the run itself reaches the appliance.
pub(crate) fn connect(kind: DatabaseKind, at: SocketAddr) -> Connect {
    let (user, database, password) = match kind {
        DatabaseKind::PostgreSql => ("postgres", "postgres", None),
        DatabaseKind::MariaDb => ("bench", "bench", Some("bench".to_owned())),
    };
    let endpoint = Endpoint::Tcp(at.ip().to_string(), at.port());
    Connect { address: Address::new(kind, endpoint, user, database), password }
}
