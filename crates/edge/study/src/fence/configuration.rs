//! The daemon's configuration of a study's disks, and the files that its devices are made of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_engine::{Target, TargetRequest};
use virtbench_fence::catalogue::{self, Placement, Rates, Variant};
use virtbench_fence_daemon::config::{
    CacheTable, Config, DeviceSpec, DeviceTable, DiskTable, Emulated, EmulatedKind, Limits, Listen, NbdTable,
    PredictTable, SchedulerTable, Size,
};
use virtbench_fence_sim::calibrate::calibrate;
use virtbench_fence_sim::disk::{HddModel, Order, SsdModel};
use virtbench_lab::{Filesystem, make_filesystem};

use super::{FenceError, FenceOptions, Medium};
use crate::disks::disk::hold;

/// Room for a label, and what partitions are aligned to, in bytes.
const MIB: u64 = 1 << 20;

/// Blocks of memory and of the cache that each partition keeps for itself.
const FREE_TARGET: u32 = 128;

/// Of the drives' chance.
const SEED: u64 = 1;

/// Where everything is.
#[derive(Debug)]
pub(super) struct Places {
    /// The slow and the fast device, where they are used.
    pub(super) devices: [Option<DeviceRequest>; 2],
    /// The NBD server's socket.
    pub(super) nbd: PathBuf,
    sockets: PathBuf,
}

