//! Where an appliance runs in a comparison.

use serde::{Deserialize, Serialize};

/// One side: the same appliance, natively or in a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplianceSide {
    /// Its name, such as `native` or `vm-2`.
    pub name: String,
    /// Whether it is a VM.
    pub vm: bool,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

impl ApplianceSide {
    /// Both sides, or those asked for, of each size: `vms` says which are VMs. Where sizes are compared, names tell the processors.
    #[must_use]
    pub fn of_sizes(vms: &[bool], sizes: &[u32], memory_bytes: u64) -> Vec<Self> {
        let side = |vm: bool, vcpus: u32| {
            let kind = if vm { "vm" } else { "native" };
            let name = if sizes.len() > 1 { format!("{kind}-{vcpus}") } else { kind.to_owned() };
            Self { name, vm, vcpus, memory_bytes }
        };
        sizes.iter().flat_map(|vcpus| vms.iter().map(move |vm| side(*vm, *vcpus))).collect()
    }
}
