//! What an appliance is: real software of the distribution in a root file system of its own, the services that run in
//! it, and the data that they start from. A [`Recipe`] is read from a TOML file; those that come with the project are
//! in [`supplied`].
//!
//! ```
//! let recipe = virtbench_recipe::supplied::find("postgresql").expect("it comes with the project").recipe()?;
//! assert_eq!(recipe.services[0].user, "postgres");
//! # Ok::<(), virtbench_recipe::RecipeError>(())
//! ```

mod check;
mod manifest;
mod recipe;
pub mod supplied;

pub use check::RecipeError;
pub use manifest::{Manifest, RootParts};
pub use recipe::{
    Build, Data, Init, Probe, Recipe, RecipeFile, RecipeUser, Service, ServicePlace, StopSignal,
};

#[cfg(test)]
mod recipe_tests;
