//! The files that devices of the daemon are made of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_engine::{Target, TargetRequest};
use virtbench_fence_daemon::config::Config;
use virtbench_lab::{Filesystem, make_filesystem};

use super::{FenceError, Medium};
use crate::disks::disk::hold;

/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Where a device is to be, and what.
#[derive(Debug, Clone)]
pub(super) struct DeviceRequest {
    pub(super) path: PathBuf,
    pub(super) size_bytes: u64,
    pub(super) medium: Medium,
}

/// A file that goes when this does. The daemon holds it against others.
#[derive(Debug)]
pub(super) struct DeviceFile {
    path: PathBuf,
}

impl DeviceFile {
    /// Makes it, or takes over what a killed run left. A file that is to be measured itself is written whole; under a
    /// model it has no blocks at first, since the model says how long they take.
    pub(super) fn make(
        place: &DeviceRequest,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, FenceError> {
        let failed = |source| FenceError::File { path: place.path.clone(), source };
        if let Some(folder) = place.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        if place.path.exists() {
            let _left = hold(&place.path)?;
            fs::remove_file(&place.path).map_err(failed)?;
        }
        let made = Self { path: place.path.clone() };
        match place.medium {
            Medium::Emulated => {
                let file = File::create_new(&place.path).map_err(failed)?;
                file.set_len(place.size_bytes).map_err(failed)?;
            }
            Medium::File => {
                let request = TargetRequest {
                    path: place.path.clone(),
                    size_bytes: Some(place.size_bytes),
                    direct: true,
                    reads: true,
                    writes: true,
                    allow_overwrite: false,
                };
                Target::open(&request, |written, total| {
                    on_progress("writing a device of the fence", written, total);
                    !stop.load(Ordering::Relaxed)
                })?;
            }
        }
        Ok(made)
    }
}

impl Drop for DeviceFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives each disk of a formatted device an empty file system.
pub(super) fn put_filesystems(
    home: &DeviceRequest,
    config: &Config,
    filesystem: Filesystem,
) -> Result<(), FenceError> {
    let failed = |source| FenceError::File { path: home.path.clone(), source };
    let made = DeviceFile { path: home.path.with_extension("fs") };
    let device = OpenOptions::new().write(true).open(&home.path).map_err(failed)?;
    for disk in config.place(&[0; 16]) {
        // Made anew for each: no two have one identity.
        make_filesystem(&made.path, disk.size_bytes, filesystem)?;
        copy(&made.path, &device, disk.offset_bytes).map_err(failed)?;
    }
    device.sync_all().map_err(failed)
}

/// Gives each disk of a formatted device the contents of an image.
pub(super) fn put_images(
    home: &DeviceRequest,
    config: &Config,
    images: &[PathBuf],
) -> Result<(), FenceError> {
    let failed = |source| FenceError::File { path: home.path.clone(), source };
    let device = OpenOptions::new().write(true).open(&home.path).map_err(failed)?;
    for (disk, image) in config.place(&[0; 16]).iter().zip(images) {
        copy(image, &device, disk.offset_bytes).map_err(failed)?;
    }
    device.sync_all().map_err(failed)
}

/// Copies what is not zero.
fn copy(from: &PathBuf, to: &File, offset_bytes: u64) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut at = offset_bytes;
    loop {
        let len = from.read(&mut piece)?;
        if len == 0 {
            return Ok(());
        }
        if piece[..len].iter().any(|byte| *byte != 0) {
            to.write_all_at(&piece[..len], at)?;
        }
        at += len as u64;
    }
}
