//! The daemon's configuration of a study's disks, as TOML.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use virtbench_fence_daemon::config::SchedulerName;
use virtbench_fence_sim::calibrate::calibrate;
use virtbench_fence_sim::disk::{HddModel, SsdModel};

use super::device_file::Place;
use super::{FenceError, FenceOptions, Medium};

/// Room for a label, and what partitions are aligned to, in bytes.
const MIB: u64 = 1 << 20;
/// Blocks of memory and of the cache that each partition keeps for itself.
const FREE_TARGET: u64 = 128;
/// Of the drives' chance.
const SEED: u64 = 1;

/// Where everything is.
#[derive(Debug)]
pub(super) struct Places {
    /// The slow and the fast device, where they are used.
    pub(super) devices: [Option<Place>; 2],
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
        let place = |name: &str, size_bytes: u64, medium| Place {
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
    (blocks + FREE_TARGET) * 4096
}

/// What each of so many disks may do a second where nobody says: its part of what the slow device does at random.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
pub(super) fn capacity_iops(places: &Places, disks: usize) -> u32 {
    let hdd = places.hdd();
    let access_ms = hdd.seek.mean_ms() + hdd.revolution_ms() / 2.0 + 4096.0 / hdd.bytes_per_s * 1e3;
    ((1e3 / access_ms / disks.max(1) as f64) as u32).max(1)
}

/// The whole configuration.
pub(super) fn text(options: &FenceOptions, places: &Places, names: &[String], size_bytes: u64) -> String {
    let device = |place: &Place, slow: bool| match (place.medium, slow) {
        (Medium::File, _) => format!("file:{}", place.path.display()),
        (Medium::Emulated, true) => {
            let capacity_bytes = places.hdd().capacity_bytes;
            format!("hdd:{}?capacity={capacity_bytes}&sync=off&seed={SEED}", place.path.display())
        }
        (Medium::Emulated, false) => {
            let profile = match options.profile {
                virtbench_fence_sim::disk::SsdProfile::Spec => "spec",
                virtbench_fence_sim::disk::SsdProfile::PaperFit => "paper-fit",
            };
            format!("ssd:{}?profile={profile}&sync=off&seed={SEED}", place.path.display())
        }
    };
    written(options, places, names, size_bytes, options.scheduler, device)
}

/// The same devices as plain files, everything as fast as it goes.
pub(super) fn warming(options: &FenceOptions, places: &Places, names: &[String], size_bytes: u64) -> String {
    let scheduler = match options.scheduler {
        SchedulerName::HybridShared | SchedulerName::HybridSharedSlots => SchedulerName::HybridShared,
        _ => SchedulerName::HybridPartitioned,
    };
    written(options, places, names, size_bytes, scheduler, |place, _| {
        format!("file:{}", place.path.display())
    })
}

fn written(
    options: &FenceOptions,
    places: &Places,
    names: &[String],
    size_bytes: u64,
    scheduler: SchedulerName,
    device: impl Fn(&Place, bool) -> String,
) -> String {
    let mut text = String::new();
    for (table, place) in ["slow", "fast"].into_iter().zip(&places.devices) {
        if let Some(place) = place {
            let _ = writeln!(text, "[{table}]\ndevice = {:?}", device(place, table == "slow"));
        }
    }
    let _ = writeln!(text, "[cache]\nfree_target = {FREE_TARGET}");
    let _ = writeln!(
        text,
        "[scheduler]\nname = {:?}\nslot_ms = {:?}",
        scheduler.name(),
        options.slot_us as f64 / 1e3
    );
    if let Ok(calibration) = calibrate(&places.hdd(), &SsdModel::of(options.profile), 4096, SEED) {
        let knots: Vec<String> = calibration
            .predictors
            .slow
            .knots()
            .iter()
            .map(|knot| format!("[{}, {:?}]", knot.distance_bytes, knot.access_ns / 1e6))
            .collect();
        let fast = calibration.predictors.fast;
        let _ = writeln!(
            text,
            "[scheduler.predict]\nslow_knots = [{}]\nfast_base_us = {:?}\nfast_per_io_us = {:?}",
            knots.join(", "),
            fast.base_ns / 1e3,
            fast.per_io_ns / 1e3
        );
    }
    // Requests of 64 KiB find room in the smallest caches.
    let _ = writeln!(
        text,
        "[limits]\nmax_request = \"64 KiB\"\n[nbd]\nlisten = {:?}",
        format!("unix:{}", places.nbd.display())
    );
    let iops = options.iops.unwrap_or_else(|| capacity_iops(places, names.len()));
    for name in names {
        let _ = writeln!(text, "[[disk]]\nname = {name:?}\nsize = {size_bytes}\nexport = {name:?}");
        let _ = writeln!(text, "socket = {:?}", places.socket(name).display().to_string());
        if options.is_cached() {
            let _ = writeln!(text, "cache = {}", cache_bytes(options, size_bytes));
        }
        match scheduler {
            SchedulerName::TokenBucket => drop(writeln!(text, "iops = {iops}")),
            SchedulerName::Mclock => {
                let _ = writeln!(text, "reservation_iops = {iops}\nlimit_iops = {iops}");
            }
            _ => {}
        }
    }
    text
}
