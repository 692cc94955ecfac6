//! What an appliance is made of.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// Who starts the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// The agent, each as its user. It takes seconds under emulation.
    #[default]
    Agent,
    /// The root's own systemd, for software that needs it; `packages` has `systemd-sysv` then. It takes three times as long.
    Full,
}

/// A file that is put into the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeFile {
    /// Where, absolute within the root.
    pub path: String,
    /// What it contains.
    pub text: String,
    /// Its permissions, octal: `0644`.
    #[serde(default = "RecipeFile::plain")]
    pub mode: String,
    /// Who owns it; root if not said.
    #[serde(default = "root")]
    pub owner: String,
    /// Whether it is there before the packages are configured, such as a setting that their scripts read. Its owner is then
    /// root.
    #[serde(default)]
    pub before_packages: bool,
}

impl RecipeFile {
    fn plain() -> String {
        "0644".into()
    }
}

/// A system user that no package makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeUser {
    /// Its name.
    pub name: String,
    /// Its home folder within the root.
    pub home: String,
}

/// How the root is made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Build {
    /// Paths that packages bring and the root does without, as dpkg's `path-exclude` takes them. Documentation, manual
    /// pages and locales are always left out.
    pub exclude: Vec<String>,
    /// Shell scripts that run as root in the finished root, without a network.
    pub run: Vec<String>,
}

/// The data that services start from, prepared once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// The folder within the root that holds it.
    pub folder: String,
    /// Who owns the folder, and prepares.
    pub user: String,
    /// Commands that fill it, each a program and its arguments, run in the root before a service is started.
    pub prepare: Vec<Vec<String>>,
    /// How large the file system of the data is: bytes, or `4GiB`.
    #[serde(with = "bytes")]
    pub size: u64,
}

/// What an appliance is made of, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name: lower-case letters, digits and `-`.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// Packages of the distribution.
    pub packages: Vec<String>,
    /// The least memory that a guest needs: bytes, or `256MiB`.
    #[serde(with = "bytes")]
    pub memory: u64,
    /// Who starts the services.
    #[serde(default)]
    pub init: Init,
    /// How the root is made.
    #[serde(default)]
    pub build: Build,
    /// Files that are put into the root, after the packages if they do not say otherwise.
    #[serde(default)]
    pub files: Vec<RecipeFile>,
    /// Whether its VM has a graphics adapter, a keyboard and a pointer, so that the hypervisor shows its screen by VNC.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub screen: bool,
    /// Users that no package makes.
    #[serde(default)]
    pub users: Vec<RecipeUser>,
    /// What runs, in the order of starting. Each is ready before the next one starts.
    pub services: Vec<Service>,
    /// What the services start from.
    pub data: Option<Data>,
}

impl Recipe {
    /// What of it runs in a place.
    #[must_use]
    pub fn at(&self, place: ServicePlace) -> Self {
        let mut here = self.clone();
        here.services.retain(|service| service.only.is_none_or(|only| only == place));
        here
    }

    /// What of it runs in a VM that can have no screen: in place of what shows one, what shows the same natively.
    #[must_use]
    pub fn in_vm_without_screen(&self) -> Self {
        let place = if self.screen { ServicePlace::Native } else { ServicePlace::Vm };
        Self { screen: false, ..self.at(place) }
    }

    /// The ports on which its services listen, in their order.
    pub fn ports(&self) -> Vec<u16> {
        self.services.iter().flat_map(|service| service.ports.iter().copied()).collect()
    }
}

/// How a service is known to be ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Something accepts connections on this port of the appliance's own loopback.
    Tcp(u16),
    /// This command ends with 0, run in the root as the service's user.
    Command(Vec<String>),
    /// This text stands in what the service has written.
    Output(String),
}

/// The signal that ends a service in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum StopSignal {
    /// Most services.
    #[default]
    #[serde(rename = "SIGTERM")]
    Term,
    /// PostgreSQL's fast shutdown.
    #[serde(rename = "SIGINT")]
    Interrupt,
    /// nginx's graceful shutdown.
    #[serde(rename = "SIGQUIT")]
    Quit,
}

/// Where a service runs that is not for every place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServicePlace {
    /// On a host itself.
    Native,
    /// In a VM.
    Vm,
}

/// A program that runs for as long as the appliance does. It stays in the foreground.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name, unique in the recipe.
    pub name: String,
    /// Program, absolute within the root, and arguments; none where it is a unit.
    #[serde(default)]
    pub command: Vec<String>,
    /// A unit of the root's own systemd, such as `redis-server.service`, where that is the init. It keeps its own command, user and
    /// way of stopping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Who runs it and its probe, by name in the root; of a unit the probe alone.
    #[serde(default = "root")]
    pub user: String,
    /// Its environment beside `PATH`, `HOME`, `USER` and `LANG`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Folders that are there before it starts and belong to its user, such as those in `/run`.
    #[serde(default)]
    pub folders: Vec<String>,
    /// How it is known to be ready.
    pub ready: Probe,
    /// How long it may take to get ready, under emulation too: nanoseconds, or `60s`.
    #[serde(default = "ready_within", with = "duration_ns")]
    pub ready_within: u64,
    /// How it is ended.
    #[serde(default)]
    pub stop: StopSignal,
    /// How long it may take to end before it is killed: nanoseconds, or `30s`.
    #[serde(default = "stop_within", with = "duration_ns")]
    pub stop_within: u64,
    /// TCP ports on which it serves clients.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The only place where it runs; every place where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<ServicePlace>,
}

/// What runs in an appliance, and how it is known to be ready.
pub(crate) fn root() -> String {
    "root".into()
}

fn ready_within() -> u64 {
    120_000_000_000
}

fn stop_within() -> u64 {
    30_000_000_000
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Number(u64),
    Text(String),
}

/// Bytes: `1048576` or `1MiB`.
pub(crate) mod bytes {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(*bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::read(deserializer, |text| {
            virtbench_units::parse_bytes(text).map_err(|error| error.to_string())
        })
    }
}

/// Nanoseconds: `30000000000` or `30s`.
pub(crate) mod duration_ns {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(*ns)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::read(deserializer, |text| {
            virtbench_units::parse_duration_ns(text).map_err(|error| error.to_string())
        })
    }
}

fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<u64, String>,
) -> Result<u64, D::Error> {
    match Quantity::deserialize(deserializer)? {
        Quantity::Number(number) => Ok(number),
        Quantity::Text(text) => parse(&text).map_err(D::Error::custom),
    }
}
