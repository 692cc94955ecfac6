//! An export that a load is applied to, and the connections to it.

use std::sync::{Mutex, PoisonError};

use virtbench_nbd::client::{ClientError, Export};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::{Connection, NbdAddress, NbdError};

/// An export. Connections are kept between loads: a server that serves one client and then ends, as
/// qemu-nbd does, must not lose its only one between opening the target and loading it.
#[derive(Debug)]
pub(crate) struct NbdSource {
    address: NbdAddress,
    export: Export,
    idle: Mutex<Vec<Connection>>,
}

impl NbdSource {
    /// Connects for the first time.
    pub(crate) fn open(address: NbdAddress) -> Result<Self, NbdError> {
        let connection = Connection::open(&address)?;
        Ok(Self { address, export: connection.export, idle: Mutex::new(vec![connection]) })
    }

    /// What the server said about the export.
    pub(crate) fn export(&self) -> &Export {
        &self.export
    }

    /// A connection of one's own: an idle one, or a new one.
    pub(crate) fn connect(&self) -> Result<Connection, NbdError> {
        let idle = std::iter::from_fn(|| self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop())
            .find(Connection::is_quiet);
        let connection = idle.map_or_else(|| Connection::open(&self.address), Ok)?;
        if connection.export != self.export {
            return Err(ClientError::Protocol(
                "the export is no longer what it was when the target was opened".into(),
            )
            .into());
        }
        Ok(connection)
    }

    /// Takes back a connection on which nothing is in flight.
    pub(crate) fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Checks what the load asks against what the server offers.
    pub(crate) fn check_fit(&self, spec: &LoadSpec) -> Result<(), String> {
        let block_bytes = spec.access.largest_block_bytes();
        if block_bytes > self.export.max_payload_bytes.into() {
            return Err(format!(
                "--bs {block_bytes}: the NBD server takes requests of {} at most",
                format_bytes(self.export.max_payload_bytes.into())
            ));
        }
        if spec.workers > 1 && spec.access.writes() && !self.export.can_multi_conn() {
            return Err(format!(
                "--workers {}: the NBD server does not promise that several connections see one another's \
                 writes (no multi-conn): use --workers 1 with a higher --outstanding",
                spec.workers
            ));
        }
        if spec.flushes() && !self.export.can_flush() {
            return Err("--flush-every: the NBD server offers no flushes; leave it out".into());
        }
        if spec.access.lines.iter().any(|line| line.trim_percent > 0.0) && !self.export.can_trim() {
            return Err("--trim: the NBD server offers no trims; leave it out".into());
        }
        Ok(())
    }
}
