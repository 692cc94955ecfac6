//! `virtbench appliance list`

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use virtbench_appliance::{Appliance, Store};
use virtbench_recipe::{Manifest, Recipe};
use virtbench_units::format_bytes;

use crate::args::appliance::ApplianceListArgs;
use crate::exit::Outcome;
use crate::say::{print_json, say};
use crate::text_table::{TextTable, left, right};

use super::words::on_disk;
use crate::appliance_failure::failure;

/// A recipe, and what was built of it.
#[derive(Serialize)]
struct Row {
    name: String,
    description: String,
    /// The recipe's file, where it is the user's.
    file: Option<PathBuf>,
    memory_bytes: u64,
    built: Option<Manifest>,
    image: Option<PathBuf>,
}

impl Row {
    fn new(recipe: &Recipe, file: Option<PathBuf>, built: Option<&Appliance>) -> Self {
        Self {
            name: recipe.name.clone(),
            description: recipe.description.clone(),
            file,
            memory_bytes: recipe.memory,
            built: built.map(|appliance| appliance.manifest.clone()),
            image: built.map(Appliance::image),
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Listed {
    folder: PathBuf,
    appliances: Vec<Row>,
    /// Roots that are not the newest of a recipe with a name.
    others: Vec<Row>,
}

/// Lists recipes and roots.
pub fn execute(args: &ApplianceListArgs) -> Outcome {
    let listed = look().map_err(failure)?;
    if args.json {
        return Ok(print_json(&listed)?);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut table = TextTable::new(0, &[left(0), left(0), left(0), right(0), right(0), right(0)]);
    table.row(["name", "what", "built", "on disk", "packages", "memory"]);
    for (row, is_other) in
        listed.appliances.iter().map(|row| (row, false)).chain(listed.others.iter().map(|row| (row, true)))
    {
        let of_built =
            |words: &dyn Fn(&Manifest) -> String| row.built.as_ref().map_or_else(|| "-".into(), words);
        let built = of_built(&|it| format!("{} ago", age(now.saturating_sub(it.built_unix_s))));
        table.row([
            row.name.clone(),
            row.description.clone(),
            if is_other { format!("{built}, unused") } else { built },
            of_built(&|it| on_disk(it.disk_bytes)),
            of_built(&|it| it.packages.len().to_string()),
            format_bytes(row.memory_bytes),
        ]);
    }
    say!("{table}");
    say!("in {}", listed.folder.display());
    Ok(())
}

fn look() -> Result<Listed, virtbench_appliance::ApplianceError> {
    let store = Store::of_user();
    let mut others = store.built()?;
    let mut appliances = Vec::new();
    for found in super::recipes() {
        let built = store.find(&found.recipe)?;
        if let Some(built) = &built {
            others.retain(|other| other.manifest.digest != built.manifest.digest);
        }
        appliances.push(Row::new(&found.recipe, found.file, built.as_ref()));
    }
    let others = others.iter().map(|other| Row::new(&other.recipe, None, Some(other))).collect();
    Ok(Listed { folder: store.folder().to_owned(), appliances, others })
}

/// So many seconds in words, by their largest unit.
fn age(seconds: u64) -> String {
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) = units.into_iter().find(|(size, _)| seconds >= *size).unwrap_or((1, "second"));
    let count = seconds / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_by_their_largest_unit() {
        for (seconds, words) in [(0, "0 seconds"), (60, "1 minute"), (7300, "2 hours"), (200_000, "2 days")] {
            assert_eq!(age(seconds), words);
        }
    }
}
