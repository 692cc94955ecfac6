//! One at a time: who populates a schema holds a lock of the server's.

use virtbench_record::DatabaseKind;

use crate::address::{Connect, Manner};
use crate::error::{Fault, FaultKind, OltpError};
use crate::schema::Schema;
use crate::session::{Session, connected};

/// What the server knows locks of ours by, before what tells schemas apart.
const NAME: &str = "virtbench-oltp";

/// A schema's lock, on a connection of its own. The server lets go of it when the connection ends, however that does: soon, but not at once.
pub struct Exclusive {
    session: Session,
    /// The statement that gives it back.
    release: String,
}

impl Exclusive {
    /// Takes the lock.
    ///
    /// # Errors
    /// Somebody has it, or no connection.
    pub async fn take(connect: &Connect, schema: &Schema) -> Result<Self, OltpError> {
        let failed = || OltpError::server("the schema cannot be locked");
        let mut session = connected(connect, Manner::default()).await?;
        let number = number(schema);
        let (before, take, release) = match connect.address.kind {
            // That of a transaction, because a pooler may give what is a session's to others.
            DatabaseKind::PostgreSql => (
                vec!["BEGIN", "SET LOCAL idle_in_transaction_session_timeout = 0"],
                format!("SELECT CAST(pg_try_advisory_xact_lock({number}) AS int)"),
                "COMMIT".to_owned(),
            ),
            DatabaseKind::MariaDb => (
                vec!["SET SESSION wait_timeout = 31536000"],
                format!("SELECT GET_LOCK('{NAME} {number}', 0)"),
                format!("SELECT RELEASE_LOCK('{NAME} {number}')"),
            ),
        };
        for statement in before {
            session.query(statement).await.map_err(failed())?;
        }
        let taken = session.query(&take).await.map_err(failed())?;
        if taken.first().and_then(|row| row.first()).is_some_and(|taken| taken.int() == 1) {
            return Ok(Self { session, release });
        }
        Err(OltpError::Busy { address: Box::new(connect.address.clone()), schema: schema.name().to_owned() })
    }

    /// Gives it back, so that the next may have it at once. Where that fails, the connection has ended or is about to.
    pub async fn release(mut self) {
        let _ = self.session.query(&self.release).await;
    }

    /// Makes sure that it was held until now.
    ///
    /// # Errors
    /// Its connection has ended.
    pub async fn confirm(&mut self) -> Result<(), OltpError> {
        let lost = |fault: Fault| {
            let words = format!("the connection that locks the schema has ended: {fault}");
            Fault::new(FaultKind::Gone, words)
        };
        let confirmed = self.session.query("SELECT 1").await.map_err(lost);
        confirmed.map(drop).map_err(OltpError::server("others may have changed the tables meanwhile"))
    }
}

/// The schema's number among our locks (FNV-1a).
fn number(schema: &Schema) -> i64 {
    let words = format!("{NAME} {}", schema.name());
    let sum = words
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    sum.cast_signed()
}
