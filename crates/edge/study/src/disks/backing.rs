//! Where a configuration's blocks are kept ([VirtualFence 2013], section 4.2: files and partitions; here more).

use std::fmt;

use virtbench_lab::Preallocation;
use virtbench_units::{format_bytes, parse_bytes};

use crate::disks::backing_error::BackingError;
use crate::fence::FenceOptions;

/// qcow2's own cluster size, in bytes.
const CLUSTER_BYTES: u64 = 64 << 10;

/// What keeps the blocks of a guest's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// A raw file.
    Raw,
    /// A qcow2 image.
    Qcow2 {
        /// Size of a cluster, in bytes.
        cluster_bytes: u64,
        /// What was allocated before its blocks were written.
        preallocation: Preallocation,
    },
    /// A loop device over a raw file.
    Loop,
    /// A qcow2 image over a raw file that holds all blocks at first.
    Overlay {
        /// Size of a cluster, in bytes.
        cluster_bytes: u64,
    },
    /// A raw file behind an NBD server on a Unix socket.
    Nbd,
    /// A disk of the fence's daemon.
    Fence(FenceOptions),
}

impl Backing {
    /// Reads `NAME[,setting=value...]`.
    ///
    /// # Errors
    /// An unknown name or setting, or a value that makes no sense.
    pub fn parse(text: &str) -> Result<Self, BackingError> {
        let (name, settings) = text.split_once(',').unwrap_or((text, ""));
        let mut backing = match name {
            "raw" => Self::Raw,
            "qcow2" => Self::Qcow2 { cluster_bytes: CLUSTER_BYTES, preallocation: Preallocation::Off },
            "loop" => Self::Loop,
            "overlay" => Self::Overlay { cluster_bytes: CLUSTER_BYTES },
            "nbd" => Self::Nbd,
            "fence" => Self::Fence(FenceOptions::plain()?),
            _ => return Err(BackingError::Unknown { name: name.to_owned() }),
        };
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            if let Self::Fence(options) = &mut backing
                && options.set(key, value)?
            {
                continue;
            }
            match (&mut backing, key) {
                (Self::Qcow2 { cluster_bytes, .. } | Self::Overlay { cluster_bytes }, "cluster") => {
                    *cluster_bytes = cluster(value)?;
                }
                (Self::Qcow2 { preallocation, .. }, "prealloc") => *preallocation = prealloc(value)?,
                _ => {
                    let (backing, setting) = (name.to_owned(), setting.to_owned());
                    return Err(BackingError::Setting { backing, setting });
                }
            }
        }
        Ok(backing)
    }

    /// What it is, in words.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            Self::Raw => "a raw file".into(),
            Self::Qcow2 { cluster_bytes, preallocation } => format!(
                "a qcow2 image, clusters of {}, preallocation={}",
                format_bytes(*cluster_bytes),
                preallocation.name()
            ),
            Self::Loop => "a loop device with direct I/O over a raw file".into(),
            Self::Overlay { cluster_bytes } => {
                format!("a qcow2 image, clusters of {}, on a raw backing file", format_bytes(*cluster_bytes))
            }
            Self::Nbd => "a raw file served by qemu-storage-daemon over NBD on a Unix socket".into(),
            Self::Fence(options) => options.description(),
        }
    }

    /// How its blocks were allocated before anything was measured, in words.
    #[must_use]
    pub fn preparation(&self) -> &'static str {
        match self {
            Self::Raw | Self::Loop | Self::Nbd => {
                "every block written once with data that neither compresses nor repeats; one file for all \
                 configurations on it"
            }
            Self::Qcow2 { .. } => {
                "the raw file's blocks copied into it, every cluster written; an image for each configuration"
            }
            Self::Fence(_) => {
                "emulated devices have no blocks at first, since a model says how long they take; files are written \
                 once like the raw file; caches are filled by reading at random"
            }
            Self::Overlay { .. } => {
                "the backing file written like the raw file, the image over it empty at first: the first write to a \
                 cluster copies it, so that its writes get cheaper as the run goes on"
            }
        }
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cluster = |cluster_bytes: u64| match cluster_bytes {
            CLUSTER_BYTES => String::new(),
            bytes if bytes % (1 << 20) == 0 => format!(",cluster={}m", bytes >> 20),
            bytes if bytes % 1024 == 0 => format!(",cluster={}k", bytes >> 10),
            bytes => format!(",cluster={bytes}"),
        };
        match self {
            Self::Raw => f.write_str("raw"),
            Self::Loop => f.write_str("loop"),
            Self::Nbd => f.write_str("nbd"),
            Self::Fence(options) => options.fmt(f),
            Self::Overlay { cluster_bytes } => write!(f, "overlay{}", cluster(*cluster_bytes)),
            Self::Qcow2 { cluster_bytes, preallocation: Preallocation::Off } => {
                write!(f, "qcow2{}", cluster(*cluster_bytes))
            }
            Self::Qcow2 { cluster_bytes, preallocation } => {
                write!(f, "qcow2{},prealloc={}", cluster(*cluster_bytes), preallocation.name())
            }
        }
    }
}

