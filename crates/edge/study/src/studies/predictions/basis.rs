//! What predictions of a run are made from: costs of work natively and in a VM, or how fast storages are.

use virtbench_model::Prediction;
use virtbench_model::predict::{Inputs, PredictionMethod, Rounding, StoragePair, predict};
use virtbench_record::{Costs, PredictionsPlan, Profile, StorageSpeed};

use super::costs::parse_costs;
use super::error::ApplicationsError;

/// What predictions are made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Basis {
    /// What work costs natively and in the VM.
    Costs(Box<Costs>),
    /// Every storage.
    Storages(Vec<StorageSpeed>),
}

impl Basis {
    /// The name of its files in a run folder, without what tells them apart.
    pub(super) fn file(plan: &PredictionsPlan) -> &'static str {
        if plan.storages.is_empty() { "costs" } else { "storages" }
    }

    /// Reads that of a run with this plan.
    ///
    /// # Errors
    /// It is none, or cannot be; in words.
    pub(super) fn parse(plan: &PredictionsPlan, bytes: &[u8]) -> Result<Self, String> {
        if plan.storages.is_empty() {
            return parse_costs(bytes).map(|costs| Self::Costs(Box::new(costs)));
        }
        let storages: Vec<StorageSpeed> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        storages.iter().try_for_each(StorageSpeed::check)?;
        Ok(Self::Storages(storages))
    }

    /// Predicts what the application of a profile does on a storage, or in the only VM, at a trial of this number.
    ///
    /// # Errors
    /// A method is asked for that there is not, or what it needs is missing.
    pub(super) fn predict(
        &self,
        plan: &PredictionsPlan,
        profile: &Profile,
        subject: Option<&str>,
        number: u32,
    ) -> Result<Prediction, ApplicationsError> {
        let method = plan.method.as_deref().map(|name| {
            PredictionMethod::named(name)
                .ok_or_else(|| ApplicationsError::Input(format!("there is no method {name}").into()))
        });
        let inputs = Inputs {
            profile,
            surface: None,
            runs: None,
            costs: if let Self::Costs(costs) = self { Some(costs) } else { None },
            storages: subject.map(|subject| self.pair(plan, subject)).transpose()?,
            compute: None,
            subject_processors: Some(plan.vcpus),
            method: method.transpose()?,
            rounding: Rounding::Exact,
            seed: u64::from(number),
        };
        predict(&inputs).map_err(|error| ApplicationsError::Measured(error.into()))
    }

    /// The storage that applications run on, and the one that they are predicted for.
    fn pair(&self, plan: &PredictionsPlan, subject: &str) -> Result<StoragePair<'_>, ApplicationsError> {
        let find = |name: &str| {
            let storages = if let Self::Storages(storages) = self { storages.as_slice() } else { &[] };
            let found = storages.iter().find(|storage| storage.storage == name);
            found.ok_or_else(|| {
                ApplicationsError::Measured(format!("how fast {name} is was not measured").into())
            })
        };
        Ok(StoragePair { from: find(plan.reference())?, to: find(subject)? })
    }
}
