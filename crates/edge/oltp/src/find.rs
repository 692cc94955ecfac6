//! Which population a database has.

use virtbench_record::OltpIsolation;

use crate::address::Connect;
use crate::blocking::{connected, wait};
use crate::error::OltpError;
use crate::mark;
use crate::population::Population;

/// The population of a database, which must have one.
///
/// # Errors
/// No connection, no population, one that was not finished.
pub fn find_population(connect: &Connect) -> Result<Population, OltpError> {
    wait(async {
        let mut session = connected(connect, OltpIsolation::default()).await?;
        mark::require(&mut session, &connect.address).await
    })
}
