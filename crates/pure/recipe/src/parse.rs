//! A recipe out of its file.

use crate::check::check;
use crate::error::RecipeError;
use crate::recipe::Recipe;

impl Recipe {
    /// The recipe in the text of a TOML file.
    ///
    /// # Errors
    /// The first line that cannot be read, or an invalid value.
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        let recipe: Self = toml::from_str(text)?;
        check(&recipe)?;
        Ok(recipe)
    }
}
