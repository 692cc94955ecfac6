//! What is known of a guest that runs an appliance.

use virtbench_record::{AcceleratorFacts, ApplianceFacts, GuestFacts};

use crate::adapters::DEFAULT_ADAPTER;

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
