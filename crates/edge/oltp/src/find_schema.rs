//! Which schema tables are in.

use virtbench_record::DatabaseKind;

use crate::address::Address;
use crate::error::OltpError;
use crate::fault::{Fault, FaultKind};
use crate::schema::Schema;
use crate::session::Session;

/// The one that the address names, or else that in which the server makes new tables.
///
/// # Errors
/// There is none, or the server fails.
pub async fn find_schema(session: &mut Session, address: &Address) -> Result<Schema, OltpError> {
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
