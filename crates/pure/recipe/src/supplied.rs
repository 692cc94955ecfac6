//! The recipes that come with the project.

use crate::check::RecipeError;
use crate::recipe::Recipe;

/// A recipe that comes with the project.
#[derive(Debug, Clone, Copy)]
pub struct Supplied {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

impl Supplied {
    /// What is in its file.
    ///
    /// # Errors
    /// None of a file that comes with the project; a test reads them all.
    pub fn recipe(&self) -> Result<Recipe, RecipeError> {
        Recipe::parse(self.text)
    }
}

/// All of them, by name.
pub const ALL: [Supplied; 9] = [
    Supplied { name: "desktop", text: include_str!("../recipes/desktop.toml") },
    Supplied { name: "desktop-small", text: include_str!("../recipes/desktop-small.toml") },
    Supplied { name: "mail", text: include_str!("../recipes/mail.toml") },
    Supplied { name: "mariadb", text: include_str!("../recipes/mariadb.toml") },
    Supplied { name: "mediawiki", text: include_str!("../recipes/mediawiki.toml") },
    Supplied { name: "nginx", text: include_str!("../recipes/nginx.toml") },
    Supplied { name: "postgresql", text: include_str!("../recipes/postgresql.toml") },
    Supplied { name: "redis", text: include_str!("../recipes/redis.toml") },
    Supplied { name: "shop", text: include_str!("../recipes/shop.toml") },
];

/// The one of this name.
pub fn find(name: &str) -> Option<Supplied> {
    ALL.into_iter().find(|supplied| supplied.name == name)
}
