//! An appliance whose commands fill the data of another one, such as a web application that makes its tables.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use virtbench_lab::{ApplianceSpec, Place, RunningAppliance, TierLinks};
use virtbench_recipe::Recipe;

use crate::appliances::built::BuiltAppliance;

/// An appliance whose commands fill the data of another one.
#[derive(Debug)]
pub(crate) struct Preparing {
    /// The name by which it reaches the other one.
    host: String,
    recipe: Recipe,
    root: PathBuf,
    digest: String,
}

impl Preparing {
    /// One of this root, which reaches the other one as `host`.
    pub(crate) fn new(built: &BuiltAppliance, host: &str) -> Self {
        // Its own data are of no use here, so that it needs none.
        let recipe = Recipe { data: None, ..built.appliance.recipe.clone() };
        let (root, digest) = (built.appliance.image(), built.root_digest().to_owned());
        Self { host: host.to_owned(), recipe, root, digest }
    }

    /// What the data depend on beside the commands.
    pub(crate) fn key(&self) -> String {
        format!("{} of {} at {}", self.recipe.name, self.digest, self.host)
    }

    /// Runs commands, as root, in its root on the network of the other one, which runs natively. No service of its own is
    /// started, and nothing of it is left.
    ///
    /// # Errors
    /// It does not start, or a command fails, with what it said.
    pub(crate) fn fill(
        &self,
        other: &RunningAppliance,
        commands: &[Vec<String>],
        limit: Duration,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut tiers = TierLinks::default();
        let address = other.shared_address().ok_or("the appliance shares no network: a defect")?;
        tiers.name(&self.host, address);
        let spec = ApplianceSpec {
            name: format!("{} (preparing {})", self.recipe.name, other.name()),
            recipe: self.recipe.clone(),
            root: self.root.clone(),
            data: None,
            vcpus: 1,
            memory_bytes: self.recipe.memory,
            network: other.network().clone(),
            tiers,
            processors: Vec::new(),
            place: Place::Native,
        };
        let mut appliance = RunningAppliance::open(&spec)?;
        for words in commands {
            let end = appliance.run(words, "root", limit)?;
            if let Some(trouble) = end.trouble() {
                let words = words.join(" ");
                return Err(format!("prepare: {words} {trouble}: {}", end.output).into());
            }
        }
        Ok(())
    }
}
