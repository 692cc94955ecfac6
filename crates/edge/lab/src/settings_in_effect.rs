//! Which settings came out other than asked for, by what the guest and QEMU themselves show.

use virtbench_record::{DeviceFacts, NotHonoured};

use crate::adapters::DiskSettings;

/// VIRTIO_F_RING_PACKED (virtio 1.1, section 6).
const RING_PACKED: u8 = 34;

/// What can be seen of a disk: from inside the guest, and of QEMU.
#[derive(Debug)]
pub(crate) struct ObservedDisk<'a> {
    /// As the guest's kernel describes it.
    pub device: &'a DeviceFacts,
    /// Processors of the guest.
    pub vcpus: u32,
    /// Threads of QEMU for the I/O of disks; none where a server does it, which cannot be asked.
    pub iothreads: Option<usize>,
}

/// Every setting that was asked for and is not what was found, or cannot be seen.
pub(crate) fn not_honoured(asked: &DiskSettings, seen: &ObservedDisk<'_>) -> Vec<NotHonoured> {
    let mut list = Vec::new();
    let mut hold = |setting: &str, asked: String, found: String| {
        if asked != found {
            list.push(NotHonoured { setting: setting.to_owned(), asked, found });
        }
    };
    let unseen = || "not to be seen".to_owned();
    let device = seen.device;
    if let Some(queues) = asked.queues {
        let found = device.queues.map_or_else(unseen, |found| {
            if found < queues && found == seen.vcpus {
                format!("{found}, one for each processor of the guest")
            } else {
                found.to_string()
            }
        });
        hold("queues", queues.to_string(), found);
    }
    if let Some(depth) = asked.depth {
        // A SCSI disk has its own depth; elsewhere it is that of a queue.
        let found = device.queue_depth.or(device.queue_tags);
        hold("depth", depth.to_string(), found.map_or_else(unseen, |found| found.to_string()));
    }
    if let Some(cache) = asked.cache {
        let expected = if cache.acknowledges_early() { "write back" } else { "write through" };
        let found = device.write_cache.clone().unwrap_or_else(unseen);
        if found != expected {
            hold("cache", format!("{} ({expected} in the guest)", cache.name()), found);
        }
    }
    if let Some(packed) = asked.packed {
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let found = if device.virtio_features.is_empty() {
            unseen()
        } else {
            switch(device.virtio_features.contains(&RING_PACKED))
        };
        hold("packed", switch(packed), found);
    }
    if let (Some(true), Some(threads)) = (asked.iothread, seen.iothreads) {
        hold("iothread", "on".into(), if threads > 0 { "on" } else { "QEMU has no such thread" }.into());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(asked: &str, device: &DeviceFacts) -> Vec<String> {
        let asked = DiskSettings::parse(asked).unwrap();
        let seen = ObservedDisk { device, vcpus: 1, iothreads: Some(1) };
        let list = not_honoured(&asked, &seen);
        list.iter().map(|one| format!("{}: {} -> {}", one.setting, one.asked, one.found)).collect()
    }

    #[test]
    fn what_is_as_asked_is_not_mentioned() {
        let device = DeviceFacts {
            queues: Some(2),
            queue_tags: Some(64),
            write_cache: Some("write through".into()),
            virtio_features: vec![0, RING_PACKED],
            ..DeviceFacts::default()
        };
        let asked = "queues=2,depth=64,cache=directsync,packed=on,iothread=on,aio=threads";
        assert!(found(asked, &device).is_empty());
    }

    #[test]
    fn what_differs_or_cannot_be_seen_is_said() {
        let device = DeviceFacts { queues: Some(1), queue_depth: Some(30), ..DeviceFacts::default() };
        assert_eq!(
            found("queues=4,depth=64,cache=writeback,packed=on", &device),
            [
                "queues: 4 -> 1, one for each processor of the guest",
                "depth: 64 -> 30",
                "cache: writeback (write back in the guest) -> not to be seen",
                "packed: on -> not to be seen",
            ]
        );
    }
}
