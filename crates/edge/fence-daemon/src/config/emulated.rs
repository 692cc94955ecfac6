//! How emulated devices are written: `hdd:PATH?rpm=7200&seek=11ms`, `ssd:PATH?profile=paper-fit`.

use std::path::PathBuf;

use virtbench_fence_sim::disk::{DiskError, HddModel, Order, SsdModel, SsdProfile};
use virtbench_units::{parse_bytes, parse_duration_ns};

/// A model over a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Emulated {
    /// The file that has the data.
    pub path: PathBuf,
    /// What behaves.
    pub kind: EmulatedKind,
    /// Of its chance: rotation, erasures.
    pub seed: u64,
    /// Whether a flush syncs the file.
    pub sync: bool,
}

/// Which model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EmulatedKind {
    /// A hard disk.
    Hdd {
        /// Its parameters; the capacity counts only if it was given.
        model: HddModel,
        /// Whether the capacity was given. A disk is as large as its file otherwise.
        sized: bool,
        /// In which order it serves what it holds.
        order: Order,
    },
    /// A solid-state drive.
    Ssd(SsdModel),
}

impl Emulated {
    /// The hard disk's parameters over a file of this size; nothing for a solid-state drive.
    #[must_use]
    pub fn hdd(&self, file_bytes: u64) -> Option<HddModel> {
        match self.kind {
            EmulatedKind::Hdd { model, sized: true, .. } => Some(model),
            EmulatedKind::Hdd { model, .. } => Some(HddModel { capacity_bytes: file_bytes, ..model }),
            EmulatedKind::Ssd(_) => None,
        }
    }

    /// Whether a file of this size is such a device.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, file_bytes: u64) -> Result<(), String> {
        let fits = self.hdd(file_bytes).is_none_or(|model| model.capacity_bytes >= file_bytes);
        if file_bytes > 0 && fits {
            return Ok(());
        }
        Err(format!("has {file_bytes} bytes: give it some, and no more than capacity= says"))
    }

    /// The simulator's default drive, with `options`.
    pub(super) fn hard_disk(path: PathBuf, options: &[(String, String)]) -> Result<Self, String> {
        let (mut model, mut sized, mut order) = (HddModel::default(), false, Order::Scan);
        let (mut seed, mut sync) = (1, true);
        for (name, value) in options {
            match name.as_str() {
                "rpm" => model.rpm = number(name, value)?,
                "seek" => {
                    let factor = time_ns(name, value)? / 1e6 / model.seek.mean_ms();
                    model.seek.settle_ms *= factor;
                    model.seek.root_ms *= factor;
                    model.seek.linear_ms *= factor;
                }
                "rate" => model.bytes_per_s = bytes(name, value)? as f64,
                "capacity" => (model.capacity_bytes, sized) = (bytes(name, value)?, true),
                "order" => {
                    order = match value.as_str() {
                        "scan" => Order::Scan,
                        "arrival" => Order::Arrival,
                        _ => return Err(format!("order={value}: it is scan or arrival")),
                    }
                }
                _ => common(name, value, &mut seed, &mut sync, "rpm, seek, rate, capacity, order")?,
            }
        }
        model.check().map_err(|error: DiskError| error.to_string())?;
        Ok(Self { path, kind: EmulatedKind::Hdd { model, sized, order }, seed, sync })
    }

    /// A profile's drive, with `options`; a profile comes before what it is changed by.
    pub(super) fn solid_state(path: PathBuf, options: &[(String, String)]) -> Result<Self, String> {
        let mut model = SsdModel::of(SsdProfile::Spec);
        let (mut seed, mut sync) = (1, true);
        for (name, value) in options {
            match name.as_str() {
                "profile" => {
                    let profile = value.parse::<SsdProfile>();
                    model = SsdModel::of(
                        profile.map_err(|_| format!("profile={value}: it is spec or paper-fit"))?,
                    );
                }
                "read" => model.read_us = time_ns(name, value)? / 1e3,
                "write" => model.write_us = time_ns(name, value)? / 1e3,
                _ => common(name, value, &mut seed, &mut sync, "profile, read, write")?,
            }
        }
        model.check().map_err(|error| error.to_string())?;
        Ok(Self { path, kind: EmulatedKind::Ssd(model), seed, sync })
    }
}

fn common(name: &str, value: &str, seed: &mut u64, sync: &mut bool, others: &str) -> Result<(), String> {
    match (name, value) {
        ("seed", _) => *seed = value.parse().map_err(|_| format!("seed={value}: it is a whole number"))?,
        ("sync", "on") => *sync = true,
        ("sync", "off") => *sync = false,
        ("sync", _) => return Err(format!("sync={value}: it is on or off")),
        _ => return Err(format!("{name:?} is no option of this device: there are {others}, seed, sync")),
    }
    Ok(())
}

fn number(name: &str, value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{name}={value}: it is a number"))
}

fn time_ns(name: &str, value: &str) -> Result<f64, String> {
    parse_duration_ns(value).map(|ns| ns as f64).map_err(|error| format!("{name}={value}: {error}"))
}

fn bytes(name: &str, value: &str) -> Result<u64, String> {
    parse_bytes(value).map_err(|error| format!("{name}={value}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceSpec;

    fn read(text: &str) -> Result<Emulated, String> {
        match text.parse()? {
            DeviceSpec::Emulated(emulated) => Ok(emulated),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn options_change_the_model() {
        let disk = read("hdd:/a/b?rpm=15000&seek=3500us&capacity=160g&rate=120MiB&seed=7&sync=off").unwrap();
        let model = disk.hdd(1 << 30).unwrap();
        assert_eq!((disk.seed, disk.sync, disk.path.to_str().unwrap()), (7, false, "/a/b"));
        assert!((model.seek.mean_ms() - 3.5).abs() < 1e-9 && (model.rpm - 15_000.0).abs() < 1e-9);
        assert_eq!(model.capacity_bytes, 160 << 30);
        assert!(disk.check(161 << 30).is_err() && disk.check(160 << 30).is_ok() && disk.check(0).is_err());
        assert_eq!(read("hdd:/a").unwrap().hdd(12345).unwrap().capacity_bytes, 12345);
        let drive = read("ssd:/a?profile=paper-fit&read=100us").unwrap();
        let EmulatedKind::Ssd(model) = drive.kind else { panic!() };
        assert!((model.read_us - 100.0).abs() < 1e-9 && (model.write_us - 396.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_disk_is_refused_by_its_option() {
        for (text, word) in [
            ("hdd:/a?rpm=0", "rpm"),
            ("hdd:/a?rpm=fast", "rpm=fast"),
            ("hdd:/a?profile=spec", "profile"),
            ("hdd:/a?seek=11", "seek=11"),
            ("hdd:/a?order=best", "scan or arrival"),
            ("ssd:/a?profile=fast", "paper-fit"),
            ("ssd:/a?read=0ms", "read_us"),
            ("ssd:/a?rpm=7200", "no option"),
            ("ssd:/a?sync=maybe", "on or off"),
            ("hdd:/a?seed", "name=value"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
