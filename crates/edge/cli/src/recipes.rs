//! Recipes by name: the user's own, then those that come with virtbench.

use std::fs;
use std::path::{Path, PathBuf};

use virtbench_recipe::{Recipe, supplied};

use crate::exit::{Failure, Kind};
use crate::say::tell;
use crate::{small_file, xdg};

/// A recipe, and where it stands.
#[derive(Debug)]
pub struct Found {
    /// The recipe.
    pub recipe: Recipe,
    /// Its file; none for one that comes with virtbench.
    pub file: Option<PathBuf>,
}

/// The recipe of this name, or in the file of this name.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn find(name: &str) -> Result<Found, Failure> {
    let path = Path::new(name);
    if name.contains('/') || path.extension().is_some_and(|ending| ending == "toml") {
        return read(path);
    }
    let of_user = folder().map(|folder| folder.join(format!("{name}.toml")));
    if let Some(path) = of_user.filter(|path| path.exists()) {
        return read(&path);
    }
    let supplied = supplied::find(name).ok_or_else(|| {
        let known: Vec<String> = all().into_iter().map(|found| found.recipe.name).collect();
        let here =
            folder().map_or_else(|| "~/.config/virtbench/appliances".into(), |it| it.display().to_string());
        let message = format!(
            "there is no recipe {name}: choose {}, name a file, or put {name}.toml into {here}",
            known.join(", ")
        );
        Failure::message(Kind::Usage, message)
    })?;
    supplied
        .recipe()
        .map(|recipe| Found { recipe, file: None })
        .map_err(|error| Failure::new(Kind::Usage, error))
}

/// The recipe that a study's file names: a recipe's file is looked for beside it.
///
/// # Errors
/// As [`find`].
pub fn find_beside(study: &Path, name: &str) -> Result<Found, Failure> {
    let named = Path::new(name);
    let is_file = name.contains('/') || named.extension().is_some_and(|ending| ending == "toml");
    match study.parent().filter(|_| is_file && named.is_relative()) {
        Some(folder) => read(&folder.join(named)),
        None => find(name),
    }
}

/// All that have a name. Of files that cannot be used it is said why.
pub fn all() -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for path in
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "toml"))
    {
        match read(&path) {
            Ok(one) => found.push(one),
            Err(error) => tell!("left out: {error}"),
        }
    }
    for one in supplied::ALL {
        if let Ok(recipe) = one.recipe()
            && found.iter().all(|other| other.recipe.name != recipe.name)
        {
            found.push(Found { recipe, file: None });
        }
    }
    found.sort_by(|a, b| a.recipe.name.cmp(&b.recipe.name));
    found
}

fn folder() -> Option<PathBuf> {
    xdg::folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("virtbench/appliances"))
}

fn read(path: &Path) -> Result<Found, Failure> {
    let wrong = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    let text = small_file::read(path).map_err(wrong)?;
    let recipe = Recipe::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(Found { recipe, file: Some(path.to_owned()) })
}
