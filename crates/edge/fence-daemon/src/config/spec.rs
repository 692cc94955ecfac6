//! How devices and sizes are written.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use virtbench_units::parse_bytes;

use super::emulated::{Emulated, EmulatedKind};

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
