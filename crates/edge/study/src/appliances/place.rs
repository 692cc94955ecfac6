//! Where an appliance of a study runs, on which processors, and how clients reach it; and one that is started there to be tried,
//! outside a study.

use std::io;
use std::path::Path;
use std::time::Duration;

use virtbench_lab::{
    ApplianceError, ApplianceSpec, Filesystem, Network, NetworkNamespace, Place, RunningAppliance,
    ServiceEnd, TierLinks, make_filesystem, processors_in_turn, usable_processors,
};
use virtbench_record::ApplianceSide;

use crate::appliances::built::BuiltAppliance;
use crate::disks::disk::{DiskError, StudyFolder};
use crate::guests::ApplianceGuests;
use crate::study_error::StudyError;

/// How long a guest may take to boot.
const BOOT_LIMIT: Duration = Duration::from_secs(60);

/// Whether this host lets appliances run natively: said before anything is built for them.
///
/// # Errors
/// It lacks the rights.
pub fn check_native() -> Result<(), StudyError> {
    NetworkNamespace::new().map(drop).map_err(|error| {
        StudyError::Environment(format!("an appliance cannot run natively here: {error}").into())
    })
}

/// Where a side runs.
///
/// # Errors
/// It is a VM, and nothing was looked for that could boot it.
pub(crate) fn place(guests: Option<&ApplianceGuests>, side: &ApplianceSide) -> Result<Place, StudyError> {
    if !side.vm {
        return Ok(Place::Native);
    }
    let missing = || StudyError::input(format!("nothing was found to boot {}: a defect", side.name));
    Ok(guests.ok_or_else(missing)?.place(BOOT_LIMIT))
}

/// The network of a plan: `tap`, or `user`.
///
/// # Errors
/// There can be no network namespace.
pub(crate) fn network(name: &str) -> Result<Network, ApplianceError> {
    match name {
        "tap" => Ok(Network::Namespace(NetworkNamespace::new()?)),
        _ => Ok(Network::User),
    }
}

/// The processors of the appliance of this number, of those that this process may use: the first one has the first ones, on every
/// side the same. Others have those that follow, as long as there are any, then the first ones again.
///
/// # Errors
/// There are fewer than one appliance needs.
pub(crate) fn processors_of(number: usize, vcpus: u32) -> Result<Vec<usize>, StudyError> {
    let allowed = usable_processors().map_err(|error| {
        StudyError::input(format!("this process's processors cannot be asked for: {error}"))
    })?;
    if allowed.len() < vcpus as usize {
        return Err(StudyError::input(format!(
            "a side of {vcpus} processors: this process may use {}, and both sides are held to the same ones",
            allowed.len()
        )));
    }
    Ok(processors_in_turn(&allowed, number, vcpus))
}

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
