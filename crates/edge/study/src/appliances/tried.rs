//! One appliance that is started to be tried, outside a study.

use std::io;
use std::path::Path;
use std::time::Duration;

use virtbench_lab::{
    ApplianceError, ApplianceSpec, Filesystem, Network, NetworkNamespace, RunningAppliance, ServiceEnd,
    TierLinks, make_filesystem,
};
use virtbench_record::ApplianceSide;

use crate::appliances::built::BuiltAppliance;
use crate::appliances::place::{check_native, place};
use crate::appliances::processors::processors_of;
use crate::disks::disk::DiskError;
use crate::disks::study_folder::StudyFolder;
use crate::guests::ApplianceGuests;
use crate::study_error::StudyError;

/// How long a command that prepares data may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);

/// An appliance that runs, with data of its own. Dropping it ends it at once, and its data go.
#[derive(Debug)]
pub struct TriedAppliance {
    /// What runs.
    pub appliance: RunningAppliance,
    _folder: StudyFolder,
}

impl TriedAppliance {
    /// Starts one with so many processors and so much memory in bytes: in a VM where there are `guests`, else natively. The recipe's
    /// commands make its data in a folder within `parent`, anew each time.
    ///
    /// # Errors
    /// The host lacks what it needs, a command that prepares data fails, or a service does not get ready, with the end of its log.
    pub fn start(
        built: &BuiltAppliance,
        guests: Option<ApplianceGuests>,
        (vcpus, memory_bytes): (u32, u64),
        parent: &Path,
    ) -> Result<Self, StudyError> {
        if guests.is_none() {
            check_native()?;
        }
        let recipe = &built.appliance.recipe;
        let folder = StudyFolder::make(parent, &recipe.name)?;
        let data = recipe.data.as_ref().map(|data| (folder.path().join("data.ext4"), data.size));
        if let Some((path, size)) = &data {
            make_filesystem(path, *size, Filesystem::Ext4).map_err(DiskError::from)?;
        }
        let side = ApplianceSide { name: recipe.name.clone(), vm: guests.is_some(), vcpus, memory_bytes };
        let network = match &guests {
            Some(_) => Network::User,
            None => Network::Namespace(NetworkNamespace::new()?),
        };
        let spec = ApplianceSpec {
            name: recipe.name.clone(),
            recipe: recipe.clone(),
            root: built.appliance.image(),
            data: data.map(|(path, _)| path),
            vcpus,
            memory_bytes,
            network,
            tiers: TierLinks::default(),
            processors: processors_of(0, vcpus)?,
            place: place(guests.as_ref(), &side)?,
        };
        let mut appliance = RunningAppliance::open(&spec)?;
        appliance.prepare_data(COMMAND_LIMIT)?;
        appliance.start_services()?;
        Ok(Self { appliance, _folder: folder })
    }

    /// Stops its services in reverse order and ends it. Returns how each ended, then what could not be done in good order.
    ///
    /// # Errors
    /// It does not answer; it is ended all the same.
    pub fn stop(self) -> Result<(Vec<ServiceEnd>, Vec<String>), StudyError> {
        Ok(self.appliance.stop()?)
    }
}

impl From<ApplianceError> for StudyError {
    fn from(error: ApplianceError) -> Self {
        match error {
            ApplianceError::Network { .. } => Self::Environment(error.into()),
            error => Self::Started(error),
        }
    }
}

/// Where data of appliances that are tried lie: the cache's folder.
///
/// # Errors
/// It cannot be made.
pub fn trial_folder() -> io::Result<std::path::PathBuf> {
    let folder = virtbench_lab::cache_directory().join("appliances/tried");
    std::fs::create_dir_all(&folder).map(|()| folder)
}
