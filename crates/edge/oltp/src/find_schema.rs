//! Which schema tables are in.

use virtbench_record::DatabaseKind;

use crate::address::Address;
use crate::error::OltpError;
use crate::fault::{Fault, FaultKind};
use crate::schema::Schema;
use crate::session::Session;
use crate::value::Value;

/// The one that the address names, or else that in which the server makes new tables.
///
/// # Errors
/// There is none, or the server fails.
pub async fn find_schema(session: &mut Session, address: &Address) -> Result<Schema, OltpError> {
    if address.kind == DatabaseKind::MariaDb {
        refuse_others(session).await?;
    }
    let (kind, place) = match (address.kind, &address.schema) {
        (kind, Some(name)) => return Ok(Schema::new(kind, name)),
        (kind @ DatabaseKind::PostgreSql, None) => (kind, "current_schema()"),
        (kind @ DatabaseKind::MariaDb, None) => (kind, "DATABASE()"),
    };
    let failed = OltpError::server("the schema cannot be looked up");
    let rows = session.query(&format!("SELECT CAST({place} AS char(64))")).await.map_err(failed)?;
    let name = rows.first().and_then(|row| row.first()).map(|name| name.text().trim_end().to_owned());
    name.filter(|name| !name.is_empty()).map(|name| Schema::new(kind, name)).ok_or_else(|| {
        let none = Fault::new(FaultKind::Other, "its search_path has no schema that exists");
        OltpError::server("no schema for tables: name one with ?schema=NAME")(none)
    })
}

/// MariaDB's protocol is MySQL's, which has other settings, locks and defaults.
async fn refuse_others(session: &mut Session) -> Result<(), OltpError> {
    let failed = OltpError::server("the server cannot be asked what it is");
    let rows = session.query("SELECT VERSION()").await.map_err(failed)?;
    let version = rows.first().and_then(|row| row.first()).map_or_else(String::new, Value::words);
    if version.to_ascii_lowercase().contains("mariadb") {
        Ok(())
    } else {
        Err(OltpError::NotMariaDb(version))
    }
}

/// A server that follows another one accepts no changes.
///
/// # Errors
/// It is one, or fails.
pub async fn refuse_standby(session: &mut Session, address: &Address) -> Result<(), OltpError> {
    if address.kind != DatabaseKind::PostgreSql {
        return Ok(());
    }
    let failed = OltpError::server("the server cannot be asked whether it is a standby");
    let rows = session.query("SELECT CAST(pg_is_in_recovery() AS int)").await.map_err(failed)?;
    let is_standby = rows.first().and_then(|row| row.first()).is_some_and(|standby| standby.int() == 1);
    if is_standby { Err(OltpError::Standby(Box::new(address.clone()))) } else { Ok(()) }
}
