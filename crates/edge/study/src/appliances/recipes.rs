//! Recipes by name: the user's own, then those that come with virtbench.

use std::fs;
use std::path::{Path, PathBuf};

use virtbench_recipe::{Recipe, supplied};

use crate::study_error::StudyError;
use crate::user_files::{read_user_file, user_folder};

/// A recipe, and where it stands.
#[derive(Debug)]
pub struct FoundRecipe {
    /// The recipe.
    pub recipe: Recipe,
    /// Its file; none for one that comes with virtbench.
    pub file: Option<PathBuf>,
}

/// The recipe of this name, or in the file of this name.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn find_recipe(name: &str) -> Result<FoundRecipe, StudyError> {
    if is_file(name) {
        return read(Path::new(name));
    }
    let of_user = folder().map(|folder| folder.join(format!("{name}.toml")));
    if let Some(path) = of_user.filter(|path| path.exists()) {
        return read(&path);
    }
    let supplied = supplied::find(name).ok_or_else(|| {
        let known: Vec<String> =
            all_recipes(&mut |_| ()).into_iter().map(|found| found.recipe.name).collect();
        let here =
            folder().map_or_else(|| "~/.config/virtbench/appliances".into(), |it| it.display().to_string());
        StudyError::input(format!(
            "there is no recipe {name}: choose {}, name a file, or put {name}.toml into {here}",
            known.join(", ")
        ))
    })?;
    supplied.recipe().map(|recipe| FoundRecipe { recipe, file: None }).map_err(StudyError::input)
}

/// The recipe that a study's file names: a recipe's file is looked for beside it.
///
/// # Errors
/// As [`find_recipe`].
pub(crate) fn find_recipe_beside(study: &Path, name: &str) -> Result<FoundRecipe, StudyError> {
    match study.parent().filter(|_| is_file(name) && Path::new(name).is_relative()) {
        Some(folder) => read(&folder.join(name)),
        None => find_recipe(name),
    }
}

/// All that have a name; `left_out` is told why a file cannot be used.
pub fn all_recipes(left_out: &mut dyn FnMut(&StudyError)) -> Vec<FoundRecipe> {
    let mut found: Vec<FoundRecipe> = Vec::new();
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for path in
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "toml"))
    {
        match read(&path) {
            Ok(one) => found.push(one),
            Err(error) => left_out(&error),
        }
    }
    for one in supplied::ALL {
        if let Ok(recipe) = one.recipe()
            && found.iter().all(|other| other.recipe.name != recipe.name)
        {
            found.push(FoundRecipe { recipe, file: None });
        }
    }
    found.sort_by(|a, b| a.recipe.name.cmp(&b.recipe.name));
    found
}

fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|ending| ending == "toml")
}

fn folder() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("virtbench/appliances"))
}

fn read(path: &Path) -> Result<FoundRecipe, StudyError> {
    let wrong = |why: String| StudyError::input(format!("{}: {why}", path.display()));
    let text = read_user_file(path).map_err(wrong)?;
    let recipe = Recipe::parse(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(FoundRecipe { recipe, file: Some(path.to_owned()) })
}
