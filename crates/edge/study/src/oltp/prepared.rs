//! A database's root and its populated data, which every start begins with.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_appliance::{Appliance, BuildOptions, DataSet, DataSets, Store, build};
use virtbench_lab::{ApplianceSpec, Network, Place, RunningAppliance};
use virtbench_oltp::{Population, populate};
use virtbench_recipe::{Recipe, supplied};
use virtbench_record::DatabaseKind;

use super::database::{connect, port, recipe_name};
use crate::applications::Progress;
use crate::study_error::StudyError;

/// How long a root may take to be built, and data to be prepared.
const LIMIT: Duration = Duration::from_secs(3600);
/// How long a command that prepares data may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);

/// A root, and where data sets of it are kept.
#[derive(Debug)]
pub struct DatabaseAppliance {
    store: Store,
    pub(super) appliance: Appliance,
    pub(super) kind: DatabaseKind,
}

impl DatabaseAppliance {
    /// Finds the root of a database, or builds it.
    ///
    /// # Errors
    /// It cannot be built here, or it was to stop.
    pub fn find(kind: DatabaseKind, progress: &mut Progress<'_>) -> Result<Self, StudyError> {
        let store = Store::of_user();
        let recipe = recipe(kind)?;
        let options = BuildOptions { update: false, limit: LIMIT, stop: progress.stop };
        let mut phase = None;
        let built = build(&store, &recipe, options, &mut |now| {
            if phase != Some(now.phase) {
                phase = Some(now.phase);
                progress.doing(&format!("building the appliance {}: {}", recipe.name, now.phase.name()));
            }
        })?;
        Ok(Self { store, appliance: built.appliance, kind })
    }

    /// Digest of the root, in hexadecimal digits.
    #[must_use]
    pub fn root_digest(&self) -> &str {
        &self.appliance.manifest.digest
    }

    /// The least memory that it needs, in bytes.
    #[must_use]
    pub fn least_memory(&self) -> u64 {
        self.appliance.recipe.memory
    }

    /// The data set of this population, which is made natively where there is none.
    pub(super) fn data(
        &self,
        population: Population,
        processors: u32,
        progress: &mut Progress<'_>,
    ) -> Result<DataSet, StudyError> {
        let Population { warehouses, seed } = population;
        let key = format!("oltp {warehouses} warehouses seed {seed}");
        progress.doing(&format!("preparing data: {warehouses} warehouses"));
        let stop = progress.stop;
        let sets = DataSets::new(&self.store, &self.appliance);
        let set = sets.get(&key, LIMIT, stop, |image| self.fill(image, population, processors, stop))?;
        Ok(set)
    }

    /// Runs the recipe's commands and populates the database, natively.
    fn fill(
        &self,
        image: &Path,
        population: Population,
        processors: u32,
        stop: &AtomicBool,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let recipe = &self.appliance.recipe;
        let spec = ApplianceSpec {
            name: format!("{} (preparing)", recipe.name),
            recipe: recipe.clone(),
            root: self.appliance.image(),
            data: Some(image.to_owned()),
            vcpus: processors,
            memory_bytes: recipe.memory,
            network: Network::User,
            processors: Vec::new(),
            place: Place::Native,
        };
        let mut appliance = RunningAppliance::open(&spec)?;
        appliance.prepare_data(COMMAND_LIMIT)?;
        appliance.start_services()?;
        let address = appliance.address(port(self.kind)).ok_or("the database has no address")?;
        let connect = connect(self.kind, address);
        appliance.reach().within(|| populate(&connect, population, false, stop, &mut |_| {}))??;
        appliance.stop()?;
        Ok(())
    }
}

fn recipe(kind: DatabaseKind) -> Result<Recipe, StudyError> {
    let name = recipe_name(kind);
    let missing = || StudyError::input(format!("no recipe {name} comes with virtbench: a defect"));
    supplied::find(name).ok_or_else(missing)?.recipe().map_err(StudyError::input)
}
