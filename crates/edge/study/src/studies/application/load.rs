//! An appliance with its data and its client, and the copies of the data that the appliances of one measurement work on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_appliance::DataSet;
use virtbench_record::{ApplicationLoad, ApplicationTier};

use super::client::{Client, client_words, explained};
use crate::appliances::built::{BuiltAppliance, Preparing};
use crate::disks::backing::Backing;
use crate::disks::disk::Contents;
use crate::disks::images::ImagesError;
use crate::fence::{FenceDisks, FenceOptions, FenceRequest, Throttle};
use crate::runner::event::Event;
use crate::runner::progress::Progress;
use crate::setup::Setup;
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

/// How long a copy of the data may take.
const COPY_LIMIT: Duration = Duration::from_secs(600);

/// Where data are kept.
#[derive(Debug, Clone)]
pub(crate) enum DataPlace {
    /// A file for each appliance.
    File,
    /// Disks of one daemon of the fence's, each a block device of the host, so that both sides get the same.
    Fence(Box<(Setup, FenceOptions)>),
}

impl DataPlace {
    /// Reads `file`, or `fence` with its settings.
    ///
    /// # Errors
    /// It is neither, or cannot be had for both sides; in words.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "file" {
            return Ok(Self::File);
        }
        let neither = || {
            format!("disk {text:?}: file, or fence with settings as `study adapters --backings` takes them")
        };
        if text.split(',').next() != Some("fence") {
            return Err(neither());
        }
        let setup = Setup::parse(&format!("virtio-blk@{text}")).map_err(|error| format!("disk: {error}"))?;
        let Backing::Fence(mut options) = setup.backing else { return Err(neither()) };
        if options.throttle != Throttle::Off {
            return Err(format!(
                "disk {text:?}: throttle is for guests alone, and this disk is native too: leave it out"
            ));
        }
        options.on_host = true;
        Ok(Self::Fence(Box::new((setup, options))))
    }

    /// Whether it is of the fence's.
    pub(crate) fn is_fence(&self) -> bool {
        matches!(self, Self::Fence(_))
    }
}

/// The data of one measurement, which go with it.
#[derive(Debug)]
pub(crate) struct DataDisks {
    /// What each appliance works on; nothing for one without data.
    pub(crate) paths: Vec<Option<PathBuf>>,
    files: Vec<PathBuf>,
    _fence: Option<FenceDisks>,
}

impl DataDisks {
    /// A copy of each data set, in `folder`.
    ///
    /// # Errors
    /// There is no room, the fence cannot serve them, or it was to stop.
    pub(crate) fn make(
        place: &DataPlace,
        folder: &Path,
        sets: &[Option<&DataSet>],
        progress: &mut Progress<'_>,
    ) -> Result<Self, StudyError> {
        match place {
            DataPlace::File => Self::files(folder, sets, progress),
            DataPlace::Fence(what) => Self::fence(&what.0, &what.1, folder, sets, progress),
        }
    }

    fn files(
        folder: &Path,
        sets: &[Option<&DataSet>],
        progress: &mut Progress<'_>,
    ) -> Result<Self, StudyError> {
        let mut made = Self { paths: Vec::new(), files: Vec::new(), _fence: None };
        for (number, set) in sets.iter().enumerate() {
            let path = set.map(|_| folder.join(format!("data-{number}.ext4")));
            if let (Some(set), Some(path)) = (set, &path) {
                set.copy_to(path, COPY_LIMIT, progress.stop)?;
                made.files.push(path.clone());
            }
            made.paths.push(path);
        }
        Ok(made)
    }

    fn fence(
        setup: &Setup,
        options: &FenceOptions,
        folder: &Path,
        sets: &[Option<&DataSet>],
        progress: &mut Progress<'_>,
    ) -> Result<Self, StudyError> {
        let images: Option<Vec<PathBuf>> = sets.iter().map(|set| set.map(DataSet::image)).collect();
        let images =
            images.ok_or_else(|| StudyError::input("disk fence: an appliance has no data: use file"))?;
        let names: Vec<String> = (0..images.len()).map(|number| format!("data{number}")).collect();
        let request = FenceRequest {
            folder,
            run_name: "application",
            adapter: setup.adapter,
            settings: &setup.settings,
            options,
            names: &names,
            size_bytes: sets.iter().flatten().map(|set| set.size_bytes).max().unwrap_or(0),
            contents: Contents::Empty(None),
            images: &images,
            warm: None,
            configuration: None,
        };
        let observer = &mut *progress.observer;
        let disks = FenceDisks::prepare(&request, progress.stop, &mut |what, done, total| {
            observer.event(Event::Making { what, done, total });
        });
        let disks = disks.map_err(ImagesError::from)?;
        let paths = disks.disks().iter().map(|disk| Some(disk.path.clone())).collect();
        Ok(Self { paths, files: Vec::new(), _fence: Some(disks) })
    }
}

impl Drop for DataDisks {
    fn drop(&mut self) {
        for file in &self.files {
            // Not there is as good as gone.
            let _ = fs::remove_file(file);
        }
    }
}
