//! What an appliance is made of.

use serde::{Deserialize, Serialize};

use crate::quantity;
use crate::service::{self, Service, ServicePlace};

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
    #[serde(default = "service::root")]
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
    #[serde(with = "quantity::bytes")]
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
    #[serde(with = "quantity::bytes")]
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
