//! Where tiles run.

use std::path::PathBuf;

use virtbench_platforms::Platform;
use virtbench_recipe::Recipe;

use super::host::TilesHosting;
use crate::guests::ApplianceGuests;

/// Where members run.
#[derive(Debug)]
pub struct TilesPlace {
    /// What boots VMs; nothing natively.
    pub guests: Option<ApplianceGuests>,
    /// Where copies of the data go: a folder in this one, held while there is a measurement.
    pub parent: PathBuf,
    /// The name of the run, for that folder.
    pub name: String,
    /// The program that the generators are modes of: this one.
    pub program: PathBuf,
    /// Where the infrastructure load's operations are done, if there is one.
    pub platform: Option<Box<dyn Platform>>,
    /// The recipes of members that are there already, in the plan's order; nothing where this run starts them.
    pub existing: Option<Vec<Recipe>>,
    /// The machine of the user's that runs members; nothing where this host does.
    pub hosting: Option<TilesHosting>,
}
