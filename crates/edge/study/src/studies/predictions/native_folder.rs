//! Where applications run natively when they are compared with a VM: on a new file system, as the VM's is.

use std::path::{Path, PathBuf};

use virtbench_lab::{Filesystem, LoopDevice, OwnFilesystem, see_alone};

use super::error::ApplicationsError;
use super::options::VmOptions;
use crate::runner::progress::Progress;

/// Where native runs are to be made.
#[derive(Debug)]
pub struct NativeSide {
    parent: PathBuf,
    size_bytes: u64,
    filesystem: Filesystem,
    own: bool,
}

/// A folder for such runs; what is in it goes with this value.
pub(super) struct NativeFolder {
    folder: PathBuf,
    own: Option<OwnFilesystem>,
}

impl NativeSide {
    /// On file systems of the VM's kind and size, in files beside its disk; in plain folders there, with a remark
    /// where that is not permitted. From here on, what this thread starts sees mounts of its own: call it before anything
    /// that starts processes.
    ///
    /// # Errors
    /// There is no such kind of file system.
    pub fn new(options: &VmOptions, progress: &mut Progress<'_>) -> Result<Self, ApplicationsError> {
        let filesystem = Filesystem::find(&options.filesystem);
        let filesystem = filesystem.map_err(|error| ApplicationsError::Input(error.into()))?;
        let parent = options.folder.clone();
        let alone = LoopDevice::check().map_err(Into::into).and_then(|()| see_alone());
        if let Err(why) = &alone {
            progress.remark(&format!(
                "natively in folders under {}, as there can be no file system like the VM's: {why}",
                parent.display()
            ));
        }
        Ok(Self { parent, size_bytes: options.disk_bytes, filesystem, own: alone.is_ok() })
    }

    /// An empty place.
    ///
    /// # Errors
    /// The disk is full, or there is no loop device.
    pub(super) fn place(&self) -> Result<NativeFolder, ApplicationsError> {
        let folder = self.parent.join(format!("virtbench-native-{}", std::process::id()));
        let own = if self.own {
            let mounted = OwnFilesystem::mount(&folder, self.size_bytes, self.filesystem, None);
            Some(mounted.map_err(|error| ApplicationsError::Environment(error.into()))?)
        } else {
            std::fs::create_dir_all(&folder).map_err(|error| {
                ApplicationsError::Environment(format!("cannot make {}: {error}", folder.display()).into())
            })?;
            None
        };
        Ok(NativeFolder { folder, own })
    }
}

impl NativeFolder {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for NativeFolder {
    fn drop(&mut self) {
        if self.own.is_none() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
