//! A member of a tile: its appliance, and the data that every start begins with.

use std::time::Duration;

use virtbench_appliance::DataSet;
use virtbench_oltp::Population;
use virtbench_recipe::Recipe;
use virtbench_record::{ApplianceRoot, TileLoadKind, TileMemberPlan};

use super::file::TileFileMember;
use crate::appliances::built::{BuiltAppliance, Preparing};
use crate::runner::progress::Progress;
use crate::studies::application::ApplianceLoad;
use crate::studies::oltp::{DatabaseAppliance, database_kind};
use crate::study_error::StudyError;

/// Seed of a database's population: the same rows in every study.
const POPULATION_SEED: u64 = 1;
/// How long a command that prepares data may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);

/// What its data are made by.
#[derive(Debug)]
enum Source {
    /// Commands of the tile's.
    Commands(ApplianceLoad),
    /// A population.
    Database(DatabaseAppliance, Option<DataSet>),
}

/// A member of a tile.
#[derive(Debug)]
pub struct TileMember {
    plan: TileMemberPlan,
    source: Source,
}

impl TileMember {
    /// Finds the root of a member's recipe, or builds it.
    ///
    /// # Errors
    /// It cannot be built here, is no database where one is needed, or it was to stop.
    pub fn find(
        member: &TileFileMember,
        recipe: &Recipe,
        progress: &mut Progress<'_>,
    ) -> Result<Self, StudyError> {
        let mut plan = member.plan.clone();
        let source = if plan.load.kind == TileLoadKind::Oltp {
            let kind = database_kind(&recipe.name).ok_or_else(|| {
                let (member, recipe) = (&plan.name, &recipe.name);
                StudyError::input(format!("member {member}: oltp loads postgresql or mariadb, not {recipe}"))
            })?;
            Source::Database(DatabaseAppliance::find(kind, progress)?, None)
        } else {
            let built = BuiltAppliance::find(recipe, progress)?;
            Source::Commands(ApplianceLoad::new(built, plan.prepare.clone(), Vec::new()))
        };
        let found = Self { plan: plan.clone(), source };
        plan.appliance.clone_from(&recipe.name);
        plan.root = found.built().root_digest().to_owned();
        let least = found.built().least_memory();
        plan.memory_bytes = member.memory_bytes.unwrap_or(least);
        if plan.memory_bytes < least {
            let (name, has) = (&plan.name, virtbench_units::format_bytes(plan.memory_bytes));
            let least = virtbench_units::format_bytes(least);
            return Err(StudyError::input(format!(
                "member {name}: {has} of memory, and its recipe needs {least}"
            )));
        }
        Ok(Self { plan, ..found })
    }

    /// As the plan has it.
    #[must_use]
    pub fn plan(&self) -> &TileMemberPlan {
        &self.plan
    }

    /// What its appliance is made of.
    #[must_use]
    pub fn root(&self) -> ApplianceRoot {
        self.built().root()
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.built().appliance.recipe
    }

    pub(super) fn image(&self) -> std::path::PathBuf {
        self.built().appliance.image()
    }

    fn built(&self) -> &BuiltAppliance {
        match &self.source {
            Source::Commands(load) => load.built(),
            Source::Database(database, _) => &database.built,
        }
    }

    /// Whose commands prepare its data, if they are those of another member.
    pub(super) fn preparing(&self, members: &[Self]) -> Option<Preparing> {
        let by = self.plan.prepare_by.as_ref()?;
        let other = members.iter().find(|other| other.plan.name == *by)?;
        let (host, _) = other.plan.uses.iter().find(|(_, used)| **used == self.plan.name)?;
        Some(Preparing::new(other.built(), host))
    }

    /// Its data, which are made natively where they have not been, by another appliance's commands where there is one; none where
    /// the recipe has none.
    pub(super) fn data(
        &mut self,
        by: Option<&Preparing>,
        progress: &mut Progress<'_>,
    ) -> Result<Option<&DataSet>, StudyError> {
        match &mut self.source {
            Source::Commands(load) => load.data_by(by, self.plan.vcpus, PREPARE_LIMIT, progress),
            Source::Database(database, set) => {
                if set.is_none() {
                    let warehouses = self.plan.load.warehouses;
                    let population = Population { warehouses, seed: POPULATION_SEED };
                    *set = Some(database.data(population, self.plan.vcpus, progress)?);
                }
                Ok(set.as_ref())
            }
        }
    }
}