fn cluster(value: &str) -> Result<u64, BackingError> {
    parse_bytes(value)
        .ok()
        .filter(|bytes| bytes.is_power_of_two() && (512..=2 << 20).contains(bytes))
        .ok_or_else(|| BackingError::Value {
            name: "cluster",
            value: value.to_owned(),
            expected: "a power of two from 512 bytes to 2 MiB",
        })
}

fn prealloc(value: &str) -> Result<Preallocation, BackingError> {
    Preallocation::ALL.into_iter().find(|one| one.name() == value).ok_or_else(|| BackingError::Value {
        name: "prealloc",
        value: value.to_owned(),
        expected: "it is off, metadata, falloc or full",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_without_what_is_the_default() {
        for (text, name) in [
            ("raw", "raw"),
            ("qcow2", "qcow2"),
            ("qcow2,cluster=64k,prealloc=off", "qcow2"),
            ("qcow2,cluster=2MiB,prealloc=full", "qcow2,cluster=2m,prealloc=full"),
            ("overlay,cluster=4k", "overlay,cluster=4k"),
            ("qcow2,cluster=512", "qcow2,cluster=512"),
            ("nbd", "nbd"),
            ("fence,scheduler=VirtualFence,slow=hdd,fast=ssd,cache=50", "fence"),
            ("fence,scheduler=mclock,iops=16,fast=none", "fence,scheduler=mclock,iops=16"),
            (
                "fence,scheduler=paced,fast=ssd,profile=paper-fit",
                "fence,scheduler=paced,fast=ssd,profile=paper-fit",
            ),
            (
                "fence,slow=file,fast=file,cache=10%,slot=5ms",
                "fence,slow=file,fast=file,cache=10%,slot=5000us",
            ),
            ("fence,scheduler=pass-through,throttle=on", "fence,scheduler=pass-through,throttle=on"),
            ("fence,scheduler=fifo,attach=host", "fence,scheduler=fifo,attach=host"),
            ("fence,attach=host,throttle=blkio", "fence,throttle=blkio"),
        ] {
            let backing = Backing::parse(text).unwrap();
            assert_eq!(backing.to_string(), name);
            assert_eq!(Backing::parse(name), Ok(backing));
        }
    }

    #[test]
    fn impossible_ones_are_named() {
        for (text, word) in [
            ("tape", "no backing \"tape\""),
            ("raw,cluster=4k", "raw takes no \"cluster=4k\""),
            ("overlay,prealloc=full", "overlay takes no"),
            ("qcow2,cluster=3k", "cluster=3k"),
            ("qcow2,prealloc=some", "prealloc=some"),
            ("fence,scheduler=best", "scheduler=best"),
            ("fence,fast=none", "fast=none"),
            ("fence,rpm=9", "fence takes no \"rpm=9\""),
            ("fence,cache=200%", "cache=200%"),
            ("fence,throttle=blkio,attach=daemon", "attach=daemon"),
        ] {
            let message = Backing::parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
