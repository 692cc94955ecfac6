//! Taking appliances away.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_recipe::Recipe;

use crate::build_folder::BuildFolder;
use crate::data::{FACTS, Facts};
use crate::error::ApplianceError;
use crate::lock::Lock;
use crate::store::{Appliance, Store};
use crate::world::World;

/// How long a build may go on before it is said to be in the way.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Roots.
    pub roots: usize,
    /// Data sets.
    pub data_sets: usize,
    /// Files of packages.
    pub packages: usize,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Removes every root of this name, and the data sets that were made with it.
///
/// # Errors
/// There is none, a build of it goes on, or a file cannot be removed.
pub fn remove(store: &Store, name: &str, stop: &AtomicBool) -> Result<Removed, ApplianceError> {
    let mut removed = Removed::default();
    remove_roots(store, name, &|_| true, stop, &mut removed)?;
    if removed == Removed::default() {
        return Err(ApplianceError::NotBuilt(name.to_owned()));
    }
    remove_data(store, &mut removed)?;
    Ok(removed)
}

/// Removes every root that is not the newest one of a recipe in `wanted`, data sets whose root is gone, packages that no root has,
/// and what builds left that were killed.
///
/// # Errors
/// A file cannot be removed. What is in use is left.
pub fn remove_unused(store: &Store, wanted: &[Recipe], stop: &AtomicBool) -> Result<Removed, ApplianceError> {
    let mut used = BTreeSet::new();
    for recipe in wanted {
        used.extend(store.find(recipe)?.map(|appliance| appliance.manifest.digest));
    }
    let mut removed = Removed::default();
    let names: BTreeSet<String> = store.built()?.into_iter().map(|one| one.manifest.name).collect();
    for name in names {
        let unused = |one: &Appliance| !used.contains(&one.manifest.digest);
        match remove_roots(store, &name, &unused, stop, &mut removed) {
            Err(ApplianceError::Busy { .. }) => {}
            done => done?,
        }
    }
    remove_data(store, &mut removed)?;
    remove_packages(store, stop, &mut removed)?;
    remove_leftovers(store, stop)?;
    Ok(removed)
}

fn lock(store: &Store, name: &str, stop: &AtomicBool) -> Result<Lock, ApplianceError> {
    Lock::take(&store.lock(name), &format!("the appliance {name}"), PATIENCE, stop, &mut |_| {})
}

fn remove_roots(
    store: &Store,
    name: &str,
    unwanted: &dyn Fn(&Appliance) -> bool,
    stop: &AtomicBool,
    removed: &mut Removed,
) -> Result<(), ApplianceError> {
    let found = store.built()?.into_iter().filter(|one| one.manifest.name == name && unwanted(one));
    for appliance in found {
        let _lock = lock(store, name, stop)?;
        removed.bytes += appliance.manifest.disk_bytes;
        removed.roots += 1;
        remove_folder(&appliance.folder)?;
    }
    Ok(())
}

/// Data sets whose root is gone, and those that a kill has left half made.
fn remove_data(store: &Store, removed: &mut Removed) -> Result<(), ApplianceError> {
    let roots: BTreeSet<String> = store.built()?.into_iter().map(|one| one.manifest.digest).collect();
    for entry in fs::read_dir(store.data()).into_iter().flatten().flatten() {
        let facts = fs::read(entry.path().join(FACTS)).ok();
        let facts: Option<Facts> = facts.and_then(|text| serde_json::from_slice(&text).ok());
        // Without facts somebody is making it.
        if facts.is_some_and(|facts| !roots.contains(&facts.root_digest)) {
            removed.bytes += bytes_in(&entry.path());
            removed.data_sets += 1;
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_packages(store: &Store, stop: &AtomicBool, removed: &mut Removed) -> Result<(), ApplianceError> {
    let _lock = Lock::take(&store.packages_lock(), "the archive of packages", PATIENCE, stop, &mut |_| {})?;
    let built = store.built()?;
    let kept: BTreeSet<String> = built
        .iter()
        .flat_map(|one| &one.manifest.packages)
        .map(|(name, version)| format!("{name}_{}", version.replace(':', "%3a")))
        .collect();
    for state in fs::read_dir(store.packages()).into_iter().flatten().flatten() {
        for deb in fs::read_dir(state.path().join("archives")).into_iter().flatten().flatten() {
            let name = deb.file_name().to_string_lossy().into_owned();
            let Some((package, _)) = name.strip_suffix(".deb").and_then(|name| name.rsplit_once('_')) else {
                continue;
            };
            if !kept.contains(package) {
                removed.bytes += deb.metadata().map_or(0, |facts| facts.len());
                removed.packages += 1;
                let path = deb.path();
                fs::remove_file(&path).map_err(ApplianceError::file("remove", &path))?;
            }
        }
    }
    Ok(())
}

fn remove_leftovers(store: &Store, stop: &AtomicBool) -> Result<(), ApplianceError> {
    for entry in fs::read_dir(store.building()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match lock(store, &name, stop) {
            Ok(_lock) => drop(BuildFolder::make(entry.path(), World::of_this_user())?),
            Err(ApplianceError::Busy { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

fn bytes_in(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|facts| facts.blocks() * 512).sum()
}

fn remove_folder(folder: &Path) -> Result<(), ApplianceError> {
    fs::remove_dir_all(folder).map_err(ApplianceError::file("remove", folder))
}
