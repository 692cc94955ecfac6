//! An appliance with its data and its client.

use std::time::Duration;

use virtbench_appliance::DataSet;
use virtbench_record::{ApplicationLoad, ApplicationTier};

use super::client::{Client, explained};
use super::client_words::client_words;
use crate::appliances::built::BuiltAppliance;
use crate::appliances::preparing::Preparing;
use crate::runner::progress::Progress;
use crate::study_error::StudyError;

/// An appliance, what fills its data, and who loads it.
#[derive(Debug)]
pub struct ApplianceLoad {
    pub(super) built: BuiltAppliance,
    pub(super) load: ApplicationLoad,
    data: Option<DataSet>,
}

impl ApplianceLoad {
    /// An appliance whose data these commands fill, and that this client loads.
    #[must_use]
    pub fn new(built: BuiltAppliance, prepare: Vec<Vec<String>>, client: Vec<String>) -> Self {
        let (appliance, root) = (built.appliance.recipe.name.clone(), built.root_digest().to_owned());
        Self { load: ApplicationLoad { appliance, root, prepare, client }, built, data: None }
    }

    /// The appliance of a further tier, which no client loads.
    #[must_use]
    pub fn of_tier(built: BuiltAppliance, prepare: Vec<Vec<String>>) -> Self {
        Self::new(built, prepare, Vec::new())
    }

    /// As the plan has a tier of this name.
    #[must_use]
    pub fn tier_plan(&self, name: &str) -> ApplicationTier {
        let ApplicationLoad { appliance, root, prepare, .. } = self.load.clone();
        ApplicationTier { name: name.to_owned(), appliance, root, prepare }
    }

    /// As the plan has it.
    #[must_use]
    pub fn plan(&self) -> &ApplicationLoad {
        &self.load
    }

    /// The root.
    #[must_use]
    pub fn built(&self) -> &BuiltAppliance {
        &self.built
    }

    /// Its data, which are filled natively where they have not been; none where the recipe has none.
    pub(crate) fn data(
        &mut self,
        processors: u32,
        limit: Duration,
        progress: &mut Progress<'_>,
    ) -> Result<Option<&DataSet>, StudyError> {
        self.data_by(None, processors, limit, progress)
    }

    /// The same by commands in the root of another appliance, where there is one.
    pub(crate) fn data_by(
        &mut self,
        by: Option<&Preparing>,
        processors: u32,
        limit: Duration,
        progress: &mut Progress<'_>,
    ) -> Result<Option<&DataSet>, StudyError> {
        if self.built.appliance.recipe.data.is_none() {
            if !self.load.prepare.is_empty() {
                let name = &self.load.appliance;
                return Err(StudyError::input(format!("prepare: the recipe {name} has no data to fill")));
            }
            return Ok(None);
        }
        if self.data.is_none() {
            let prepare = &self.load.prepare;
            let key = serde_json::to_string(prepare).map_err(|error| StudyError::input(error.to_string()))?;
            let inside = by.map(|by| format!(" in {}", by.key())).unwrap_or_default();
            progress.doing(&format!("preparing data of {}", self.load.appliance));
            let stop = progress.stop;
            let key = format!("application {key}{inside}");
            let made = self.built.data(&key, processors, progress, |appliance| {
                if let Some(by) = by {
                    return by.fill(appliance, prepare, limit);
                }
                for words in prepare {
                    let words = client_words(words, appliance)?;
                    let end = Client { words, reach: appliance.reach(), limit }.run(stop);
                    end.result.map_err(|error| format!("prepare: {}", explained(&error)))?;
                }
                Ok(())
            })?;
            self.data = Some(made);
        }
        Ok(self.data.as_ref())
    }
}
