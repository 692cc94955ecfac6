//! A password or a token's secret: where it comes from, and that nobody sees it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::trust::HttpsError;

/// Bytes that a file with a secret may have.
const MOST: usize = 4096;

/// A password, or the secret of a token. It is not printed.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// What a caller has read by itself.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// From the first line of the file, or else from this variable of the environment.
    ///
    /// # Errors
    /// There is none, or the file cannot be read.
    pub fn find(file: Option<&Path>, variable: &str) -> Result<Self, HttpsError> {
        let text = match file {
            Some(path) => read(path).map_err(HttpsError::Settings)?,
            None => std::env::var(variable).map_err(|_| {
                HttpsError::Settings(format!(
                    "there is no password: give it in {variable}, or in a file (?password-file=FILE in the address)"
                ))
            })?,
        };
        if text.is_empty() {
            return Err(HttpsError::Settings("the password is empty".to_owned()));
        }
        Ok(Self(text))
    }

    /// What it is, for a request.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

fn read(path: &Path) -> Result<String, String> {
    let why = |why: String| format!("cannot read the password from {}: {why}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(|error| why(error.to_string()))?;
    file.take(MOST as u64 + 1).read_to_string(&mut text).map_err(|error| why(error.to_string()))?;
    if text.len() > MOST {
        return Err(why(format!("it has more than {MOST} bytes")));
    }
    Ok(text.lines().next().unwrap_or("").to_owned())
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(...)")
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
        let find = |path: &Path| Secret::find(Some(path), "NOT_SET");
        let password = find(&path).unwrap();
        assert_eq!(password.reveal(), "hunter2");
        assert!(!format!("{password:?}").contains("hunter2"));
        std::fs::write(&path, "\n").unwrap();
        assert!(find(&path).unwrap_err().to_string().contains("empty"));
        let endless = find(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(endless.contains("4096"), "{endless}");
        assert!(find(&folder.path().join("none")).is_err());
        assert!(
            Secret::find(None, "VIRTBENCH_NOT_SET").unwrap_err().to_string().contains("VIRTBENCH_NOT_SET")
        );
    }
}
