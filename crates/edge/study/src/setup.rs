//! A configuration of a guest's disk as a user writes it: `ADAPTER[,setting=value...][@BACKING[,...]]`.

use std::fmt;

use thiserror::Error;
use virtbench_lab::{
    Adapter, DiskSettings, SettingError, Transport, UmlDiskKind, UnknownAdapter, find_adapter,
};
use virtbench_record::{BackingFacts, SetupFacts};

use crate::disks::backing::Backing;
use crate::disks::backing_error::BackingError;

/// The most configurations of one study.
const MAX_SETUPS: usize = 64;

/// A configuration that cannot be had.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SetupError {
    /// No such adapter.
    #[error(transparent)]
    Adapter(#[from] UnknownAdapter),
    /// A setting.
    #[error("{setup}: {source}")]
    Setting {
        /// The configuration.
        setup: String,
        /// What is wrong.
        source: SettingError,
    },
    /// A backing.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// Two that exclude each other.
    #[error("{setup}: {adapter} is served by qemu-storage-daemon itself: use another backing than nbd")]
    ServedTwice {
        /// The configuration.
        setup: String,
        /// The adapter.
        adapter: &'static str,
    },
    /// A server that a guest reaches past its host's block devices.
    #[error(
        "{setup}: {adapter} passes the host's block devices by: leave out attach=host and throttle=blkio"
    )]
    PassesHost {
        /// The configuration.
        setup: String,
        /// The adapter.
        adapter: &'static str,
    },
    /// The same twice.
    #[error("{0} is there twice: leave one out")]
    Twice(String),
    /// Too few to compare, or too many.
    #[error(
        "{0} configurations cannot be compared: name 2 to {MAX_SETUPS} with --adapters, --backings and --setup"
    )]
    Count(usize),
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The adapter.
    pub adapter: &'static Adapter,
    /// What is set about it.
    pub settings: DiskSettings,
    /// Where its blocks are kept.
    pub backing: Backing,
}

impl Setup {
    /// Reads a configuration and checks that it is possible.
    ///
    /// # Errors
    /// Something in it is unknown, or does not go together.
    pub fn parse(text: &str) -> Result<Self, SetupError> {
        let (adapter, backing) = text.split_once('@').unwrap_or((text, "raw"));
        let (name, settings) = adapter.split_once(',').unwrap_or((adapter, ""));
        let setting = |source| SetupError::Setting { setup: text.to_owned(), source };
        let setup = Self {
            adapter: find_adapter(name)?,
            settings: DiskSettings::parse(settings).map_err(setting)?,
            backing: Backing::parse(backing)?,
        };
        setup.settings.check(setup.adapter).map_err(setting)?;
        if setup.backing == Backing::Nbd && setup.adapter.transport == Transport::VhostUser {
            return Err(SetupError::ServedTwice { setup: text.to_owned(), adapter: setup.adapter.name });
        }
        if setup.is_on_host() && setup.adapter.transport == Transport::VhostUser {
            return Err(SetupError::PassesHost { setup: text.to_owned(), adapter: setup.adapter.name });
        }
        Ok(setup)
    }

    /// Whether a disk of the fence's daemon is made a block device of the host.
    #[must_use]
    pub fn is_on_host(&self) -> bool {
        matches!(&self.backing, Backing::Fence(options) if options.is_on_host())
    }

    /// Whether the host's kernel limits what a guest does on it.
    #[must_use]
    pub fn is_limited_by_host(&self) -> bool {
        matches!(&self.backing, Backing::Fence(options) if options.is_limited_by_host())
    }

