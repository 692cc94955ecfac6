//! The files of a study of configurations: made, held, and removed when it ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;
use virtbench_engine::TargetError;
use virtbench_lab::{
    GuestDisk, ImageFormat, ImageMakingError, LoopCache, LoopDevice, LoopError, Preallocation, Qcow2,
    free_bytes,
};

use crate::disks::backing::Backing;
use crate::disks::disk::{Contents, DiskError, StudyDisk};
use crate::fence::{FenceDisks, FenceError, FenceRequest};
use crate::setup::Setup;

/// Files that cannot be had.
#[derive(Debug, Error)]
pub enum ImagesError {
    /// A raw file.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A qcow2 image.
    #[error(transparent)]
    Image(#[from] ImageMakingError),
    /// A loop device.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A disk of the fence's daemon.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// There is not enough room.
    #[error("{} has {free_bytes} bytes free and the images need {needed_bytes}: choose a smaller --size, fewer \
             configurations on qcow2, or another --target-dir", folder.display())]
    NoRoom {
        /// The folder that the images go into.
        folder: PathBuf,
        /// What is free.
        free_bytes: u64,
        /// What is needed.
        needed_bytes: u64,
    },
}

impl ImagesError {
    /// Whether it was asked to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(
            self,
            Self::Disk(DiskError::Target(TargetError::Interrupted(_)))
                | Self::Image(ImageMakingError::Stopped { .. })
        ) || matches!(self, Self::Fence(error) if error.is_stopped())
    }

    /// Whether this host lacks what is needed.
    #[must_use]
    pub fn lacks_something(&self) -> bool {
        match self {
            Self::Fence(error) => error.lacks_host_device(),
            error => matches!(error, Self::Loop(_)),
        }
    }
}

/// The disk of each configuration. Dropping it removes all files; only a kill leaves them, and the
/// next run of the same folder takes them over.
#[derive(Debug)]
pub struct Images {
    raw: StudyDisk,
    base: Option<StudyDisk>,
    loop_device: Option<LoopDevice>,
    made: Vec<PathBuf>,
    fences: Vec<FenceDisks>,
    disks: Vec<(GuestDisk, u64)>,
}

impl Images {
    /// Makes all that `setups` need in `folder` for the run `run_name`; each holds `size_bytes`.
    /// `on_progress` is told what is being made, bytes written, and bytes in all.
    ///
    /// # Errors
    /// The folder cannot be used or is too small, a file or device cannot be made, or `stop` was set.
    pub fn prepare(
        folder: &Path,
        run_name: &str,
        setups: &[Setup],
        size_bytes: u64,
        contents: Contents,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, ImagesError> {
        check_room(folder, run_name, setups, size_bytes)?;
        let mut write = |name: &str, what: &str| {
            if let Contents::Empty(filesystem) = contents {
                on_progress(what, 0, size_bytes);
                return StudyDisk::empty(folder, name, size_bytes, filesystem);
            }
            StudyDisk::prepare(folder, name, size_bytes, |written, total| {
                on_progress(what, written, total);
                !stop.load(Ordering::Relaxed)
            })
        };
        let raw = write(run_name, "writing the test disk")?;
        let overlays = setups.iter().any(|setup| matches!(setup.backing, Backing::Overlay { .. }));
        let base =
            overlays.then(|| write(&format!("{run_name}-base"), "writing the backing file")).transpose()?;
        let wants_loop = setups.iter().any(|setup| setup.backing == Backing::Loop);
        let loop_device =
            wants_loop.then(|| LoopDevice::attach(raw.path(), LoopCache::Direct)).transpose()?;
        let mut images =
            Self { raw, base, loop_device, made: Vec::new(), fences: Vec::new(), disks: Vec::new() };
        for (index, setup) in setups.iter().enumerate() {
            let done = index as u64;
            on_progress(&format!("making the disk of {setup}"), done, setups.len() as u64);
            if let Backing::Fence(options) = &setup.backing {
                let (run_name, names) = (format!("{run_name}-{index}"), ["disk".to_owned()]);
                let request = FenceRequest {
                    folder,
                    run_name: &run_name,
                    adapter: setup.adapter,
                    settings: &setup.settings,
                    options,
                    names: &names,
                    size_bytes,
                    contents,
                    images: &[],
                    warm: None,
                    configuration: None,
                };
                let fence = FenceDisks::prepare(&request, stop, on_progress)?;
                images.disks.extend(fence.disks().iter().map(|disk| (disk.clone(), size_bytes)));
                images.fences.push(fence);
                continue;
            }
            let disk = images.disk(setup, index, size_bytes, stop)?;
            let allocated = fs::metadata(&disk.path).map_or(0, |facts| match disk.format {
                ImageFormat::Raw => size_bytes,
                ImageFormat::Qcow2 { .. } => facts.blocks() * 512,
            });
            images.disks.push((disk, allocated));
        }
        Ok(images)
    }

    /// The raw file, which every configuration without a file of its own has in common.
    #[must_use]
    pub fn raw(&self) -> &Path {
        self.raw.path()
    }

    /// Checks that the folder has room for the disks of several machines, all in one configuration; those
    /// that a killed run left are counted as room.
    ///
    /// # Errors
    /// It has not.
    pub fn check_room(
        folder: &Path,
        run_name: &str,
        machines: usize,
        setup: &Setup,
        size_bytes: u64,
    ) -> Result<(), ImagesError> {
        let setups = std::slice::from_ref(setup);
        check_room(folder, run_name, setups, size_bytes.saturating_mul(machines as u64))
    }

    fn disk(
        &mut self,
        setup: &Setup,
        index: usize,
        size_bytes: u64,
        stop: &AtomicBool,
    ) -> Result<GuestDisk, ImagesError> {
        let mut disk = GuestDisk::new(setup.adapter, self.raw.path().to_owned());
        disk.settings = setup.settings.clone();
        disk.shared = !setup.is_qcow2();
        match setup.backing {
            Backing::Raw | Backing::Fence(_) => {}
            Backing::Nbd => disk.nbd = true,
            Backing::Loop => {
                if let Some(device) = &self.loop_device {
                    disk.path = device.path().to_owned();
                }
            }
            Backing::Qcow2 { cluster_bytes, preallocation } => {
                disk.path = self.raw.path().with_extension(format!("{index}.qcow2"));
                disk.format = ImageFormat::Qcow2 { backing: None };
                self.made.push(disk.path.clone());
                let contents = Some(self.raw.path());
                let backing = None;
                Qcow2 { path: &disk.path, size_bytes, cluster_bytes, preallocation, backing, contents }
                    .make(stop)?;
            }
            Backing::Overlay { cluster_bytes } => {
                let base = self.base.as_ref().map(StudyDisk::path);
                disk.path = self.raw.path().with_extension(format!("{index}.qcow2"));
                disk.format = ImageFormat::Qcow2 { backing: base.map(Path::to_owned) };
                self.made.push(disk.path.clone());
                let preallocation = Preallocation::Off;
                Qcow2 {
                    path: &disk.path,
                    size_bytes,
                    cluster_bytes,
                    preallocation,
                    backing: base,
                    contents: None,
                }
                .make(stop)?;
            }
        }
        Ok(disk)
    }

    /// The disk of each configuration, in order, and the bytes its blocks take on the host's storage.
    #[must_use]
    pub fn disks(&self) -> &[(GuestDisk, u64)] {
        &self.disks
    }

    /// What a reader of the results should know about them.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.raw.notes()
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        // The loop device first, which holds the raw file.
        self.loop_device = None;
        for path in &self.made {
            let _ = fs::remove_file(path);
        }
    }
}

