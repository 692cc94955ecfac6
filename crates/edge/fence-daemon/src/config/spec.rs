//! How devices and sizes are written.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use virtbench_fence_sim::disk::{DiskError, HddModel, Order, SsdModel, SsdProfile};
use virtbench_units::{parse_bytes, parse_duration_ns};

/// A number of bytes, written as a number or as `"10 GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size in bytes, such as 1073741824 or \"1 GiB\"")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Size, E> {
                u64::try_from(value).map(Size).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Size, E> {
                Ok(Size(value))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Size, E> {
                parse_bytes(value).map(Size).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A physical device, as the configuration names it.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceSpec {
    /// `file:PATH`: a file, a block device or a loop device, past the page cache.
    File(PathBuf),
    /// `buffered:PATH`: the same through the page cache. What was flushed is on the device all the same.
    Buffered(PathBuf),
    /// `hdd:PATH[?option=value&...]` and `ssd:PATH[?option=value&...]`: a hard disk's or a solid-state drive's behaviour
    /// over a file.
    Emulated(Emulated),
    /// `null:SIZE`: nothing, at once.
    Null {
        /// Its size in bytes.
        size_bytes: u64,
    },
}

impl DeviceSpec {
    /// The text that it is read from, with all options.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Emulated(emulated) => emulated.text(),
            plain => plain.to_string(),
        }
    }

    /// The file behind it, if there is one.
    #[must_use]
    pub const fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) | Self::Buffered(path) | Self::Emulated(Emulated { path, .. }) => Some(path),
            Self::Null { .. } => None,
        }
    }
}

impl FromStr for DeviceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').ok_or_else(|| unknown(text))?;
        if rest.is_empty() {
            return Err(format!("{text:?}: nothing follows {kind}:"));
        }
        match kind {
            "file" => Ok(Self::File(rest.into())),
            "buffered" => Ok(Self::Buffered(rest.into())),
            "null" => parse_bytes(rest)
                .map(|size_bytes| Self::Null { size_bytes })
                .map_err(|error| format!("{text:?}: {error}")),
            "hdd" => options(rest)
                .and_then(|(path, options)| Emulated::hard_disk(path, &options))
                .map(Self::Emulated),
            "ssd" => options(rest)
                .and_then(|(path, options)| Emulated::solid_state(path, &options))
                .map(Self::Emulated),
            _ => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> String {
    format!("{text:?} is no device: use file:PATH, buffered:PATH, hdd:PATH?rpm=7200, ssd:PATH or null:SIZE")
}

fn options(text: &str) -> Result<(PathBuf, Vec<(String, String)>), String> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let option = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("{pair:?} is no option: write name=value")),
    };
    let options = query.split('&').filter(|pair| !pair.is_empty()).map(option).collect::<Result<_, _>>()?;
    Ok((path.into(), options))
}

/// Without options.
impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Buffered(path) => write!(f, "buffered:{}", path.display()),
            Self::Emulated(Emulated { path, kind: EmulatedKind::Hdd { .. }, .. }) => {
                write!(f, "hdd:{}", path.display())
            }
            Self::Emulated(Emulated { path, .. }) => write!(f, "ssd:{}", path.display()),
            Self::Null { size_bytes } => write!(f, "null:{size_bytes}"),
        }
    }
}

impl Serialize for DeviceSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for DeviceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(Error::custom)
    }
}

/// The seed where none is given.
const SEED: u64 = 1;

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

    /// The text that it is read from: what is not as usual comes as options.
    #[must_use]
    pub fn text(&self) -> String {
        let path = self.path.display();
        let (kind, mut options) = match self.kind {
            EmulatedKind::Hdd { model, sized, order } => ("hdd", hard_disk_options(&model, sized, order)),
            EmulatedKind::Ssd(model) => ("ssd", solid_state_options(&model)),
        };
        if self.seed != SEED {
            options.push(format!("seed={}", self.seed));
        }
        if !self.sync {
            options.push("sync=off".to_owned());
        }
        let separator = if options.is_empty() { "" } else { "?" };
        format!("{kind}:{path}{separator}{}", options.join("&"))
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
        let (mut seed, mut sync) = (SEED, true);
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
        let mut model = SsdModel::new(SsdProfile::Spec);
        let (mut seed, mut sync) = (SEED, true);
        for (name, value) in options {
            match name.as_str() {
                "profile" => {
                    let profile = value.parse::<SsdProfile>();
                    model = SsdModel::new(
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

fn hard_disk_options(model: &HddModel, sized: bool, order: Order) -> Vec<String> {
    let usual = HddModel::default();
    let different =
        |name: &str, is: f64, was: f64, text: String| (is != was).then(|| format!("{name}={text}"));
    let seek_ms = model.seek.mean_ms();
    let options = [
        different("rpm", model.rpm, usual.rpm, model.rpm.to_string()),
        different("seek", seek_ms, usual.seek.mean_ms(), written_ns(seek_ms * 1e6)),
        different("rate", model.bytes_per_s, usual.bytes_per_s, model.bytes_per_s.to_string()),
        sized.then(|| format!("capacity={}", model.capacity_bytes)),
        (order == Order::Arrival).then(|| "order=arrival".to_owned()),
    ];
    options.into_iter().flatten().collect()
}

fn solid_state_options(model: &SsdModel) -> Vec<String> {
    let profile = SsdProfile::ALL.into_iter().find(|profile| {
        let SsdModel { read_us, write_us, .. } = *model;
        SsdModel { read_us, write_us, ..SsdModel::new(*profile) } == *model
    });
    let profile = profile.unwrap_or(SsdProfile::Spec);
    let usual = SsdModel::new(profile);
    let mut options = vec![format!("profile={}", profile.name())];
    for (name, us, usual_us) in
        [("read", model.read_us, usual.read_us), ("write", model.write_us, usual.write_us)]
    {
        if us != usual_us {
            options.push(format!("{name}={}", written_ns(us * 1e3)));
        }
    }
    options
}

/// As [`time_ns`] reads it.
fn written_ns(ns: f64) -> String {
    format!("{}ns", ns.round())
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
    fn a_device_is_written_as_it_is_read() {
        for text in [
            "hdd:/a/b",
            "hdd:/a/b?rpm=15000&seek=3500000ns&rate=120000000&capacity=163840&order=arrival&seed=7&sync=off",
            "ssd:/a?profile=spec&seed=2",
            "ssd:/a?profile=paper-fit&read=100000ns&write=250ns",
        ] {
            let emulated = read(text).unwrap();
            assert_eq!((emulated.text().as_str(), read(&emulated.text())), (text, Ok(emulated)));
        }
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
