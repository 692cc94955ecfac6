//! The password: where it comes from, and that nobody sees it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::VsphereError;

/// The environment variable that may hold it.
pub const PASSWORD_VARIABLE: &str = "VIRTBENCH_VSPHERE_PASSWORD";
/// Bytes that a file with a password may have.
const MOST: u64 = 4096;

/// A password. It is not printed.
#[derive(Clone)]
pub struct Password(String);

impl Password {
    /// This password.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// From the file, or else from the environment.
    ///
    /// # Errors
    /// There is none, or the file cannot be read.
    pub fn find(file: Option<&Path>) -> Result<Self, VsphereError> {
        let text = match file {
            Some(path) => read(path).map_err(VsphereError::Settings)?,
            None => std::env::var(PASSWORD_VARIABLE).map_err(|_| {
                VsphereError::Settings(format!(
                    "there is no password: give it in {PASSWORD_VARIABLE}, or in a file (?password-file=FILE in the address)"
                ))
            })?,
        };
        if text.is_empty() {
            return Err(VsphereError::Settings("the password is empty".to_owned()));
        }
        Ok(Self(text))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// The file's first line.
fn read(path: &Path) -> Result<String, String> {
    let why = |why: String| format!("cannot read the password from {}: {why}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(|error| why(error.to_string()))?;
    file.take(MOST + 1).read_to_string(&mut text).map_err(|error| why(error.to_string()))?;
    if text.len() as u64 > MOST {
        return Err(why(format!("it has more than {MOST} bytes")));
    }
    Ok(text.lines().next().unwrap_or("").to_owned())
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_files_first_line_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "hunter2\n").unwrap();
        let password = Password::find(Some(&path)).unwrap();
        assert_eq!(password.reveal(), "hunter2");
        assert!(!format!("{password:?}").contains("hunter2"));
        std::fs::write(&path, "\n").unwrap();
        assert!(Password::find(Some(&path)).unwrap_err().to_string().contains("empty"));
        let endless = Password::find(Some(Path::new("/dev/zero"))).unwrap_err().to_string();
        assert!(endless.contains("4096"), "{endless}");
        assert!(Password::find(Some(&folder.path().join("none"))).is_err());
    }
}
