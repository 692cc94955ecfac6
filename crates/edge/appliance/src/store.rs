//! The folder in which appliances are kept.

use std::fs;
use std::path::{Path, PathBuf};

use virtbench_recipe::{Manifest, Recipe};

use crate::appliance::Appliance;
use crate::digest::{BUILDER, DIGITS, recipe_digest};
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
