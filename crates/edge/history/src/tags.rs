//! What users call a run: `tags.json` in its folder.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use virtbench_runs::{read_provenance, write_whole};

use crate::error::CatalogueError;
use crate::limits::MAX_TAGS;

/// The longest, in characters.
const LONGEST: usize = 60;
const FILE: &str = "tags.json";

/// The tags of a run, none where nobody gave it any.
///
/// # Errors
/// Its file cannot be read or is no list of texts.
pub fn read_tags(folder: &Path) -> Result<BTreeSet<String>, CatalogueError> {
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(source) => return Err(CatalogueError::File { path, source }),
    };
    serde_json::from_str(&text).map_err(|error| CatalogueError::File { path, source: error.into() })
}

/// Adds tags to a run and removes others; returns what it has then.
///
/// # Errors
/// There is no run in the folder, a word is no tag, there would be too many, or the file cannot be written.
pub fn write_tags(
    folder: &Path,
    add: &[String],
    remove: &[String],
) -> Result<BTreeSet<String>, CatalogueError> {
    read_provenance(folder)?;
    if let Some(word) = add.iter().find(|word| !is_tag(word)) {
        return Err(CatalogueError::Tag(word.clone()));
    }
    let mut tags = read_tags(folder)?;
    tags.extend(add.iter().cloned());
    tags.retain(|tag| !remove.contains(tag));
    if tags.len() > MAX_TAGS {
        return Err(CatalogueError::TooManyTags { path: folder.to_owned() });
    }
    write_whole(&folder.join(FILE), &tags)?;
    Ok(tags)
}

fn is_tag(word: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "._-/+".contains(c);
    !word.is_empty() && word.chars().count() <= LONGEST && word.chars().all(fits)
}
