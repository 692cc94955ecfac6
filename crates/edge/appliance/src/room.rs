//! Whether there is room for what is to be made.

use std::path::Path;

use virtbench_lab::free_bytes;

use crate::error::ApplianceError;

/// Checks that so many bytes can be written in `folder`, which is there.
pub(crate) fn require_room(folder: &Path, what: &str, needed: u64) -> Result<(), ApplianceError> {
    let free = free_bytes(folder).map_err(ApplianceError::file("look at", folder))?;
    if free < needed {
        return Err(ApplianceError::NoRoom { what: what.into(), folder: folder.to_owned(), needed, free });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_room_names_folder_and_bytes() {
        let folder = tempfile::tempdir().unwrap();
        require_room(folder.path(), "it", 1).unwrap();
        let error = require_room(folder.path(), "the root of redis", u64::MAX).unwrap_err().to_string();
        assert!(error.contains(&folder.path().display().to_string()), "{error}");
        assert!(
            error.contains("the root of redis needs 16 EiB") || error.contains("18446744073709551615"),
            "{error}"
        );
    }
}
