//! `virtbench appliance`

mod build;
mod list;
mod path;
mod run;

mod words;

use virtbench_appliance::{ApplianceError, Removed, Store, remove, remove_unused, shell};
use virtbench_study::{FoundRecipe, all_recipes, find_recipe};

use crate::args::appliance::{ApplianceCommand, ApplianceRemoveArgs, ApplianceShellArgs};
use crate::commands::study_runs::study_failure;
use crate::exit::Outcome;
use crate::interrupt;
use crate::say::{finish, say, tell};

use crate::appliance_failure::failure;
use words::on_disk;

/// Builds, lists, opens and removes appliances.
pub fn execute(command: &ApplianceCommand) -> Outcome {
    match command {
        ApplianceCommand::Build(args) => build::execute(args),
        ApplianceCommand::List(args) => list::execute(args),
        ApplianceCommand::Run(args) => run::execute(args),
        ApplianceCommand::Path(args) => path::execute(args),
        ApplianceCommand::Shell(args) => open(args),
        ApplianceCommand::Remove(args) => take_away(args),
    }
}

/// All recipes that have a name. Of files that cannot be used it is said why.
fn recipes() -> Vec<FoundRecipe> {
    all_recipes(&mut |error| tell!("left out: {error}"))
}

fn open(args: &ApplianceShellArgs) -> Outcome {
    let store = Store::of_user();
    let appliance = match find_recipe(&args.recipe) {
        Ok(found) => store.find(&found.recipe).map_err(failure)?,
        // It may be of a file that is elsewhere.
        Err(unknown) => {
            let built = store.built().map_err(failure)?;
            let named = built.into_iter().find(|appliance| appliance.manifest.name == args.recipe);
            Some(named.ok_or_else(|| study_failure(unknown))?)
        }
    };
    let appliance = appliance.ok_or_else(|| failure(ApplianceError::NotBuilt(args.recipe.clone())))?;
    let code = shell(&store, &appliance, &args.command, interrupt::flag()).map_err(failure)?;
    finish()?;
    if code == 0 { Ok(()) } else { std::process::exit(code) }
}

fn take_away(args: &ApplianceRemoveArgs) -> Outcome {
    let (store, stop) = (Store::of_user(), interrupt::flag());
    let removed = match &args.name {
        Some(name) => remove(&store, name, stop),
        None => {
            let wanted: Vec<_> = recipes().into_iter().map(|found| found.recipe).collect();
            remove_unused(&store, &wanted, stop)
        }
    };
    let Removed { roots, data_sets, packages, bytes } = removed.map_err(failure)?;
    say!("removed: {roots} roots, {data_sets} data sets, {packages} packages, {}", on_disk(bytes));
    Ok(())
}
