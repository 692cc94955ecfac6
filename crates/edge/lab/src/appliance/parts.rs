//! What is known of an appliance outside this folder: its parts to a machine of the user's that is to run it, its guest to a record.

use std::path::Path;

use virtbench_record::{AcceleratorFacts, ApplianceFacts, GuestFacts};

use crate::adapters::DEFAULT_ADAPTER;

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

/// What is known of a guest that runs an appliance: what executes it, by which software, and the release of its kernel.
#[must_use]
pub fn appliance_guest_facts(
    appliance: &ApplianceFacts,
    accelerator: AcceleratorFacts,
    qemu: String,
    kernel: String,
) -> GuestFacts {
    GuestFacts {
        accelerator,
        qemu,
        kernel,
        vcpus: appliance.vcpus,
        memory_bytes: appliance.memory_bytes,
        adapter: DEFAULT_ADAPTER.name.to_owned(),
        command_line: appliance.command_line.clone(),
        boot_ns: appliance.boot_ns,
        crossing: appliance.crossing,
    }
}
