//! Disks by the names that Linux gives them, of which Windows has none.

use std::path::PathBuf;

use virtbench_record::DeviceFacts;

/// Refuses.
pub(crate) fn wait_for_disk(name_prefix: &str) -> Result<String, String> {
    Err(format!(
        "{name_prefix}* names disks of Linux, and this machine runs Windows: there is \\\\.\\PhysicalDriveN"
    ))
}

/// What is known of a disk of which only the name is.
pub(crate) fn device_facts(name: &str) -> DeviceFacts {
    DeviceFacts { name: name.to_owned(), ..DeviceFacts::default() }
}

/// The node of a disk.
pub(crate) fn node(name: &str) -> PathBuf {
    PathBuf::from(format!("\\\\.\\{name}"))
}
