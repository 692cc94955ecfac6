//! The backing `fence` as a user writes it: `fence,scheduler=VirtualFence,slow=hdd,fast=ssd,cache=50%`.

use std::fmt;

use virtbench_fence::catalogue::{self, Variant};
use virtbench_fence_daemon::config::served_variant;
use virtbench_fence_sim::disk::SsdProfile;
use virtbench_units::parse_duration_ns;

use crate::disks::backing_error::BackingError;

/// How much of each disk its cache holds where nothing is said, percent.
const CACHE_PERCENT: u32 = 50;
/// Length of a slot where nothing is said, microseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some ten milliseconds
const SLOT_US: u64 = (catalogue::SLOT_MS * 1e3) as u64;

/// What a physical device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A file in the folder for disks: the storage under it.
    File,
    /// A model over such a file: a hard disk as the slow device, a solid-state drive as the fast one.
    Emulated,
}

/// What holds a guest to its rate outside the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// Nothing.
    Off,
    /// A throttle group of QEMU.
    Qemu,
    /// The host's kernel, by a cgroup; the disk is a block device of the host then.
    Blkio,
}

/// Disks of the fence's daemon, all on one pair of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceOptions {
    /// Who is served when, and on which devices.
    pub scheduler: &'static Variant,
    /// The slow device.
    pub slow: Medium,
    /// The fast one; disks live on the slow one alone without it.
    pub fast: Option<Medium>,
    /// Which solid-state drive is emulated.
    pub profile: SsdProfile,
    /// How much of each disk its cache holds, percent.
    pub cache_percent: u32,
    /// Length of a slot, microseconds.
    pub slot_us: u64,
    /// What each disk may do a second under schedulers that count I/Os; its part of what the slow device does without it.
    pub iops: Option<u32>,
    /// What else holds each guest to that.
    pub throttle: Throttle,
    /// Each disk is a block device of the host, which QEMU opens as any other.
    pub on_host: bool,
}

impl Default for FenceOptions {
    fn default() -> Self {
        Self::for_scheduler(&catalogue::VIRTUAL_FENCE)
    }
}

impl FenceOptions {
    /// A scheduler with the emulated devices that it needs.
    #[must_use]
    pub const fn for_scheduler(scheduler: &'static Variant) -> Self {
        let fast = if scheduler.needs_fast() { Some(Medium::Emulated) } else { None };
        Self {
            scheduler,
            slow: Medium::Emulated,
            fast,
            profile: SsdProfile::Spec,
            cache_percent: CACHE_PERCENT,
            slot_us: SLOT_US,
            iops: None,
            throttle: Throttle::Off,
            on_host: false,
        }
    }

    /// The backing `fence` without any setting.
    pub(crate) fn plain() -> Result<Self, BackingError> {
        Ok(Self::default())
    }

    /// Whether each disk is made a block device of the host.
    pub(crate) const fn is_on_host(&self) -> bool {
        self.on_host
    }

    /// Whether the host's kernel limits each disk.
    pub(crate) fn is_limited_by_host(&self) -> bool {
        self.throttle == Throttle::Blkio
    }