    /// What a guest of User Mode Linux cannot have of it, in words; nothing if it can have all.
    #[must_use]
    pub fn not_in_uml(&self) -> Option<&'static str> {
        match &self.backing {
            Backing::Nbd => return Some("the backing nbd, which QEMU reads"),
            Backing::Fence(options) if options.is_on_host() || options.is_limited_by_host() => {
                return Some("a block device of the host's");
            }
            Backing::Fence(options) if options.is_throttled() => return Some("throttling by QEMU"),
            _ => {}
        }
        if self.settings.depth.is_some() || self.settings.packed.is_some() {
            return Some("the settings depth and packed, which are of QEMU's device");
        }
        (!UmlDiskKind::stands_for(self.adapter)).then_some("another adapter than virtio-blk")
    }

    /// Whether a qemu-storage-daemon stands between QEMU and the blocks.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let own = matches!(self.backing, Backing::Fence(_));
        !own && (self.backing == Backing::Nbd || self.adapter.transport == Transport::VhostUser)
    }

    /// Whether its image has to be made by qemu-img.
    #[must_use]
    pub fn is_qcow2(&self) -> bool {
        matches!(self.backing, Backing::Qcow2 { .. } | Backing::Overlay { .. })
    }

    /// What was asked for, for the run's provenance; `allocated_bytes` is what its blocks take.
    #[must_use]
    pub fn facts(&self, allocated_bytes: u64) -> SetupFacts {
        SetupFacts {
            name: self.to_string(),
            adapter: self.adapter.name.to_owned(),
            summary: self.adapter.summary.to_owned(),
            settings: self.settings.named(),
            backing: BackingFacts {
                name: self.backing.to_string(),
                description: self.backing.description(),
                preparation: self.backing.preparation().to_owned(),
                allocated_bytes,
            },
            command_line: Vec::new(),
            server_command_line: Vec::new(),
            boot_ns: 0,
            found: None,
            not_honoured: Vec::new(),
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.adapter.name)?;
        for (name, value) in self.settings.named() {
            write!(f, ",{name}={value}")?;
        }
        if self.backing == Backing::Raw { Ok(()) } else { write!(f, "@{}", self.backing) }
    }
}

/// Every adapter over every backing, then each of `setups`.
///
/// # Errors
/// One is impossible, one is there twice, or there is nothing to compare.
pub fn setups(adapters: &[String], backings: &[String], setups: &[String]) -> Result<Vec<Setup>, SetupError> {
    let crossed = adapters
        .iter()
        .flat_map(|adapter| backings.iter().map(move |backing| format!("{adapter}@{backing}")));
    let all: Vec<Setup> =
        crossed.chain(setups.iter().cloned()).map(|text| Setup::parse(&text)).collect::<Result<_, _>>()?;
    if !(2..=MAX_SETUPS).contains(&all.len()) {
        return Err(SetupError::Count(all.len()));
    }
    for (index, setup) in all.iter().enumerate() {
        if all[..index].iter().any(|other| other.to_string() == setup.to_string()) {
            return Err(SetupError::Twice(setup.to_string()));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn names_say_what_was_asked_for() {
        for (text, name) in [
            ("nvme", "nvme"),
            ("nvme@raw", "nvme"),
            ("virtio-blk,queues=2,cache=writeback", "virtio-blk,cache=writeback,queues=2"),
            ("virtio-blk,iothread=on@qcow2,cluster=4k", "virtio-blk,iothread=on@qcow2,cluster=4k"),
        ] {
            assert_eq!(Setup::parse(text).unwrap().to_string(), name);
        }
    }

    #[test]
    fn adapters_and_backings_are_crossed() {
        let all =
            setups(&words("virtio-blk nvme"), &words("raw loop"), &words("ide,cache=directsync")).unwrap();
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["virtio-blk", "virtio-blk@loop", "nvme", "nvme@loop", "ide,cache=directsync"]);
        assert!(all[4].facts(1).settings["cache"] == "directsync" && !all[0].is_served());
    }

    #[test]
    fn impossible_ones_are_named() {
        for (adapters, more, word) in [
            ("virtio-blk buslogic", "", "QEMU emulates no BusLogic"),
            ("virtio-blk", "", "1 configurations cannot be compared"),
            ("virtio-blk nvme", "nvme", "nvme is there twice"),
            ("virtio-blk", "nvme,packed=on", "nvme,packed=on: nvme takes no packed"),
            ("virtio-blk", "vhost-user-blk@nbd", "another backing than nbd"),
            ("virtio-blk", "nvme@tape", "no backing \"tape\""),
        ] {
            let message = setups(&words(adapters), &words("raw"), &words(more)).unwrap_err().to_string();
            assert!(message.contains(word), "{adapters} {more}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9=,@-]{0,40}") {
            if let Ok(setup) = Setup::parse(&text) {
                prop_assert_eq!(Setup::parse(&setup.to_string()).unwrap(), setup);
            }
        }
    }
}
