//! Why nothing is served.

use std::io;

use thiserror::Error;
use virtbench_fence::ConfigError;
use virtbench_fence::cache::RecoveryError;

use crate::attach_error::AttachError;
use crate::config::LoadError;
use crate::device::DeviceError;
use crate::frontend::listen::ListenError;
use crate::frontend::nbd::NbdSetupError;
use crate::label::LabelError;
use crate::memory_log::MemoryLogError;

/// Why nothing is served.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its parts do not fit together.
    #[error("the configuration does not fit: {0}")]
    Config(#[from] ConfigError),
    /// A device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device is another one, or divided in another way.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The cache is not the one that has the newest data, or is left out.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The cache is another one, or holds what would be lost.
    #[error("{device}: {source}")]
    Cache {
        /// The fast device.
        device: String,
        source: RecoveryError,
    },
    /// What was answered and not flushed has no place.
    #[error(transparent)]
    MemoryLog(#[from] MemoryLogError),
    /// A socket cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// NBD cannot be served.
    #[error(transparent)]
    Nbd(#[from] NbdSetupError),
    /// The system refuses.
    #[error("{action}: {source}")]
    System {
        /// What failed.
        action: &'static str,
        source: io::Error,
    },
}

impl ServeError {
    /// Whether a device does not have what was written to it.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Cache { source: RecoveryError::Damaged { .. }, .. })
    }
}

pub(crate) const fn system(action: &'static str, source: io::Error) -> ServeError {
    ServeError::System { action, source }
}
