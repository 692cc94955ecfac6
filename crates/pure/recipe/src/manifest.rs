//! What a built root is made of, as it stands beside its image.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
