//! What KVM counts of a guest, such as its exits by reason: files of the kernel's debug file system.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Where KVM has a folder for each guest, `PROCESS-DESCRIPTOR`.
pub const KVM_FOLDER: &str = "/sys/kernel/debug/kvm";

/// Everything that KVM counts of the guest of this process, by its name there.
///
/// # Errors
/// There is no such guest in `folder`, or it cannot be read; it needs root, debugfs and a guest under KVM.
pub fn kvm_counts(folder: &Path, process: u32) -> io::Result<BTreeMap<String, u64>> {
    let begin = format!("{process}-");
    let of_guest = fs::read_dir(folder)?
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with(&begin))
        .ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("KVM has no guest of process {process}"))
        })?;
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(of_guest.path())?.flatten() {
        let text = fs::read_to_string(entry.path());
        if let Some(count) = text.ok().and_then(|text| text.trim().parse().ok()) {
            counts.insert(entry.file_name().to_string_lossy().into_owned(), count);
        }
    }
    Ok(counts)
}

/// What was counted from one moment to another, for each of so many transactions; without what stood still.
#[must_use]
pub fn per_transaction(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
    transactions: u64,
) -> BTreeMap<String, f64> {
    let grown = after.iter().filter_map(|(name, after)| {
        let grown = after.saturating_sub(*before.get(name)?);
        (grown > 0 && transactions > 0).then(|| (name.clone(), grown as f64 / transactions as f64))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_of_a_process_is_found_among_others() {
        let folder = std::env::temp_dir().join(format!("virtbench-kvm-{}", std::process::id()));
        for (guest, exits) in [("7-11", 1), ("77-12", 5000)] {
            fs::create_dir_all(folder.join(guest).join("vcpu0")).unwrap();
            fs::write(folder.join(guest).join("exits"), format!("{exits}\n")).unwrap();
            fs::write(folder.join(guest).join("io_exits"), "40\n").unwrap();
        }
        let counts = kvm_counts(&folder, 77);
        let missing = kvm_counts(&folder, 8);
        fs::remove_dir_all(&folder).unwrap();
        let before = counts.unwrap();
        assert_eq!(before, BTreeMap::from([("exits".into(), 5000), ("io_exits".into(), 40)]));
        assert!(missing.unwrap_err().to_string().contains("no guest of process 8"));
        let after = BTreeMap::from([("exits".into(), 5600), ("io_exits".into(), 40)]);
        assert_eq!(per_transaction(&before, &after, 100), BTreeMap::from([("exits".into(), 6.0)]));
        assert_eq!(per_transaction(&before, &after, 0), BTreeMap::new());
    }
}
