//! A disk as the kernel describes it under `/sys`.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_host::chosen_scheduler;
use virtbench_record::DeviceFacts;

/// Buses whose drivers are those of adapters, not of disks on them.
const BUSES: [&str; 2] = ["virtio", "pci"];

/// How long a guest's disk may take to appear.
const DISK_LIMIT: Duration = Duration::from_secs(15);

/// The first disk whose name begins like this, waited for: a bus is scanned while the agent starts.
pub(crate) fn wait_for_disk(name_prefix: &str) -> Result<String, String> {
    wait_for_disk_number(name_prefix, 0)
}

/// The same of the one before which `index` disks come whose names begin like this.
pub(crate) fn wait_for_disk_number(name_prefix: &str, index: usize) -> Result<String, String> {
    let limit = Instant::now() + DISK_LIMIT;
    loop {
        let names = disk_names().map_err(|error| format!("cannot list the guest's disks: {error}"))?;
        if let Some(name) = names.iter().filter(|name| name.starts_with(name_prefix)).nth(index) {
            return Ok(name.clone());
        }
        if Instant::now() > limit {
            let which =
                if index == 0 { "no disk".to_owned() } else { format!("no disk number {}", index + 1) };
            return Err(format!(
                "{which} named {name_prefix}* appeared within {} s; there are: {}",
                DISK_LIMIT.as_secs(),
                names.join(", ")
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// What the kernel says of the disk `name`. What it does not say is `None`.
pub(crate) fn device_facts(name: &str) -> DeviceFacts {
    facts_under(Path::new("/sys/block"), name)
}

fn facts_under(block: &Path, name: &str) -> DeviceFacts {
    let disk = block.join(name);
    let text = |file: &str| read_line(&disk.join(file));
    let number = |file: &str| text(file)?.parse().ok();
    let queues = fs::read_dir(disk.join("mq")).ok().map(|entries| entries.flatten().count());
    let model: Vec<String> = ["device/vendor", "device/model"]
        .into_iter()
        .filter_map(text)
        .filter(|word| !word.is_empty())
        .collect();
    let device = fs::canonicalize(disk.join("device")).ok();
    DeviceFacts {
        name: name.to_owned(),
        driver: device.as_deref().and_then(adapter_driver),
        // A virtio device shows the number of its vendor, which says nothing.
        model: (!model.is_empty() && !model[0].starts_with("0x")).then(|| model.join(" ")),
        size_bytes: text("size").and_then(|sectors| sectors.parse::<u64>().ok()).map(|sectors| sectors * 512),
        queues: queues.and_then(|queues| u32::try_from(queues).ok()),
        queue_tags: number("mq/0/nr_tags"),
        queue_depth: number("device/queue_depth"),
        nr_requests: number("queue/nr_requests"),
        scheduler: text("queue/scheduler").map(|line| chosen_scheduler(&line)),
        write_cache: text("queue/write_cache"),
        rotational: text("queue/rotational").map(|value| value == "1"),
        logical_block_bytes: number("queue/logical_block_size"),
        physical_block_bytes: number("queue/physical_block_size"),
        max_request_kib: number("queue/max_sectors_kb"),
        virtio_features: text("device/features").map_or_else(Vec::new, |bits| set_bits(&bits)),
    }
}

/// The driver of the nearest adapter above a device: of the controller, where the device hangs on one.
fn adapter_driver(device: &Path) -> Option<String> {
    device.ancestors().find_map(|directory| {
        let driver = fs::canonicalize(directory.join("driver")).ok()?;
        let bus = driver.parent()?.parent()?.file_name()?.to_str()?;
        BUSES.contains(&bus).then(|| driver.file_name()?.to_str().map(str::to_owned))?
    })
}

/// The places of the ones in a virtio device's `features`, such as `0101`.
fn set_bits(bits: &str) -> Vec<u8> {
    (0..).zip(bits.bytes().take(256)).filter_map(|(place, bit)| (bit == b'1').then_some(place)).collect()
}

fn read_line(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

/// Names of the kernel's disks, in order.
///
/// # Errors
/// They cannot be listed.
pub(crate) fn disk_names() -> std::io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir("/sys/block")?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// The node of a disk.
pub(crate) fn node(name: &str) -> PathBuf {
    Path::new("/dev").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_the_places_of_the_ones() {
        assert_eq!(set_bits("0101"), [1, 3]);
        assert!(set_bits("").is_empty());
    }

    #[test]
    fn a_scsi_disk_is_described_with_the_driver_of_its_controller() {
        let sys = tempfile::tempdir().unwrap();
        let root = sys.path().canonicalize().unwrap();
        let device = root.join("devices/pci0/host2/2:0:0:0");
        for folder in ["bus/pci/drivers/mptsas", "bus/scsi/drivers/sd", "block/sda/queue", "block/sda/mq/0"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::create_dir_all(&device).unwrap();
        let link = |from: PathBuf, to: &str| std::os::unix::fs::symlink(root.join(to), from).unwrap();
        link(device.join("driver"), "bus/scsi/drivers/sd");
        link(root.join("devices/pci0/driver"), "bus/pci/drivers/mptsas");
        link(root.join("block/sda/device"), "devices/pci0/host2/2:0:0:0");
        for (file, text) in [
            ("size", "2048\n"),
            ("mq/0/nr_tags", "64\n"),
            ("device/queue_depth", "32\n"),
            ("device/vendor", "QEMU    \n"),
            ("device/model", "HARDDISK\n"),
            ("queue/scheduler", "[none]\n"),
            ("queue/rotational", "1\n"),
        ] {
            fs::write(root.join("block/sda").join(file), text).unwrap();
        }
        let facts = facts_under(&root.join("block"), "sda");
        assert_eq!(facts.driver.as_deref(), Some("mptsas"));
        assert_eq!(facts.model.as_deref(), Some("QEMU HARDDISK"));
        assert_eq!((facts.queues, facts.queue_tags, facts.queue_depth), (Some(1), Some(64), Some(32)));
        assert_eq!((facts.size_bytes, facts.outstanding()), (Some(1 << 20), Some(32)));
        assert_eq!((facts.rotational, facts.write_cache), (Some(true), None));
    }
}
