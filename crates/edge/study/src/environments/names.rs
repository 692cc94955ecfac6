//! Names of environments, from `virtbench.toml`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::homes::split_machines;
use super::uri::{NamedEnvironment, UriError};
use crate::user_files::user_folder;

/// The file's name, in the current folder or in the user's configuration.
const FILE: &str = "virtbench.toml";
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A file of names that cannot be used.
#[derive(Debug, Error)]
pub enum NamesError {
    /// It cannot be read.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not TOML with a table of environments.
    #[error("{path}: {source}", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        source: Box<toml::de::Error>,
    },
    /// It names something that is no environment.
    #[error(transparent)]
    Uri(#[from] UriError),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesFile {
    #[serde(default)]
    environments: BTreeMap<String, String>,
}

/// Environments that have names.
#[derive(Debug, Default)]
pub struct EnvironmentNames(BTreeMap<String, String>);

impl EnvironmentNames {
    /// Those of the first `virtbench.toml` in `folder` or in `configuration`, the user's folder of configurations; none
    /// where there is no such file:
    ///
    /// ```toml
    /// [environments]
    /// metal = "ssh://root@metal/srv"
    /// vm = "qemu:?disk=nvme,queues=2&vcpus=2"
    /// ```
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn find(folder: &Path, configuration: Option<&Path>) -> Result<Self, NamesError> {
        let of_user = configuration.map(|folder| folder.join("virtbench").join(FILE));
        for path in [Some(folder.join(FILE)), of_user].into_iter().flatten() {
            match read(&path) {
                Ok(text) => {
                    let file: NamesFile = toml::from_str(&text)
                        .map_err(|source| NamesError::Syntax { path, source: Box::new(source) })?;
                    return Ok(Self(file.environments));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(NamesError::File { path, source }),
            }
        }
        Ok(Self::default())
    }

    /// What `text` means: a name of these, or an environment itself.
    ///
    /// # Errors
    /// It is neither, or the name stands for something that is no environment.
    pub fn resolve(&self, text: &str) -> Result<NamedEnvironment, NamesError> {
        Ok(match self.0.get(text) {
            Some(uri) => NamedEnvironment::new(text, uri)?,
            None => NamedEnvironment::parse(text)?,
        })
    }
}

/// The environments that are written so: as they are, or by the names of the `virtbench.toml` that holds here.
///
/// # Errors
/// One is none, or the file of names cannot be read.
pub fn find_environments(texts: &[String]) -> Result<Vec<NamedEnvironment>, NamesError> {
    let configuration = user_folder("XDG_CONFIG_HOME", ".config");
    let names = EnvironmentNames::find(Path::new("."), configuration.as_deref())?;
    texts.iter().map(|text| names.resolve(text)).collect()
}

/// The environments that machines live in, each as often as it takes machines in a row (`*N`).
///
/// # Errors
/// As [`find_environments`].
pub fn find_homes(texts: &[String]) -> Result<Vec<NamedEnvironment>, NamesError> {
    let parted: Vec<(&str, usize)> =
        texts.iter().map(|text| split_machines(text)).collect::<Result<_, _>>()?;
    let environments =
        find_environments(&parted.iter().map(|(text, _)| (*text).to_owned()).collect::<Vec<_>>())?;
    let each = environments.into_iter().zip(&parted);
    Ok(each.flat_map(|(environment, (_, machines))| vec![environment; *machines]).collect())
}

fn read(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_are_found_in_the_folder_first() {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let find = || EnvironmentNames::find(folder.path(), Some(home.path()));
        assert!(find().unwrap().resolve("metal").is_err());
        fs::create_dir(home.path().join("virtbench")).unwrap();
        fs::write(home.path().join("virtbench/virtbench.toml"), "[environments]\nmetal = 'ssh://metal/home'")
            .unwrap();
        assert_eq!(find().unwrap().resolve("metal").unwrap().uri.to_string(), "ssh://metal/home");
        fs::write(folder.path().join(FILE), "[environments]\nmetal = 'ssh://metal/folder'").unwrap();
        let metal = find().unwrap().resolve("metal").unwrap();
        assert_eq!((metal.name.as_str(), metal.uri.to_string().as_str()), ("metal", "ssh://metal/folder"));
        assert_eq!(find().unwrap().resolve("native:").unwrap().name, "native");
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "[environments]\nmetal = 3\n").unwrap();
        let error = EnvironmentNames::find(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("virtbench.toml") && error.contains("line 2"), "{error}");
    }
}
