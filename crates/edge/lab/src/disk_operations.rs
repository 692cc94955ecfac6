//! Operations of the disk that an appliance has its data on, counted where they leave it: by the kernel for a block device of this
//! host, by QEMU for a guest's disk.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// Reads and writes of a block device that were completed so far (Linux, Documentation/block/stat.rst).
///
/// # Errors
/// Its accounts cannot be read.
pub(crate) fn of_block_device(device: &Path) -> io::Result<u64> {
    let name = device.file_name().unwrap_or_default();
    of_device(&fs::read_to_string(Path::new("/sys/class/block").join(name).join("stat"))?)
}

fn of_device(stat: &str) -> io::Result<u64> {
    let numbers: Vec<u64> = stat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers.as_slice() {
        [reads, _, _, _, writes, ..] => Ok(reads + writes),
        _ => Err(io::Error::other("a block device's accounts have another form")),
    }
}

/// The same of a guest's disk, the block node `node`, out of what QEMU answers to `query-blockstats`.
///
/// # Errors
/// There is no such disk in it.
pub(crate) fn of_guest(answer: &Value, node: &str) -> io::Result<u64> {
    let disks = answer.as_array().map_or(&[][..], Vec::as_slice);
    let disk = disks.iter().find(|disk| disk["node-name"] == node);
    let count = |name: &str| disk?["stats"][name].as_u64();
    let both = count("rd_operations").zip(count("wr_operations"));
    both.map(|(reads, writes)| reads + writes)
        .ok_or_else(|| io::Error::other(format!("QEMU does not count operations of {node}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_are_read_from_what_the_kernel_and_qemu_write() {
        let recorded = "    4711        3   100000      900     1289      200    50000      800        0     1200     1700        0        0        0        0       10        5\n";
        assert_eq!(of_device(recorded).unwrap(), 6000);
        assert!(of_device("").is_err());
        let recorded = json!([
            { "device": "", "node-name": "disk0", "stats": { "rd_operations": 900, "wr_operations": 0 } },
            { "device": "", "node-name": "disk1", "stats": { "rd_operations": 30, "wr_operations": 12 } },
        ]);
        assert_eq!(of_guest(&recorded, "disk1").unwrap(), 42);
        assert!(of_guest(&recorded, "disk2").unwrap_err().to_string().contains("disk2"));
    }
}
