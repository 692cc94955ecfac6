//! Whether a target is as large as it is to be.

use std::path::Path;

use super::error::TargetError;

pub(super) fn check_size(path: &Path, actual_bytes: u64, wanted_bytes: u64) -> Result<(), TargetError> {
    if actual_bytes < wanted_bytes || actual_bytes == 0 {
        return Err(TargetError::TooSmall { path: path.to_owned(), actual_bytes, wanted_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert!(check_size(Path::new("x"), 4096, 4096).is_ok());
        let error = check_size(Path::new("x"), 4096, 8192).unwrap_err().to_string();
        assert!(error.contains("4 KiB") && error.contains("--size"), "{error}");
        assert!(check_size(Path::new("x"), 0, 0).is_err());
    }
}