    /// Whether QEMU limits what a guest does on it.
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttle == Throttle::Qemu
    }

    /// Whether the fast device caches the slow one.
    #[must_use]
    pub const fn is_cached(&self) -> bool {
        self.scheduler.needs_slow() && self.fast.is_some()
    }

    /// Changes one setting; false if there is none of that name.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, BackingError> {
        let wrong = |name, expected| BackingError::Value { name, value: value.to_owned(), expected };
        match name {
            "scheduler" => {
                let scheduler = served_variant(value).map_err(|_| {
                    wrong("scheduler", "virtbench fence serve names them in its configuration")
                })?;
                // It says which devices there are, unless what follows says otherwise.
                *self = Self { fast: Self::for_scheduler(scheduler).fast, scheduler, ..*self };
            }
            "slow" => {
                self.slow = match value {
                    "hdd" => Medium::Emulated,
                    "file" => Medium::File,
                    _ => return Err(wrong("slow", "it is hdd or file")),
                }
            }
            "fast" => {
                self.fast = match value {
                    "ssd" => Some(Medium::Emulated),
                    "file" => Some(Medium::File),
                    "none" if !self.scheduler.needs_fast() => None,
                    _ => {
                        return Err(wrong(
                            "fast",
                            "it is ssd, file, or none where the scheduler does without",
                        ));
                    }
                }
            }
            "profile" => {
                self.profile = value.parse().map_err(|_| wrong("profile", "it is spec or paper-fit"))?;
            }
            "cache" => {
                let percent = value.trim_end_matches('%').parse().ok();
                self.cache_percent = percent
                    .filter(|percent| (1..=100).contains(percent))
                    .ok_or_else(|| wrong("cache", "it is 1% to 100% of each disk"))?;
            }
            "slot" => {
                let ns = parse_duration_ns(value).ok().filter(|ns| (1_000_000..=10_000_000_000).contains(ns));
                self.slot_us = ns.ok_or_else(|| wrong("slot", "it is 1ms to 10s"))? / 1000;
            }
            "iops" => {
                let iops = value.parse().ok().filter(|iops| *iops > 0);
                self.iops = Some(iops.ok_or_else(|| wrong("iops", "it is a number from 1"))?);
            }
            "throttle" => {
                self.throttle = match value {
                    "on" => Throttle::Qemu,
                    "blkio" => Throttle::Blkio,
                    "off" => Throttle::Off,
                    _ => return Err(wrong("throttle", "it is on, blkio or off")),
                };
                self.on_host |= self.throttle == Throttle::Blkio;
            }
            "attach" => {
                self.on_host = match value {
                    "host" => true,
                    "daemon" if self.throttle != Throttle::Blkio => false,
                    _ => return Err(wrong("attach", "it is host, or daemon without throttle=blkio")),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What it is, in words.
    pub(crate) fn description(&self) -> String {
        let slow = match self.slow {
            Medium::Emulated => "an emulated hard disk",
            Medium::File => "a file as the slow device",
        };
        let fast = match self.fast {
            Some(Medium::Emulated) => "an emulated solid-state drive",
            Some(Medium::File) => "a file as the fast device",
            None => "nothing",
        };
        let devices = match (self.scheduler.needs_slow(), self.fast) {
            (false, _) => fast.to_owned(),
            (true, None) => slow.to_owned(),
            (true, Some(_)) => format!("{slow} behind caches of {} % on {fast}", self.cache_percent),
        };
        let throttled = match self.throttle {
            Throttle::Off => "",
            Throttle::Qemu => ", each guest throttled by QEMU",
            Throttle::Blkio => ", each guest throttled by the host's kernel",
        };
        let on_host = if self.on_host { ", as a block device of the host" } else { "" };
        let name = self.scheduler.name;
        format!("a disk of the fence's daemon, {name} on {devices}{on_host}{throttled}")
    }
}

impl fmt::Display for FenceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = Self::for_scheduler(self.scheduler);
        f.write_str("fence")?;
        if *self.scheduler != catalogue::VIRTUAL_FENCE {
            write!(f, ",scheduler={}", self.scheduler.name)?;
        }
        if self.slow == Medium::File {
            f.write_str(",slow=file")?;
        }
        if self.fast != plain.fast {
            let fast = match self.fast {
                Some(Medium::Emulated) => "ssd",
                Some(Medium::File) => "file",
                None => "none",
            };
            write!(f, ",fast={fast}")?;
        }
        if self.profile != plain.profile {
            write!(f, ",profile={}", self.profile.name())?;
        }
        if self.cache_percent != plain.cache_percent {
            write!(f, ",cache={}%", self.cache_percent)?;
        }
        if self.slot_us != plain.slot_us {
            write!(f, ",slot={}us", self.slot_us)?;
        }
        if let Some(iops) = self.iops {
            write!(f, ",iops={iops}")?;
        }
        if self.on_host && self.throttle != Throttle::Blkio {
            f.write_str(",attach=host")?;
        }
        f.write_str(match self.throttle {
            Throttle::Off => "",
            Throttle::Qemu => ",throttle=on",
            Throttle::Blkio => ",throttle=blkio",
        })
    }
}