impl Places {
    pub(super) fn new(
        folder: &Path,
        run_name: &str,
        sockets: &Path,
        options: &FenceOptions,
        disks: usize,
        size_bytes: u64,
    ) -> Result<Self, FenceError> {
        let failed = |source| FenceError::File { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let place = |name: &str, size_bytes: u64, medium| DeviceRequest {
            path: folder.join(format!("virtbench-{run_name}-{name}.img")),
            size_bytes,
            medium,
        };
        let sizes = sizes(options, disks, size_bytes);
        let slow = options.scheduler.needs_slow().then(|| place("slow", sizes[0], options.slow));
        let fast = options.fast.map(|medium| place("fast", sizes[1], medium));
        Ok(Self { devices: [slow, fast], nbd: sockets.join("nbd.sock"), sockets: sockets.to_owned() })
    }

    pub(super) fn socket(&self, name: &str) -> PathBuf {
        self.sockets.join(format!("{name}.sock"))
    }

    /// The device that disks live on.
    pub(super) fn home(&self) -> &Path {
        self.devices.iter().flatten().next().map_or(&self.sockets, |place| &place.path)
    }

    /// The hard disk that is emulated: its file is the part that [VirtualFence 2013]'s virtual disks had of theirs, 60 GB of 160.
    fn hdd(&self) -> HddModel {
        let size_bytes = self.devices[0].as_ref().map(|place| place.size_bytes);
        let plain = HddModel::default();
        HddModel { capacity_bytes: size_bytes.map_or(plain.capacity_bytes, |bytes| bytes / 3 * 8), ..plain }
    }
}

/// How large the slow and the fast device are for so many disks, in bytes.
pub(crate) fn sizes(options: &FenceOptions, disks: usize, size_bytes: u64) -> [u64; 2] {
    let all = MIB + size_bytes.next_multiple_of(MIB) * disks as u64;
    let cache = cache_bytes(options, size_bytes) * disks as u64;
    // The log and the superblocks take a few percent.
    let cached = 16 * MIB + cache + cache / 8;
    let fast = if options.scheduler.needs_slow() { cached } else { all };
    [all, fast.next_multiple_of(MIB)]
}

/// Each disk's part of the cache, whole blocks, and what a partition keeps free on top.
fn cache_bytes(options: &FenceOptions, size_bytes: u64) -> u64 {
    let blocks = size_bytes / 4096 * u64::from(options.cache_percent) / 100;
    (blocks + u64::from(FREE_TARGET)) * 4096
}

/// What each of so many disks may do a second where nobody says: its part of what the slow device does at random.
pub(super) fn capacity_iops(places: &Places, disks: usize) -> u32 {
    places.hdd().random_iops(disks)
}

/// The whole configuration.
pub(super) fn configuration(
    options: &FenceOptions,
    places: &Places,
    names: &[String],
    size_bytes: u64,
) -> Config {
    let hdd = EmulatedKind::Hdd { model: places.hdd(), sized: true, order: Order::Scan };
    let kinds = [hdd, EmulatedKind::Ssd(SsdModel::new(options.profile))];
    let devices = [0, 1].map(|index| {
        let DeviceRequest { path, medium, .. } = places.devices[index].clone()?;
        let kind = kinds[index];
        Some(match medium {
            Medium::File => DeviceSpec::File(path),
            Medium::Emulated => DeviceSpec::Emulated(Emulated { path, kind, seed: SEED, sync: false }),
        })
    });
    on_devices(options, places, names, size_bytes, options.scheduler, devices)
}

/// The same devices as plain files, everything as fast as it goes.
pub(super) fn warming(options: &FenceOptions, places: &Places, names: &[String], size_bytes: u64) -> Config {
    let scheduler = match options.scheduler.placement {
        Placement::Shared => &catalogue::HYBRID_SHARED,
        Placement::Slow | Placement::Fast | Placement::Partitioned => &catalogue::HYBRID_PARTITIONED,
    };
    let plain =
        |place: &Option<DeviceRequest>| place.as_ref().map(|place| DeviceSpec::File(place.path.clone()));
    on_devices(options, places, names, size_bytes, scheduler, places.devices.each_ref().map(plain))
}

fn on_devices(
    options: &FenceOptions,
    places: &Places,
    names: &[String],
    size_bytes: u64,
    scheduler: &'static Variant,
    devices: [Option<DeviceSpec>; 2],
) -> Config {
    let iops = options.iops.unwrap_or_else(|| capacity_iops(places, names.len()));
    let disks = names.iter().map(|name| disk(options, places, name, size_bytes, scheduler.rates, iops));
    let [slow, fast] = devices.map(|device| device.map(DeviceTable::new));
    Config {
        slow,
        fast,
        cache: CacheTable { free_target: FREE_TARGET, ..CacheTable::default() },
        scheduler: SchedulerTable {
            name: scheduler,
            slot_ms: options.slot_us as f64 / 1e3,
            predict: predictions(options, places),
            ..SchedulerTable::default()
        },
        // Requests of 64 KiB find room in the smallest caches.
        limits: Limits { max_request: Size(64 << 10), ..Limits::default() },
        nbd: Some(NbdTable::new(vec![Listen::Unix(places.nbd.clone())])),
        ..Config::new(disks.collect())
    }
}

/// What calibrating the models gives; what is usual where it gives nothing.
fn predictions(options: &FenceOptions, places: &Places) -> PredictTable {
    calibrate(&places.hdd(), &SsdModel::new(options.profile), 4096, SEED)
        .map_or_else(|_| PredictTable::default(), |found| PredictTable::from(&found.predictors))
}

fn disk(
    options: &FenceOptions,
    places: &Places,
    name: &str,
    size_bytes: u64,
    rates: Rates,
    iops: u32,
) -> DiskTable {
    let iops = Some(u64::from(iops));
    let (limit, reservation_and_limit) = match rates {
        Rates::None => (None, None),
        Rates::Limit => (iops, None),
        Rates::ReservationAndLimit => (None, iops),
    };
    DiskTable {
        cache: options.is_cached().then(|| Size(cache_bytes(options, size_bytes))),
        iops: limit,
        reservation_iops: reservation_and_limit,
        limit_iops: reservation_and_limit,
        socket: Some(places.socket(name)),
        export: Some(name.to_owned()),
        ..DiskTable::new(name.to_owned(), size_bytes)
    }
}

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
