//! The part of a recipe that its root file system is made of.

use serde::Serialize;

use crate::recipe::{Build, Init, Recipe, RecipeFile, RecipeUser};

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
