//! Why a disk is not resized.

use thiserror::Error;

use crate::label::LabelError;
use crate::serve_error::ServeError;

/// Why a disk is not resized.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ResizeError {
    /// Devices or configuration cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No disk of that name.
    #[error("there is no disk {0}: see the [[disk]] tables of the configuration")]
    NoDisk(String),
    /// The new values do not fit with the rest.
    #[error("{0}")]
    Value(String),
    /// It would become smaller.
    #[error("disk {disk} has {was} bytes, fewer would give up its end: --force does so")]
    Shrinks {
        disk: String,
        /// Its size.
        was: u64,
    },
    /// It fits nowhere.
    #[error("{device}: disk {disk} needs {needs} bytes in one piece; the largest free one has {largest}")]
    NoRoom {
        /// The device that disks live on.
        device: String,
        disk: String,
        /// With the rest to a whole MiB.
        needs: u64,
        /// Free.
        largest: u64,
    },
    /// A cache that cannot be believed is not changed.
    #[error("{device}: {fault}: see `virtbench fence inspect --data`")]
    Damaged {
        /// The fast device.
        device: String,
        /// What is wrong.
        fault: String,
    },
    /// The cache has blocks of disks that are not on the device.
    #[error(
        "{device}: the cache is of other disks, and has what they have not: bring the device that they are on; a forced \
         `virtbench fence drain` gives all of it up"
    )]
    OfOtherDisks {
        /// The fast device.
        device: String,
    },
    /// Not while guests use it.
    #[error("{0}: stop the daemon and give the same command again")]
    Served(String),
    /// Not as things stand.
    #[error("{0}: nothing has changed")]
    NotNow(String),
    /// The caller has had enough; the same again goes on.
    #[error("interrupted: the same command again completes it")]
    Interrupted,
}

impl From<LabelError> for ResizeError {
    fn from(error: LabelError) -> Self {
        Self::Serve(error.into())
    }
}

pub(super) fn io(device: &str, action: &'static str, source: std::io::Error) -> LabelError {
    LabelError::Io { device: device.to_owned(), action, source }
}
