//! Where applications run natively when they are compared with a VM: on a new file system, as the VM's is.

use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_lab::{Filesystem, LoopDevice, OwnFilesystem, see_alone};

use crate::args::there::ThereArgs;
use crate::exit::{Failure, Kind};
use crate::say::tell;

/// Where native runs are to be made.
#[derive(Debug)]
pub struct NativeSide {
    parent: PathBuf,
    size_bytes: u64,
    filesystem: Filesystem,
    own: bool,
}

/// A folder for such runs; what is in it goes with this value.
pub struct NativePlace {
    folder: PathBuf,
    own: Option<OwnFilesystem>,
}

impl NativeSide {
    /// On file systems of the VM's kind and size, in files beside its disk; in plain folders there, with a word on stderr,
    /// where that is not permitted. From here on, what this thread starts sees mounts of its own.
    ///
    /// # Errors
    /// There is no such kind of file system.
    pub fn new(there: &ThereArgs) -> Result<Self, Failure> {
        let filesystem = Filesystem::find(&there.filesystem);
        let filesystem = filesystem.map_err(|error| Failure::new(Kind::Usage, error))?;
        let parent = there.folder()?;
        let alone = LoopDevice::check().map_err(Into::into).and_then(|()| see_alone());
        if let Err(why) = &alone {
            tell!(
                "natively in folders under {}, as there can be no file system like the VM's: {why}",
                parent.display()
            );
        }
        Ok(Self { parent, size_bytes: there.size, filesystem, own: alone.is_ok() })
    }

    /// An empty place.
    ///
    /// # Errors
    /// The disk is full, or there is no loop device.
    pub fn place(&self) -> Result<NativePlace, Failure> {
        let folder = self.parent.join(format!("virtbench-native-{}", std::process::id()));
        let own = if self.own {
            let mounted = OwnFilesystem::mount(&folder, self.size_bytes, self.filesystem, None);
            Some(mounted.map_err(|error| Failure::new(Kind::Environment, error))?)
        } else {
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            None
        };
        Ok(NativePlace { folder, own })
    }
}

impl NativePlace {
    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for NativePlace {
    fn drop(&mut self) {
        if self.own.is_none() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
