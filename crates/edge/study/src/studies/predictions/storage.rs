//! A storage of VMs as a user writes it: `ADAPTER[,setting=value...][,iops=N][,delay=TIME]`, or `ADAPTER@fence,...`.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use virtbench_lab::{DelayedDisk, GuestDisk, LabError, Machine, MachineError};
use virtbench_units::parse_duration_ns;

use super::error::ApplicationsError;
use super::processors::one_processor;
use crate::disks::backing::Backing;
use crate::disks::disk::Contents;
use crate::fence::{FenceDisks, FenceOptions, FenceRequest};
use crate::guests::Guests;
use crate::runner::progress::Progress;
use crate::setup::Setup;

/// An adapter with its settings over a raw file, or over a disk of the fence.
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
        let (front, backing) = text.split_once('@').map_or((text, None), |(front, back)| (front, Some(back)));
        let (mut iops, mut delay) = (None, None);
        let mut rest = Vec::new();
        for word in front.split(',') {
            match word.split_once('=') {
                Some(("iops", value)) => iops = Some(limit(text, value)?),
                Some(("delay", value)) => delay = Some(milliseconds(text, value)?),
                _ => rest.push(word),
            }
        }
        let rest = rest.join(",");
        let whole = backing.map_or(rest.clone(), |backing| format!("{rest}@{backing}"));
        let setup = Setup::parse(&whole).map_err(|error| error.to_string())?;
        match (backing, &setup.backing) {
            (None, _) => Ok(Self { setup, iops, delay }),
            (Some(_), Backing::Fence(_)) if iops.is_none() && delay.is_none() => {
                Ok(Self { setup, iops, delay })
            }
            (Some(_), Backing::Fence(_)) => {
                Err(format!("{text}: iops= and delay= slow down a file: leave them out before @fence"))
            }
            (Some(_), _) => Err(format!("{text}: of backings only fence can follow @ here")),
        }
    }

    /// The disk of a guest whose blocks are those of the raw file at `path`, and what serves it, where something does.
    ///
    /// # Errors
    /// That server is missing, or does not start.
    fn disk(
        &self,
        path: &Path,
        size_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<(GuestDisk, Option<DiskServer>), ApplicationsError> {
        if let Backing::Fence(options) = &self.setup.backing {
            let fence = self.fence(options, path, size_bytes, progress)?;
            let disk = fence.disks().first().cloned();
            let disk = disk.ok_or_else(|| ApplicationsError::Environment("the fence has no disk".into()))?;
            return Ok((disk, Some(DiskServer::Fence(fence))));
        }
        let delayed = self.delay.map(|delay| DelayedDisk::start(path, delay)).transpose();
        let delayed = delayed.map_err(|source| self.failed(source))?;
        let disk = GuestDisk {
            settings: self.setup.settings.clone(),
            served_at: delayed.as_ref().map(|server| server.socket().to_owned()),
            throttle_iops: self.iops,
            ..GuestDisk::new(self.setup.adapter, path.to_owned())
        };
        Ok((disk, delayed.map(DiskServer::Delayed)))
    }

    /// A daemon whose first disk begins as a copy of the raw file at `path`. The other one is idle, and keeps its part of the time.
    fn fence(
        &self,
        options: &FenceOptions,
        path: &Path,
        size_bytes: u64,
        progress: &mut Progress<'_>,
    ) -> Result<FenceDisks, ApplicationsError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let image = path.file_stem().unwrap_or_default().to_string_lossy();
        let request = FenceRequest {
            folder,
            run_name: image.trim_start_matches("virtbench-"),
            adapter: self.setup.adapter,
            settings: &self.setup.settings,
            options,
            names: &["vm", "neighbour"].map(str::to_owned),
            size_bytes,
            contents: Contents::Empty(None),
            images: &[path.to_owned()],
            warm: None,
            configuration: None,
        };
        let fence = FenceDisks::prepare(&request, progress.stop, &mut |_, _, _| ());
        fence.map_err(|error| match error.is_stopped() {
            true => ApplicationsError::Stopped,
            false => ApplicationsError::Environment(format!("the disk {self}: {error}").into()),
        })
    }

    fn failed(&self, source: MachineError) -> LabError {
        LabError::Machine { machine: format!("the disk {self}"), source }
    }
}

/// What serves a guest's disk. Dropping it ends it.
pub(super) enum DiskServer {
    /// Answers later.
    Delayed(DelayedDisk),
    /// Answers when it is the disk's turn.
    Fence(#[expect(dead_code, reason = "it serves until it is dropped")] FenceDisks),
}

/// A VM that runs, with what serves its disk.
pub(super) struct StorageVm {
    pub(super) machine: Box<dyn Machine>,
    pub(super) server: Option<DiskServer>,
}

impl StorageVm {
    /// Boots a guest on this storage, whose blocks are those of the raw file at `path`.
    ///
    /// # Errors
    /// Something does not start.
    pub(super) fn boot(
        guests: &Guests,
        storage: &Storage,
        (path, size_bytes): (&Path, u64),
        progress: &mut Progress<'_>,
    ) -> Result<Self, ApplicationsError> {
        let (blocks, mut server) = storage.disk(path, size_bytes, progress)?;
        let processors = if guests.are_of_uml() { one_processor() } else { Vec::new() };
        let machine = guests.vm("vm", blocks, None, processors)?.start()?;
        if let Some(DiskServer::Delayed(delayed)) = &mut server {
            delayed.connected().map_err(|source| storage.failed(source))?;
        }
        Ok(Self { machine, server })
    }
}

impl fmt::Display for Storage {
    /// Settings of a file's come last, and there are none of a disk of the fence.
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
            (
                "vhost-user-blk@fence,slow=file,scheduler=HDD+NWC,slot=30ms",
                "vhost-user-blk@fence,scheduler=HDD+NWC,slow=file,slot=30000us",
            ),
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
            ("virtio-blk@qcow2", "only fence"),
            ("vhost-user-blk,iops=5@fence", "leave them out"),
            ("vhost-user-blk@fence,slot=1h", "1ms to 10s"),
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
