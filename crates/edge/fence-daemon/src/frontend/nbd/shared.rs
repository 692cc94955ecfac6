//! What all clients share.

use virtbench_fence::DiskId;
use virtbench_nbd::server::{Export, ServerConfig};

use super::budget::Budget;
use super::departed::Departed;
use super::tls::TlsServer;

/// What all clients share.
pub(super) struct Shared {
    pub(super) exports: Vec<Export>,
    pub(super) disks: Vec<DiskId>,
    pub(super) server: ServerConfig,
    pub(super) tls: Option<TlsServer>,
    pub(super) memory: Budget,
    pub(super) departed: Departed,
    pub(super) staging: Box<[u8]>,
}