/// Checks that the folder has room for all files, those that a killed run left counted as room.
fn check_room(folder: &Path, run_name: &str, setups: &[Setup], size_bytes: u64) -> Result<(), ImagesError> {
    let exists = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let Ok(free_bytes) = free_bytes(exists) else { return Ok(()) };
    let prefix = format!("virtbench-{run_name}");
    let left: u64 = fs::read_dir(folder).map_or(0, |entries| {
        let ours = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        ours.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512)).sum()
    });
    let free_bytes = free_bytes.saturating_add(left);
    let overlays = setups.iter().any(|setup| matches!(setup.backing, Backing::Overlay { .. }));
    let files = 1 + u64::from(overlays) + setups.iter().filter(|setup| setup.is_qcow2()).count() as u64;
    // An image's tables take up to a hundredth with the smallest clusters.
    let needed_bytes = files.saturating_mul(size_bytes).saturating_add(size_bytes / 64);
    if needed_bytes <= free_bytes {
        return Ok(());
    }
    Err(ImagesError::NoRoom { folder: folder.to_owned(), free_bytes, needed_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::setups;

    fn prepare(folder: &Path, more: &[&str], size_bytes: u64) -> Result<Images, ImagesError> {
        let more: Vec<String> = more.iter().map(|text| (*text).to_owned()).collect();
        let setups = setups(&["virtio-blk".into()], &["raw".into()], &more).unwrap();
        Images::prepare(
            folder,
            "test",
            &setups,
            size_bytes,
            Contents::Written,
            &AtomicBool::new(false),
            &mut |_, _, _| {},
        )
    }

    #[test]
    fn each_has_its_disk_and_nothing_is_left() {
        let temp = tempfile::TempDir::new_in("/var/tmp").unwrap();
        let more = ["nvme@qcow2,cluster=4k", "nvme@overlay", "nvme@loop", "nvme@nbd"];
        let images = prepare(temp.path(), &more, 4 << 20).unwrap_or_else(|error| panic!("{error}"));
        let disks = images.disks();
        assert_eq!((disks.len(), disks[0].1), (5, 4 << 20));
        assert!(disks[1].1 >= 4 << 20, "not every cluster was written: {}", disks[1].1);
        assert!(disks[2].1 < 1 << 20, "an overlay is empty at first: {}", disks[2].1);
        assert!(disks[3].0.path.to_string_lossy().starts_with("/dev/loop") && disks[4].0.nbd);
        drop(images);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }

    #[test]
    fn too_little_room_is_said_before_anything_is_written() {
        let temp = tempfile::TempDir::new().unwrap();
        let error = prepare(temp.path(), &["nvme"], 1 << 60).unwrap_err().to_string();
        assert!(error.contains("bytes free") && error.contains("--size"), "{error}");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}
