//! Names of environments, from `virtbench.toml`, and which machine of a set lives in which of them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use virtbench_record::Home;

use super::uri::{EnvironmentUri, NamedEnvironment, UriError};
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

/// The most machines that one environment is named for.
const MAX_MACHINES: usize = 64;

/// Parts `ENVIRONMENT*N` into the environment and how many machines in a row live in it: one where it does not say.
///
/// # Errors
/// It is no such number.
pub fn split_machines(text: &str) -> Result<(&str, usize), UriError> {
    let Some((environment, number)) = text.rsplit_once('*') else { return Ok((text, 1)) };
    // An asterisk may stand in a path.
    if number.is_empty() || !number.chars().all(|digit| digit.is_ascii_digit()) {
        return Ok((text, 1));
    }
    let machines = number.parse().ok().filter(|machines| (1..=MAX_MACHINES).contains(machines));
    machines.map(|machines| (environment, machines)).ok_or_else(|| UriError::Machines(text.to_owned()))
}

/// Where each of these machines lives: `places` in order, round and round.
///
/// # Errors
/// There are more places than machines, or two environments have one name.
pub(crate) fn homes(vms: &[String], places: &[NamedEnvironment]) -> Result<Vec<Home>, UriError> {
    for (index, place) in places.iter().enumerate() {
        if places[..index].iter().any(|other| other.name == place.name && other.uri != place.uri) {
            return Err(UriError::Twice(place.name.clone()));
        }
    }
    if !places.is_empty() && places.len() > vms.len() {
        return Err(UriError::Room { places: places.len(), machines: vms.len() });
    }
    let each = vms.iter().zip(places.iter().cycle());
    let home = |(vm, place): (&String, &NamedEnvironment)| Home {
        vm: vm.clone(),
        environment: place.name.clone(),
        uri: place.uri.to_string(),
    };
    Ok(each.map(home).collect())
}

/// The machines themselves, each an environment of its own name: agents that share a folder have one each in it.
pub(crate) fn housed(vms: &[String], places: &[NamedEnvironment]) -> Vec<NamedEnvironment> {
    let each = vms.iter().zip(places.iter().cycle());
    let machine = |(vm, place): (&String, &NamedEnvironment)| NamedEnvironment {
        name: vm.clone(),
        uri: match &place.uri {
            EnvironmentUri::Ssh(address) => EnvironmentUri::Ssh(address.clone().with_agent_name(vm)),
            other => other.clone(),
        },
    };
    each.map(machine).collect()
}

/// In words: `vm1 and vm3 in metal, vm2 in vm`.
pub(crate) fn in_words(homes: &[Home]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for home in homes {
        if !names.contains(&home.environment.as_str()) {
            names.push(&home.environment);
        }
    }
    let of_one = |name: &&str| {
        let vms = homes.iter().filter(|home| home.environment == **name).map(|home| home.vm.as_str());
        let (uri, vms) = (homes.iter().find(|home| home.environment == **name), vms.collect::<Vec<_>>());
        format!("{} in {name} ({})", vms.join(", "), uri.map_or("", |home| &home.uri))
    };
    names.iter().map(of_one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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

    fn places(texts: &[&str]) -> Vec<NamedEnvironment> {
        let place = |text: &&str| {
            let (environment, machines) = split_machines(text).unwrap();
            vec![NamedEnvironment::parse(environment).unwrap(); machines]
        };
        texts.iter().flat_map(place).collect()
    }

    fn spread(machines: usize, texts: &[&str]) -> Result<String, String> {
        let vms: Vec<String> = (1..=machines).map(|number| format!("vm{number}")).collect();
        homes(&vms, &places(texts)).map(|homes| in_words(&homes)).map_err(|error| error.to_string())
    }

    #[test]
    fn machines_are_spread_in_order_round_and_round() {
        let both = ["a=ssh://metal/srv", "b=native:"];
        assert_eq!(spread(2, &both).unwrap(), "vm1 in a (ssh://metal/srv); vm2 in b (native:)");
        assert_eq!(spread(3, &both).unwrap(), "vm1, vm3 in a (ssh://metal/srv); vm2 in b (native:)");
        let repeated = ["a=ssh://metal/srv*2", "b=native:"];
        assert_eq!(spread(4, &repeated).unwrap(), "vm1, vm2, vm4 in a (ssh://metal/srv); vm3 in b (native:)");
        assert_eq!(spread(2, &[]).unwrap(), "");
    }

    #[test]
    fn what_cannot_be_spread_is_said() {
        assert!(spread(2, &["native:*3"]).unwrap_err().contains("room for 3 machines"));
        assert!(spread(2, &["a=native:", "a=qemu:"]).unwrap_err().contains("two environments are called a"));
        assert!(spread(2, &["a=native:", "a=native:"]).is_ok(), "the same twice");
        for text in ["native:*0", "native:*65", "native:*99999999999999999999"] {
            assert!(split_machines(text).unwrap_err().to_string().contains("*1 to *64"), "{text}");
        }
        assert_eq!(split_machines("native:/srv/*").unwrap(), ("native:/srv/*", 1));
        assert_eq!(split_machines("native:/a*b").unwrap(), ("native:/a*b", 1));
    }

    #[test]
    fn agents_that_share_a_folder_have_one_each() {
        let vms = ["vm1".to_owned(), "vm2".to_owned()];
        let machines = housed(&vms, &places(&["a=ssh://metal/srv"]));
        assert_eq!(machines.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["vm1", "vm2"]);
        assert_ne!(machines[0].uri, machines[1].uri);
        assert_eq!(machines[0].uri.to_string(), "ssh://metal/srv");
    }
}
