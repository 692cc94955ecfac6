//! `virtbench appliance`: builds, lists, opens and removes.

mod run;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::ProgressBar;
use serde::Serialize;
use virtbench_appliance::{
    Appliance, ApplianceError, BuildOptions, Phase, Progress, Removed, Store, build, remove, remove_unused,
    shell,
};
use virtbench_lab::{Reach, measure_path};
use virtbench_recipe::{Manifest, Recipe};
use virtbench_study::{FoundRecipe, all_recipes, find_recipe};
use virtbench_units::format_bytes;

use crate::applications::failure;
use crate::args::appliance::{
    ApplianceBuildArgs, ApplianceCommand, ApplianceListArgs, AppliancePathArgs, ApplianceRemoveArgs,
    ApplianceShellArgs,
};
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{self, finish, print_json, say, tell};
use crate::text_table::{TextTable, left, right};
use crate::{interrupt, progress};

/// Builds, lists, opens and removes appliances.
pub fn execute(command: &ApplianceCommand) -> Outcome {
    match command {
        ApplianceCommand::Build(args) => build_root(args),
        ApplianceCommand::List(args) => list_all(args),
        ApplianceCommand::Run(args) => run::execute(args),
        ApplianceCommand::Path(args) => print_path(args),
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

/// So many bytes, as a person reads them.
fn on_disk(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Off a terminal it is said so often that a phase goes on.
const INTERVAL: Duration = Duration::from_secs(10);

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    new: bool,
    image: String,
    manifest: &'a Manifest,
}

/// Builds an appliance, or finds it.
fn build_root(args: &ApplianceBuildArgs) -> Outcome {
    let found = find_recipe(&args.recipe).map_err(study_failure)?;
    let options = BuildOptions { update: args.update, limit: args.limit, stop: interrupt::flag() };
    let mut shown = Shown::new(&found.recipe.name);
    let done = build(&Store::of_user(), &found.recipe, options, &mut |now| shown.tell(&now));
    drop(shown);
    let built = done.map_err(failure)?;
    let (manifest, image) = (&built.appliance.manifest, built.appliance.image());
    if args.json {
        let answer = Answer { new: built.is_new, image: image.display().to_string(), manifest };
        return Ok(print_json(&answer)?);
    }
    let how = if built.is_new {
        format!("built in {:.0} s", manifest.build_ms as f64 / 1e3)
    } else {
        "is built already; --update looks for newer packages".to_owned()
    };
    say!("{} {how}", manifest.name);
    say!(
        "root   {}, {} packages of {} ({})",
        on_disk(manifest.disk_bytes),
        manifest.packages.len(),
        manifest.suite,
        manifest.architecture
    );
    say!("image  {}", image.display());
    Ok(())
}

/// Progress on stderr: a line that changes on a terminal, lines at intervals where they are wanted, objects for programs.
struct Shown {
    name: String,
    begun: Instant,
    said: Option<(Phase, Instant)>,
    bar: Option<ProgressBar>,
}

impl Shown {
    fn new(name: &str) -> Self {
        let says = say::is_for_machines() || say::is_in_lines();
        let bar = (!says).then(|| progress::spinner(name));
        Self { name: name.to_owned(), begun: Instant::now(), said: None, bar }
    }

    fn tell(&mut self, now: &Progress) {
        if let Some(bar) = &self.bar {
            return bar.set_message(self.words(now));
        }
        let is_due = self.said.is_none_or(|(phase, at)| phase != now.phase || at.elapsed() >= INTERVAL);
        if !is_due {
            return;
        }
        self.said = Some((now.phase, Instant::now()));
        let seconds = self.begun.elapsed().as_secs();
        if say::is_for_machines() {
            say::event(&serde_json::json!({
                "event": "appliance", "name": self.name, "phase": now.phase.name(), "share": now.share, "detail": now.detail,
                "seconds": seconds,
            }));
        } else {
            tell!("{}, {seconds} s", self.words(now));
        }
    }

    fn words(&self, now: &Progress) -> String {
        let share = now.share.map_or_else(String::new, |share| format!(" {:.0} %", share * 100.0));
        let detail = if now.detail.is_empty() { String::new() } else { format!(", {}", now.detail) };
        format!("{}: {}{share}{detail}", self.name, now.phase.name())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

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
fn list_all(args: &ApplianceListArgs) -> Outcome {
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
    for found in recipes() {
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

/// Measures the path to the agent of an appliance that another command runs.
fn print_path(args: &AppliancePathArgs) -> Outcome {
    let path = || measure_path(&Reach::here(), args.address, args.time);
    let cost = progress::during("measuring the path", path).map_err(|error| {
        let next = "see `virtbench appliance run` for where its agent answers, and for the network it is in";
        Failure::message(Kind::Guest, format!("{}: {error}; {next}", args.address))
    })?;
    if args.json {
        return Ok(print_json(&cost)?);
    }
    let us = |ns: u64| ns as f64 / 1e3;
    say!(
        "round trip  {:.0} us at least, {:.0} us the median, {:.0} us for 99 % of {}",
        us(cost.round_trip_min_ns),
        us(cost.round_trip_median_ns),
        us(cost.round_trip_p99_ns),
        cost.round_trips
    );
    say!("to it       {:.1} MB/s", cost.to_bytes_per_s / 1e6);
    say!("from it     {:.1} MB/s", cost.from_bytes_per_s / 1e6);
    Ok(())
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
