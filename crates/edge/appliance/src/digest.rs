//! What is the same has the same digest.

use serde::Serialize;
use sha2::{Digest, Sha256};
use virtbench_recipe::Recipe;

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
    let digest = Sha256::digest(serde_json::to_vec(value).unwrap_or_default());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
