//! A storage of VMs as a user writes it: `ADAPTER[,setting=value...][,iops=N][,delay=TIME]`.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use virtbench_lab::{DelayedDisk, GuestDisk, LabError, Machine, MachineError};
use virtbench_units::parse_duration_ns;

use super::error::ApplicationsError;
use crate::guests::Guests;
use crate::setup::Setup;

/// An adapter with its settings over a raw file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The adapter, and what is set about it.
    pub setup: Setup,
    /// How many I/Os a second it is limited to.
    pub iops: Option<u32>,
    /// How much later each read and write is answered: whole milliseconds.
    pub delay: Option<Duration>,
}

impl Storage {
    /// Reads a storage and checks that it is possible.
    ///
    /// # Errors
    /// Something in it is unknown or does not go together; in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            return Err(format!("{text}: a backing cannot be chosen here: leave out what follows @"));
        }
        let (mut iops, mut delay) = (None, None);
        let mut rest = Vec::new();
        for word in text.split(',') {
            match word.split_once('=') {
                Some(("iops", value)) => iops = Some(limit(text, value)?),
                Some(("delay", value)) => delay = Some(milliseconds(text, value)?),
                _ => rest.push(word),
            }
        }
        let setup = Setup::parse(&rest.join(",")).map_err(|error| error.to_string())?;
        Ok(Self { setup, iops, delay })
    }

    /// The disk of a guest in the raw file at `path`, and the server in front of it where there is a delay.
    ///
    /// # Errors
    /// That server is missing, or does not start.
    fn disk(&self, path: &Path) -> Result<(GuestDisk, Option<DelayedDisk>), LabError> {
        let delayed = self.delay.map(|delay| DelayedDisk::start(path, delay)).transpose();
        let delayed = delayed.map_err(|source| self.failed(source))?;
        let disk = GuestDisk {
            settings: self.setup.settings.clone(),
            served_at: delayed.as_ref().map(|server| server.socket().to_owned()),
            throttle_iops: self.iops,
            ..GuestDisk::new(self.setup.adapter, path.to_owned())
        };
        Ok((disk, delayed))
    }

    fn failed(&self, source: MachineError) -> LabError {
        LabError::Machine { machine: format!("the disk {self}"), source }
    }
}

/// A VM that runs, with what serves its disk.
pub(super) struct StorageVm {
    pub(super) machine: Box<dyn Machine>,
    pub(super) delayed: Option<DelayedDisk>,
}

impl StorageVm {
    /// Boots a guest on this storage, whose blocks are in the raw file at `path`.
    ///
    /// # Errors
    /// Something does not start.
    pub(super) fn boot(guests: &Guests, storage: &Storage, path: &Path) -> Result<Self, ApplicationsError> {
        let (blocks, mut delayed) = storage.disk(path)?;
        let machine = guests.vm("vm", blocks, None, Vec::new())?.start()?;
        let connected = delayed.as_mut().map_or(Ok(()), DelayedDisk::connected);
        connected.map_err(|source| storage.failed(source))?;
        Ok(Self { machine, delayed })
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.setup.fmt(f)?;
        self.iops.map_or(Ok(()), |iops| write!(f, ",iops={iops}"))?;
        self.delay.map_or(Ok(()), |delay| write!(f, ",delay={}ms", delay.as_millis()))
    }
}

fn limit(text: &str, value: &str) -> Result<u32, String> {
    let iops = value.parse().ok().filter(|iops| *iops > 0);
    iops.ok_or_else(|| format!("{text}: iops={value} makes no sense: it is a number of I/Os a second from 1"))
}

/// The longest delay: more, and a guest's kernel takes its disk for dead.
const LONGEST: Duration = Duration::from_secs(5);

fn milliseconds(text: &str, value: &str) -> Result<Duration, String> {
    let delay = parse_duration_ns(value).map(Duration::from_nanos).ok();
    let is_possible = |delay: &Duration| {
        *delay > Duration::ZERO && *delay <= LONGEST && delay.subsec_nanos().is_multiple_of(1_000_000)
    };
    delay.filter(is_possible).ok_or_else(|| {
        format!("{text}: delay={value} makes no sense: it is a time of whole milliseconds, such as 5ms, to {LONGEST:?}")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_storage_is_written_as_it_is_read() {
        for (text, name) in [
            ("virtio-blk", "virtio-blk"),
            ("virtio-blk,iops=500", "virtio-blk,iops=500"),
            ("nvme,delay=5ms,cache=writeback,iops=20", "nvme,cache=writeback,iops=20,delay=5ms"),
            ("ide,delay=1s", "ide,delay=1000ms"),
        ] {
            let storage = Storage::parse(text).unwrap();
            assert_eq!(storage.to_string(), name);
            assert_eq!(Storage::parse(name), Ok(storage));
        }
    }

    #[test]
    fn storages_that_cannot_be_are_refused_by_what_is_wrong() {
        for (text, word) in [
            ("tape", "tape"),
            ("virtio-blk,iops=0", "iops=0 makes no sense"),
            ("virtio-blk,iops=many", "from 1"),
            ("virtio-blk,delay=1us", "whole milliseconds"),
            ("virtio-blk,delay=1h", "to 5s"),
            ("virtio-blk@qcow2", "leave out what follows @"),
            ("virtio-blk,speed=9", "no setting \"speed\""),
        ] {
            let error = Storage::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9=,@-]{0,40}") {
            if let Ok(storage) = Storage::parse(&text) {
                prop_assert_eq!(Storage::parse(&storage.to_string()), Ok(storage));
            }
        }
    }
}
