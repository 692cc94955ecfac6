//! Disks of the fence's daemon for the guests of a study.
//!
//! The daemon runs in a thread of this process, so that nothing of it outlives the study. Its devices are files in the
//! folder for disks; its sockets lie in a folder of their own, which goes with them, or with the next run after a kill.

mod configuration;
mod error;
mod host_device;
mod options;
mod request;
mod served;
mod systems;

pub(crate) use configuration::sizes;
pub use error::FenceError;
pub use host_device::{HostDeviceError, check_host_devices};
pub use options::{FenceOptions, Medium, Throttle};
pub use request::FenceRequest;
pub use systems::System;

use std::fs;
use std::sync::atomic::AtomicBool;

use virtbench_fence_daemon::config::Config;
use virtbench_lab::{GuestDisk, IoLimits, Transport};
use virtbench_workload::{AccessLine, AccessSpec};

use crate::disks::disk::Contents;
use configuration::{DeviceFile, Places, capacity_iops, configuration, warming};
use host_device::HostDevice;
use served::{Served, SocketFolder};

/// A daemon with a disk for each machine of a study. Dropping it ends the daemon and removes its files.
#[derive(Debug)]
pub struct FenceDisks {
    disks: Vec<GuestDisk>,
    // What is written on them arrives before the daemon ends.
    _host: Vec<HostDevice>,
    // The daemon ends before what it uses goes.
    _served: Served,
    _sockets: SocketFolder,
    _devices: [Option<DeviceFile>; 2],
}

impl FenceDisks {
    /// Serves the disks that are wanted. Caches are filled where the disks are to be written rather than to have a file
    /// system. `on_progress` is told what is being made, what is done, and what that is of.
    ///
    /// # Errors
    /// Files, sockets or the daemon cannot be had, or `stop` was set.
    pub fn prepare(
        request: &FenceRequest<'_>,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, FenceError> {
        let FenceRequest {
            folder, run_name, adapter, settings, options, names, size_bytes, contents, ..
        } = *request;
        let sockets = SocketFolder::new(&std::env::temp_dir())?;
        let places = Places::new(folder, run_name, sockets.path(), options, names.len(), size_bytes)?;
        let mut devices = [None, None];
        for (device, place) in devices.iter_mut().zip(&places.devices) {
            let Some(place) = place else { continue };
            *device = Some(DeviceFile::make(place, stop, on_progress)?);
        }
        let config = checked(configuration(options, &places, names, size_bytes))?;
        if let Some(path) = request.configuration {
            fs::write(path, config.text()?)
                .map_err(|source| FenceError::File { path: path.to_owned(), source })?;
        }
        virtbench_fence_daemon::format(&config, true)?;
        if let (Contents::Empty(Some(filesystem)), Some(Some(home))) =
            (contents, places.devices.iter().find(|place| place.is_some()))
        {
            configuration::put_filesystems(home, &config, filesystem)?;
        }
        if let (false, Some(Some(home))) =
            (request.images.is_empty(), places.devices.iter().find(|place| place.is_some()))
        {
            configuration::put_images(home, &config, request.images)?;
        }
        if options.is_cached() && contents == Contents::Written {
            let served = Served::start(checked(warming(options, &places, names, size_bytes))?)?;
            served::fill(request, &places.nbd, stop, on_progress)?;
            drop(served);
        }
        let served = Served::start(config)?;
        let iops = options.iops.unwrap_or_else(|| capacity_iops(&places, names.len()));
        let mut host = Vec::new();
        if options.on_host {
            let attach = |name: &String| HostDevice::attach(&places.nbd, name);
            host = names.iter().map(attach).collect::<Result<Vec<_>, _>>()?;
        }
        let disk = |(index, name): (usize, &String)| {
            let mut disk = GuestDisk::new(adapter, places.home().to_owned());
            disk.settings = settings.clone();
            disk.shared = true;
            if let Some(device) = host.get(index) {
                disk.path = device.path().to_owned();
                disk.limits = (options.throttle == Throttle::Blkio).then(|| limits(iops, request.warm));
                return disk;
            }
            disk.server = Some(match adapter.transport {
                Transport::VhostUser => places.socket(name),
                Transport::Qemu => places.nbd.clone(),
            });
            disk.export = Some(name.clone());
            disk.throttle_iops = (options.throttle == Throttle::Qemu).then_some(iops);
            disk
        };
        let disks = names.iter().enumerate().map(disk).collect();
        Ok(Self { disks, _host: host, _served: served, _sockets: sockets, _devices: devices })
    }

    /// The disk of each machine.
    #[must_use]
    pub fn disks(&self) -> &[GuestDisk] {
        &self.disks
    }
}

/// A rate as the host's kernel takes it, which counts reads and writes apart: divided as the accesses are, halves where
/// those are not known.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn limits(iops: u32, access: Option<&AccessSpec>) -> IoLimits {
    let weighed = |of: fn(&AccessLine) -> f64| -> f64 {
        let lines = access.iter().flat_map(|access| &access.lines);
        lines.map(|line| line.share_percent * f64::from(line.burst) * of(line)).sum()
    };
    let all = weighed(|_| 100.0);
    let reads = if all > 0.0 { weighed(|line| line.read_percent) / all } else { 0.5 };
    let part = |share: f64| ((f64::from(iops) * share).round() as u32).max(1);
    IoLimits { read_iops: part(reads), write_iops: part(1.0 - reads) }
}

fn checked(config: Config) -> Result<Config, FenceError> {
    config.check().map_err(FenceError::Configuration)?;
    Ok(config)
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
