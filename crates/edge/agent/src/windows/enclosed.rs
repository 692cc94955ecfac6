//! The agent of an appliance, which runs on Linux machines only.

use std::io::{self, Read, Write};
use std::path::Path;

use crate::protocol::ProtocolError;

/// There is none.
pub(crate) struct Enclosure;

/// Refuses.
///
/// # Errors
/// Always.
pub(crate) fn serve(
    _folder: &Path,
    _reader: impl Read,
    _writer: impl Write,
    _keep: impl FnOnce(Enclosure),
) -> Result<(), ProtocolError> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "appliances run on Linux machines, and this one runs Windows",
    )
    .into())
}
