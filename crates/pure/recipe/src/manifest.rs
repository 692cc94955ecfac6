//! What a built root is made of, as it stands beside its image.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recipe::{Build, Init, Recipe, RecipeFile, RecipeUser};

/// Everything that decides on the bytes of a root, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The recipe's name.
    pub name: String,
    /// SHA-256 of what the recipe says of the root, in hexadecimal digits.
    pub recipe_digest: String,
    /// SHA-256 of recipe, packages, release, architecture and the builder's version, in hexadecimal digits: the root's key.
    pub digest: String,
    /// The distribution's release, by code name: `bookworm`.
    pub suite: String,
    /// The distribution's name of the architecture: `amd64`.
    pub architecture: String,
    /// Every package in it, by name, with its version.
    pub packages: BTreeMap<String, String>,
    /// SHA-256 of the image, in hexadecimal digits.
    pub image_digest: String,
    /// The size of the file system, in bytes.
    pub image_bytes: u64,
    /// What its file takes on disk, in bytes.
    pub disk_bytes: u64,
    /// When it was built, in seconds since 1970.
    pub built_unix_s: u64,
    /// How long that took, in milliseconds.
    pub build_ms: u64,
    /// The version of mmdebstrap that made it.
    pub mmdebstrap: String,
    /// The version of mke2fs that made the image.
    pub mke2fs: String,
    /// The version of the builder. Another one makes other bytes.
    pub builder: u32,
}

/// What a root depends on. Two recipes that agree in it share a root, however they run what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RootParts<'a> {
    /// The recipe's name, which is the root's host name.
    pub name: &'a str,
    /// Packages of the distribution.
    pub packages: &'a [String],
    /// Who starts the services.
    pub init: Init,
    /// How the root is made.
    pub build: &'a Build,
    /// Files that are put into it.
    pub files: &'a [RecipeFile],
    /// Users that no package makes.
    pub users: &'a [RecipeUser],
    /// The folder in which the data is mounted, and who owns it.
    pub data: Option<(&'a str, &'a str)>,
}

impl Recipe {
    /// What its root depends on.
    #[must_use]
    pub fn root_parts(&self) -> RootParts<'_> {
        RootParts {
            name: &self.name,
            packages: &self.packages,
            init: self.init,
            build: &self.build,
            files: &self.files,
            users: &self.users,
            data: self.data.as_ref().map(|data| (data.folder.as_str(), data.user.as_str())),
        }
    }
}
