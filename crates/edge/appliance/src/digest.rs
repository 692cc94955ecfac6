//! What is the same has the same digest.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

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
