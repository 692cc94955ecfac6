//! Which population a database has.

use crate::address::Connect;
use crate::blocking::{connected, wait};
use crate::error::OltpError;
use crate::manner::Manner;
use crate::mark;
use crate::population::Population;

/// The population of a database, which must have one.
///
/// # Errors
/// No connection, no population, one that was not finished.
pub fn find_population(connect: &Connect) -> Result<Population, OltpError> {
    wait(async {
        let mut session = connected(connect, Manner::default()).await?;
        Ok(mark::require(&mut session, connect).await?.1)
    })
}
