//! A server, what it said of its disk, and the device while a load runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use blkio::Blkio;
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::device::{bounded, connect};
use super::{Device, VhostUserError};
use crate::buffers::Shared;

/// Descriptors of an operation: header, data, status.
const DESCRIPTORS: u32 = 3;
/// The largest ring that QEMU's and most other servers take, in descriptors.
const MAX_QUEUE_SIZE: u32 = 1024;
/// The smallest that is worth it.
const MIN_QUEUE_SIZE: u32 = 64;

/// What a server said of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskFacts {
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// Requests must be multiples of this, in bytes.
    pub alignment_bytes: u32,
    /// The longest request; 0 where there is no limit, in bytes.
    max_segment_bytes: u64,
    max_queues: u32,
    max_regions: u64,
    /// The longest trim; 0 where there are none, in bytes.
    max_trim_bytes: u64,
}

/// A vhost-user-blk server.
pub(crate) struct VhostUserSource {
    socket: PathBuf,
    read_only: bool,
    facts: DiskFacts,
    /// Connected when the target was opened, for the first load.
    idle: Mutex<Option<Blkio>>,
    /// The device of the load that runs, shared by its workers.
    device: Mutex<Weak<Device>>,
}

impl DiskFacts {
    /// The longest request, in bytes.
    pub(crate) fn max_request_bytes(&self) -> u64 {
        if self.max_segment_bytes == 0 { u64::MAX } else { self.max_segment_bytes }
    }
}

impl fmt::Debug for VhostUserSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VhostUserSource").field("socket", &self.socket).field("facts", &self.facts).finish()
    }
}

impl VhostUserSource {
    /// Connects for the first time.
    pub(crate) fn open(socket: &Path, read_only: bool) -> Result<Self, VhostUserError> {
        let blkio = connect(socket, read_only)?;
        let (blkio, facts) = bounded(socket, "read the configuration", move || {
            let number = |name| blkio.get_i32(name).map(|value| u32::try_from(value).unwrap_or(0));
            let facts = DiskFacts {
                size_bytes: blkio.get_u64("capacity")?,
                alignment_bytes: number("request-alignment")?,
                max_segment_bytes: number("max-segment-len")?.into(),
                max_queues: number("max-queues")?,
                max_regions: blkio.get_u64("max-mem-regions")?,
                max_trim_bytes: blkio.get_u64("max-discard-len")?,
            };
            Ok((blkio, facts))
        })?;
        if !facts.alignment_bytes.is_power_of_two() || !(512..=65536).contains(&facts.alignment_bytes) {
            return Err(VhostUserError::Nonsense {
                socket: socket.to_owned(),
                action: "read the block size",
            });
        }
        Ok(Self {
            socket: socket.to_owned(),
            read_only,
            facts,
            idle: Mutex::new(Some(blkio)),
            device: Mutex::default(),
        })
    }

    /// What the server said of its disk.
    pub(crate) fn facts(&self) -> &DiskFacts {
        &self.facts
    }

    /// Checks what the load asks against what the server offers.
    pub(crate) fn check_fit(&self, spec: &LoadSpec) -> Result<(), String> {
        let DiskFacts { max_segment_bytes, max_queues, max_regions, max_trim_bytes, .. } = self.facts;
        let block_bytes = spec.access.largest_block_bytes();
        if max_segment_bytes > 0 && block_bytes > max_segment_bytes {
            return Err(format!(
                "--bs {block_bytes}: the vhost-user server takes segments of {} at most",
                format_bytes(max_segment_bytes)
            ));
        }
        if spec.workers > max_queues {
            return Err(format!(
                "--workers {}: each needs a queue of its own and the vhost-user server has {max_queues}: lower it, \
                 or raise the server's num-queues",
                spec.workers
            ));
        }
        // One region holds the rings.
        if u64::from(spec.workers) >= max_regions {
            return Err(format!(
                "--workers {}: each shares its buffers and the vhost-user server takes {max_regions} memory \
                 regions, one of them for the rings: lower it",
                spec.workers
            ));
        }
        let trim = spec.access.lines.iter().filter(|line| line.trim_percent > 0.0);
        match trim.map(|line| line.size_bytes).max() {
            Some(_) if max_trim_bytes == 0 => {
                Err("--trim: the vhost-user server offers no trims; leave it out".into())
            }
            Some(trim_bytes) if trim_bytes > max_trim_bytes => Err(format!(
                "--bs {trim_bytes}: the vhost-user server takes trims of {} at most",
                format_bytes(max_trim_bytes)
            )),
            _ => Ok(()),
        }
    }

    /// The device for a load of so many workers with so many operations each: started by the first that asks.
    pub(crate) fn device(&self, workers: u32, slots: u32) -> Result<Arc<Device>, VhostUserError> {
        let mut running = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = running.upgrade() {
            return Ok(device);
        }
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let blkio = idle.map_or_else(|| connect(&self.socket, self.read_only), Ok)?;
        let queues = i32::try_from(workers).unwrap_or(i32::MAX);
        let queue_size = i32::try_from(queue_size(slots)).unwrap_or(i32::MAX);
        let device = Arc::new(Device::start(&self.socket, blkio, queues, queue_size)?);
        *running = Arc::downgrade(&device);
        Ok(device)
    }

    /// Lets the server see a worker's buffers.
    pub(crate) fn share(&self, device: &Arc<Device>, shared: &Shared<'_>) -> Result<(), VhostUserError> {
        device.share(&self.socket, shared)
    }
}

/// Descriptors for so many operations at once, as far as servers go.
fn queue_size(outstanding: u32) -> u32 {
    (outstanding * DESCRIPTORS).next_power_of_two().clamp(MIN_QUEUE_SIZE, MAX_QUEUE_SIZE)
}

/// A note where not all operations fit the ring at once.
pub(crate) fn ring_note(outstanding: u32) -> Option<String> {
    let fits = queue_size(outstanding) / DESCRIPTORS;
    (outstanding > fits).then(|| {
        format!("the vhost-user ring holds {fits} operations: of {outstanding} outstanding the others wait on this side")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_hold_what_is_outstanding_as_far_as_servers_go() {
        assert_eq!([1, 21, 22, 32, 341, 4096].map(queue_size), [64, 64, 128, 128, 1024, 1024]);
        assert_eq!(ring_note(341), None);
        assert!(ring_note(342).is_some_and(|note| note.contains("341")));
    }
}
