//! What a machine of the user's gets to know of an appliance that is to run on it.

use std::path::Path;

/// What a machine of the user's gets to know of an appliance that is to run on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplianceParts<'a> {
    /// For the log.
    pub(crate) name: &'a str,
    /// Files that were sent to it: the root, and the data, of which the appliance gets a copy.
    pub(crate) root: &'a Path,
    pub(crate) data: Option<&'a Path>,
    pub(crate) vcpus: u32,
    /// Memory, in bytes.
    pub(crate) memory_bytes: u64,
    /// Whether its root has an init of its own.
    pub(crate) has_init: bool,
}
