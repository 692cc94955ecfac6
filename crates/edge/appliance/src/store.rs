//! The folder in which appliances are kept, each under the digest of what it is made of.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use virtbench_recipe::{Manifest, Recipe};

use crate::error::ApplianceError;

/// Where roots, data sets, packages and what is being built are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// `appliances` in virtbench's cache.
    #[must_use]
    pub fn of_user() -> Self {
        Self::at(virtbench_lab::cache_directory().join("appliances"))
    }

    /// In this folder.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        // Programs that are called with it have folders of their own.
        Self { folder: std::path::absolute(&folder).unwrap_or(folder) }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn roots(&self) -> PathBuf {
        self.folder.join("roots")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn building(&self) -> PathBuf {
        self.folder.join("building")
    }

    pub(crate) fn packages(&self) -> PathBuf {
        self.folder.join("packages")
    }

    /// One builder, or remover, of each name at a time.
    pub(crate) fn lock(&self, name: &str) -> PathBuf {
        self.folder.join("locks").join(name)
    }

    pub(crate) fn packages_lock(&self) -> PathBuf {
        self.packages().join("lock")
    }

    /// Where everything is kept that the last build of a recipe said.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    pub(crate) fn root_folder(&self, name: &str, digest: &str) -> PathBuf {
        self.roots().join(format!("{name}-{}", &digest[..DIGITS.min(digest.len())]))
    }

    /// All appliances that were built, by name, the newest of each name first.
    ///
    /// # Errors
    /// The folder cannot be read, or a manifest in it.
    pub fn built(&self) -> Result<Vec<Appliance>, ApplianceError> {
        let roots = self.roots();
        let entries = match fs::read_dir(&roots) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(ApplianceError::file("read", &roots))?,
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            found.push(Appliance::open(&entry.path())?);
        }
        found.sort_by(|a, b| {
            let key =
                |one: &Appliance| (one.manifest.name.clone(), std::cmp::Reverse(one.manifest.built_unix_s));
            key(a).cmp(&key(b))
        });
        Ok(found)
    }

    /// The newest root that was built of what this recipe says of it, to be run as this recipe says.
    ///
    /// # Errors
    /// As for [`built`](Self::built).
    pub fn find(&self, recipe: &Recipe) -> Result<Option<Appliance>, ApplianceError> {
        let wanted = recipe_digest(recipe);
        let is_it = |manifest: &Manifest| manifest.recipe_digest == wanted && manifest.builder == BUILDER;
        let found = self.built()?.into_iter().find(|appliance| is_it(&appliance.manifest));
        Ok(found.map(|appliance| Appliance { recipe: recipe.clone(), ..appliance }))
    }
}

/// The image, what it is made of, and the recipe, which is kept so that it can be used without its file.
pub(crate) const IMAGE: &str = "root.ext4";

pub(crate) const MANIFEST: &str = "manifest.json";

pub(crate) const RECIPE: &str = "recipe.json";

/// A root file system, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appliance {
    /// How it is run.
    pub recipe: Recipe,
    /// What it is made of.
    pub manifest: Manifest,
    /// Its folder in the cache.
    pub(crate) folder: PathBuf,
}

impl Appliance {
    /// Its image: ext4, without a journal, which nobody writes to.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }

    pub(crate) fn open(folder: &Path) -> Result<Self, ApplianceError> {
        fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ApplianceError> {
            let text = fs::read_to_string(path).map_err(ApplianceError::file("read", path))?;
            serde_json::from_str(&text)
                .map_err(|source| ApplianceError::Manifest { path: path.to_owned(), source })
        }
        let (manifest, recipe) = (read(&folder.join(MANIFEST))?, read(&folder.join(RECIPE))?);
        Ok(Self { recipe, manifest, folder: folder.to_owned() })
    }
}

/// Raised when the builder makes other bytes of the same recipe and packages.
pub(crate) const BUILDER: u32 = 1;

/// So many digits of a digest are in the name of a folder.
pub(crate) const DIGITS: usize = 12;

/// The digest of what a recipe says of its root.
pub(crate) fn recipe_digest(recipe: &Recipe) -> String {
    digest_of(&recipe.root_parts())
}

/// SHA-256 of a value as JSON.
pub(crate) fn digest_of(value: &impl Serialize) -> String {
    // Plain values, whose keys are text.
    words(&Sha256::digest(serde_json::to_vec(value).unwrap_or_default()))
}

/// SHA-256 of a file, as `sha256sum` gives it, in a quarter of the time where the processor has instructions for it.
///
/// # Errors
/// It cannot be read.
pub(crate) fn file_digest(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(words(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn words(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
