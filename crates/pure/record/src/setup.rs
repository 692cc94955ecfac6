//! A configuration of a guest's disk: what was asked for, and what the guest found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a configuration's blocks are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackingFacts {
    /// Its name with its settings, such as `raw` or `qcow2,cluster=64k`.
    pub name: String,
    /// What it is and how it was made, in words.
    pub description: String,
    /// How its blocks were allocated before anything was measured, in words.
    pub preparation: String,
    /// Bytes it took on the host's storage after that.
    pub allocated_bytes: u64,
}

/// A disk as the guest's own kernel describes it. What it does not say is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Its name, such as `vda` or `nvme0n1`.
    pub name: String,
    /// Driver of the device or of the controller it hangs on, such as `virtio_blk` or `mptsas`.
    pub driver: Option<String>,
    /// Vendor and model it reports.
    pub model: Option<String>,
    /// Its size, in bytes.
    pub size_bytes: Option<u64>,
    /// Hardware queues the block layer uses.
    pub queues: Option<u32>,
    /// Requests each hardware queue takes at once.
    pub queue_tags: Option<u32>,
    /// Requests the device itself takes at once (SCSI and ATA `queue_depth`).
    pub queue_depth: Option<u32>,
    /// Requests the block layer keeps for a queue, its scheduler included.
    pub nr_requests: Option<u32>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// Logical block size, in bytes.
    pub logical_block_bytes: Option<u32>,
    /// Physical block size, in bytes.
    pub physical_block_bytes: Option<u32>,
    /// Largest request the block layer sends, in KiB.
    pub max_request_kib: Option<u32>,
    /// Features a virtio device and its driver agreed upon, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtio_features: Vec<u8>,
}

impl DeviceFacts {
    /// Requests that can be in flight at once in the device, all queues together, as far as is known.
    #[must_use]
    pub fn outstanding(&self) -> Option<u32> {
        let of_queues = self.queue_tags.map(|tags| tags.saturating_mul(self.queues.unwrap_or(1)));
        match (of_queues, self.queue_depth) {
            (Some(tags), Some(depth)) => Some(tags.min(depth)),
            (tags, depth) => tags.or(depth),
        }
    }
}

/// A setting that came out other than it was asked for, or that could not be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotHonoured {
    /// Its name, such as `queues`.
    pub setting: String,
    /// What was asked for.
    pub asked: String,
    /// What was found.
    pub found: String,
}

/// One configuration of a study: an adapter with its settings, over a backing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetupFacts {
    /// Its name, unique in the run: `environment` of its points. Such as `nvme`,
    /// `virtio-blk,cache=writeback` or `virtio-blk@qcow2`.
    pub name: String,
    /// The adapter.
    pub adapter: String,
    /// What the adapter is, in words.
    pub summary: String,
    /// Settings that were asked for, by name.
    pub settings: BTreeMap<String, String>,
    /// Where its blocks are kept.
    pub backing: BackingFacts,
    /// QEMU's whole command line; empty until the guest has booted.
    pub command_line: Vec<String>,
    /// Command line of the server between QEMU and the blocks; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_command_line: Vec<String>,
    /// From QEMU's start to the agent's greeting, in nanoseconds; 0 until the guest has booted.
    pub boot_ns: u64,
    /// The disk as the guest found it, once it has booted.
    pub found: Option<DeviceFacts>,
    /// Settings that were not honoured, or could not be seen to be.
    pub not_honoured: Vec<NotHonoured>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_takes_at_once_is_the_smaller_of_what_is_known() {
        let device = |queues, queue_tags, queue_depth| {
            DeviceFacts { queues, queue_tags, queue_depth, ..DeviceFacts::default() }.outstanding()
        };
        assert_eq!(device(Some(2), Some(256), None), Some(512));
        assert_eq!(device(Some(1), Some(255), Some(32)), Some(32));
        assert_eq!(device(None, None, Some(1)), Some(1));
        assert_eq!(device(Some(4), None, None), None);
    }
}
