//! An appliance that was built.

use std::fs;
use std::path::{Path, PathBuf};

use virtbench_recipe::{Manifest, Recipe};

use crate::error::ApplianceError;

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
