//! From the configuration to the front end.

use thiserror::Error;
use virtbench_fence::DiskId;
use virtbench_nbd::server::{Limits, ServerConfig, Tls};

use super::export::export;
use super::{Listener, NbdDisk, NbdFrontEnd, NbdListenError, NbdParts, TlsError, TlsServer};
use crate::config::Config;

/// Why NBD cannot be served.
#[derive(Debug, Error)]
pub enum NbdSetupError {
    /// The server cannot listen.
    #[error("nbd.listen: {0}")]
    Listen(#[from] NbdListenError),
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Reads certificates and begins to listen, if the configuration has NBD. Disks are numbered as they stand in it;
/// requests must be multiples of `block_bytes`, a power of two up to 65536.
///
/// # Errors
/// A certificate is unusable, or an address is taken.
pub fn from_config(config: &Config, block_bytes: u32) -> Result<Option<NbdFrontEnd>, NbdSetupError> {
    let Some(nbd) = &config.nbd else { return Ok(None) };
    let disks = (0u16..).zip(&config.disks).filter_map(|(number, disk)| {
        let export = export(disk.export.as_ref()?, disk.size.0, disk.read_only, block_bytes);
        Some(NbdDisk { disk: DiskId(number), export })
    });
    let tls = nbd.tls.as_ref().map(|tls| TlsServer::load(&tls.files())).transpose()?;
    let wanted = match &nbd.tls {
        None => Tls::Off,
        Some(tls) if tls.required => Tls::Required,
        Some(_) => Tls::Offered,
    };
    let listeners: Result<Vec<Listener>, NbdListenError> = nbd.listen.iter().map(Listener::open).collect();
    let defaults = Limits::default();
    let limits = Limits {
        max_requests: nbd.requests,
        // One request of the longest kind is always possible.
        max_bytes: defaults.max_payload_bytes.into(),
        negotiation_ns: nbd.negotiation_s.saturating_mul(1_000_000_000),
        stall_ns: nbd.stall_s.saturating_mul(1_000_000_000),
        ..defaults
    };
    Ok(Some(NbdFrontEnd::new(NbdParts {
        disks: disks.collect(),
        listeners: listeners?,
        server: ServerConfig { limits, tls: wanted },
        tls,
        max_connections: nbd.connections,
        max_memory_bytes: nbd.memory.0,
    })))
}

/// What is served where, a line each.
pub fn served(config: &Config) -> impl Iterator<Item = String> {
    let exports = config.disks.iter().filter_map(|disk| Some((&disk.name, disk.export.as_ref()?)));
    let listen: Vec<String> =
        config.nbd.iter().flat_map(|nbd| &nbd.listen).map(ToString::to_string).collect();
    let listen = listen.join(" and ");
    exports.map(move |(name, export)| format!("disk {name}: NBD export {export} at {listen}"))
}
