//! What a VM's disk begins with must not hold the disk itself.

use std::fs;
use std::path::Path;

use super::error::ApplicationsError;

/// Refuses a folder `from` that is to be copied onto a disk in the folder `target` if the copy would meet
/// the disk: the file would be copied into itself.
pub(super) fn check_disk_from(from: &Path, target: &Path) -> Result<(), ApplicationsError> {
    let canonical = |path: &Path| {
        fs::canonicalize(path).map_err(|error| {
            ApplicationsError::Input(format!("cannot use {}: {error}", path.display()).into())
        })
    };
    let (source, holder) = (canonical(from)?, canonical(target)?);
    if !source.is_dir() {
        let why = format!("--disk-from {}: it is no folder", from.display());
        return Err(ApplicationsError::Input(why.into()));
    }
    if !holder.starts_with(&source) {
        return Ok(());
    }
    let why = format!(
        "--disk-from {}: the VM's disk is made in {}, which is in it, and would be copied into itself: give \
         another --target-dir",
        from.display(),
        holder.display()
    );
    Err(ApplicationsError::Input(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_the_vm_s_disk_in_it_is_refused_by_whatever_name() {
        let place = tempfile::tempdir().unwrap();
        let (from, beside) = (place.path().join("from"), place.path().join("from-not"));
        let inside = from.join("inside");
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir(&beside).unwrap();
        let alias = place.path().join("alias");
        std::os::unix::fs::symlink(&from, &alias).unwrap();
        for (from, target) in [
            (&from, &from),
            (&from, &inside),
            (&alias, &inside),
            (&from, &alias),
            (&beside.join("../from"), &from),
        ] {
            let said = check_disk_from(from, target).unwrap_err().to_string();
            assert!(said.contains("copied into itself") && said.contains("--target-dir"), "{said}");
        }
        check_disk_from(&from, &beside).unwrap();
        check_disk_from(&inside, &from).unwrap();
        assert!(check_disk_from(&place.path().join("none"), &from).is_err());
    }
}
