//! Prepared data, kept so that every run starts from the same bytes.

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use virtbench_lab::{Filesystem, Preallocation, Qcow2, make_filesystem, run_command};

use crate::error::ApplianceError;
use crate::host::plain_command;
use crate::lock::Lock;
use crate::room::require_room;
use crate::store::{Appliance, DIGITS, Store, digest_of};

const IMAGE: &str = "data.ext4";
pub(crate) const FACTS: &str = "data.json";
/// The clusters of an overlay: small ones, because a guest writes pages of a database.
const CLUSTER_BYTES: u64 = 64 << 10;

/// What a data set is of, beside its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub appliance: String,
    pub root_digest: String,
    pub key: String,
    pub made_unix_s: u64,
}

/// The data sets of one appliance.
#[derive(Debug)]
pub struct DataSets<'a> {
    store: &'a Store,
    appliance: &'a Appliance,
}

/// An ext4 image of prepared data, which nobody writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    folder: PathBuf,
    /// The size of the file system, in bytes.
    pub size_bytes: u64,
    /// What its file takes on disk, in bytes.
    pub disk_bytes: u64,
}

impl<'a> DataSets<'a> {
    /// Those that are kept in `store`.
    #[must_use]
    pub fn new(store: &'a Store, appliance: &'a Appliance) -> Self {
        Self { store, appliance }
    }

    /// The data set `key`, such as `oltp 10 warehouses seed 1`. Where there is none, `fill` is given an image with an empty ext4
    /// of the recipe's size, and fills it. The data set has its name only once it is whole; of two processes that want it, one
    /// waits for the other, at most for `limit`.
    ///
    /// # Errors
    /// The recipe has no data, there is no room, `fill` failed, or `stop` was set. Nothing is left of it.
    pub fn get(
        &self,
        key: &str,
        limit: Duration,
        stop: &AtomicBool,
        fill: impl FnOnce(&Path) -> Result<(), Box<dyn Error + Send + Sync>>,
    ) -> Result<DataSet, ApplianceError> {
        let (recipe, manifest) = (&self.appliance.recipe, &self.appliance.manifest);
        let data = recipe.data.as_ref().ok_or_else(|| ApplianceError::NoData(recipe.name.clone()))?;
        let name = format!("{}-{}", recipe.name, &digest_of(&(&manifest.digest, data, key))[..DIGITS]);
        let place = self.store.data().join(&name);
        let lock = self.store.lock(&format!("{name}.data"));
        let _lock = Lock::take(&lock, &format!("the data {key:?}"), limit, stop, &mut |holder| {
            tracing::info!("process {holder} prepares the data {key:?}");
        })?;
        if place.join(FACTS).exists() {
            return DataSet::open(place);
        }
        let making = Making::at(self.store.data().join(format!("{name}.making")))?;
        require_room(&making.0, &format!("the data {key:?}"), data.size)?;
        let image = making.0.join(IMAGE);
        make_filesystem(&image, data.size, Filesystem::Ext4)?;
        fill(&image).map_err(|source| ApplianceError::Fill { key: key.to_owned(), source })?;
        let synced = File::open(&image).and_then(|file| file.sync_all());
        synced.map_err(ApplianceError::file("write", &image))?;
        fs::set_permissions(&image, fs::Permissions::from_mode(0o444))
            .map_err(ApplianceError::file("make read-only", &image))?;
        let facts = Facts {
            appliance: recipe.name.clone(),
            root_digest: manifest.digest.clone(),
            key: key.to_owned(),
            made_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        };
        let path = making.0.join(FACTS);
        let json = serde_json::to_vec_pretty(&facts).map_err(std::io::Error::from);
        json.and_then(|json| fs::write(&path, json)).map_err(ApplianceError::file("write", &path))?;
        fs::rename(&making.0, &place).map_err(ApplianceError::file("rename", &place))?;
        DataSet::open(place)
    }
}

/// A folder in which a data set is made. What is left in it goes with it; what a kill has left goes with the next one.
struct Making(PathBuf);

impl Making {
    fn at(path: PathBuf) -> Result<Self, ApplianceError> {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(ApplianceError::file("remove", &path))?;
        }
        fs::create_dir_all(&path).map_err(ApplianceError::file("make", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        // Not there is as good as gone.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl DataSet {
    fn open(folder: PathBuf) -> Result<Self, ApplianceError> {
        let image = folder.join(IMAGE);
        let facts = fs::metadata(&image).map_err(ApplianceError::file("read", &image))?;
        Ok(Self { folder, size_bytes: facts.len(), disk_bytes: facts.blocks() * 512 })
    }

    /// Its image.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }

    /// A copy for one run at `path`, which shares its blocks until they are written, where the file system can. Otherwise it takes
    /// as much as the image does.
    ///
    /// # Errors
    /// There is no room, it took longer than `limit`, or `stop` was set. Nothing is left of it.
    pub fn copy_to(&self, path: &Path, limit: Duration, stop: &AtomicBool) -> Result<(), ApplianceError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        require_room(folder, "a copy of the data", self.disk_bytes)?;
        let mut command = plain_command("cp");
        command
            .args(["--reflink=auto", "--sparse=auto", "--no-preserve=all", "--"])
            .arg(self.image())
            .arg(path);
        let done = run_command(command, "copying the data", limit, stop).map_err(ApplianceError::from);
        let done = done.and_then(|()| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))
                .map_err(ApplianceError::file("make writable", path))
        });
        if done.is_err() {
            // Not there is as good as gone.
            let _ = fs::remove_file(path);
        }
        done
    }

    /// An overlay for one guest's run at `path`, made at once: a qcow2 image in which only what the guest writes is.
    ///
    /// # Errors
    /// qemu-img is missing or fails, or `stop` was set.
    pub fn overlay_at(&self, path: &Path, stop: &AtomicBool) -> Result<(), ApplianceError> {
        let backing = self.image();
        let image = Qcow2 {
            path,
            size_bytes: self.size_bytes,
            cluster_bytes: CLUSTER_BYTES,
            preallocation: Preallocation::Off,
            backing: Some(&backing),
            contents: None,
        };
        Ok(image.make(stop)?)
    }
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod data_tests;
