//! From a configuration to a daemon at work: devices are opened, what an earlier daemon left is recovered, sockets
//! appear last.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use virtbench_fence::cache::{Image, Inspection, RecoveryError, Write, inspect, layout};
use virtbench_fence::{
    Backing, Config as FenceConfig, ConfigError, Device, DiskConfig, DiskId, Fence, StartError,
};

use crate::admin::Live;
use crate::attach::{self, AttachError};
use crate::config::{Built, Config, DeviceSpec, LoadError};
use crate::control::Control;
use crate::device::{Backend, DeviceError, Facts, FaultyBackend, Opened, open, read_at, write_at};
use crate::frontend::FrontEnd;
use crate::frontend::listen::{ListenError, Listener};
use crate::frontend::nbd::{self, NbdSetupError};
use crate::frontend::vhost_user::{Served, VhostUserBlk};
use crate::label::{Cached, Label, LabelError};
use crate::memory::Buffer;
use crate::memory_log::{self, Mapped, MemoryLogError};
use crate::metrics::{self, Figures};
use crate::runtime::{Parts, Runtime, Stopper};

const SUPERBLOCKS_BYTES: usize = 8192;

/// Why nothing is served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its parts do not fit together.
    #[error("the configuration does not fit: {0}")]
    Config(#[from] ConfigError),
    /// A device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A device is another one, or divided in another way.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The cache is not the one that has the newest data, or is left out.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The cache is another one, or holds what would be lost.
    #[error("{device}: {source}")]
    Cache {
        /// The fast device.
        device: String,
        /// Why.
        source: RecoveryError,
    },
    /// What was answered and not flushed has no place.
    #[error(transparent)]
    MemoryLog(#[from] MemoryLogError),
    /// A socket cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// NBD cannot be served.
    #[error(transparent)]
    Nbd(#[from] NbdSetupError),
    /// The system refuses.
    #[error("{action}: {source}")]
    System {
        /// What failed.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ServeError {
    /// Whether a device does not have what was written to it.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Cache { source: RecoveryError::Damaged { .. }, .. })
    }
}

/// What carries out I/O, by [`Device::index`].
type Backends = [Option<Box<dyn Backend>>; 2];

/// Devices of a configuration, open and locked, by [`Device::index`].
pub(crate) struct Devices {
    pub(crate) home: Built,
    facts: [Option<Facts>; 2],
    files: [Option<File>; 2],
    names: [String; 2],
}

impl Devices {
    /// The files, and what carries out I/O on them.
    pub(crate) fn open(config: &Config) -> Result<(Self, Backends), ServeError> {
        let home = config.home().unwrap_or(Built::Slow);
        let (slow, fast) = match home {
            Built::Slow => (config.slow.as_ref(), None),
            Built::Fast => (None, config.fast.as_ref()),
            Built::Cached { .. } => (config.slow.as_ref(), config.fast.as_ref()),
        };
        let one = |device, table: Option<&crate::config::DeviceTable>| {
            let Some(table) = table else { return Ok(None) };
            let Opened { backend, file } = open(device, &table.device)?;
            let backend = FaultyBackend::before(backend, device, table.fault.as_ref(), &config.disks);
            Ok::<_, DeviceError>(Some(Opened { backend, file }))
        };
        let mut opened = [one(Device::Slow, slow)?, one(Device::Fast, fast)?];
        let name = |table: Option<&crate::config::DeviceTable>| {
            table.map_or_else(String::new, |table| match &table.device {
                DeviceSpec::Null { .. } => table.device.to_string(),
                spec => spec.path().map_or_else(String::new, |path| path.display().to_string()),
            })
        };
        let facts = [0, 1].map(|index: usize| opened[index].as_ref().map(|opened| opened.backend.facts()));
        let files = opened.each_mut().map(|opened| opened.as_mut()?.file.take());
        let backends = opened.map(|opened| opened.map(|opened| opened.backend));
        Ok((Self { home, facts, files, names: [name(slow), name(fast)] }, backends))
    }

    /// The device that virtual disks live on.
    pub(crate) const fn home_index(&self) -> usize {
        match self.home {
            Built::Slow | Built::Cached { .. } => 0,
            Built::Fast => 1,
        }
    }

    pub(crate) fn file(&self, index: usize) -> Option<(&File, &str)> {
        let file = self.files[index].as_ref()?;
        Some((file, &self.names[index]))
    }

    pub(crate) fn fence(
        &self,
        config: &Config,
        disks: Vec<DiskConfig>,
        cache: [u8; 16],
    ) -> Result<FenceConfig, ConfigError> {
        config.fence_of(self.home, self.sizes(), disks, cache)
    }

    /// In bytes; zero for one that is not there.
    pub(crate) fn sizes(&self) -> [u64; 2] {
        self.facts.map(|facts| facts.map_or(0, |facts| facts.size_bytes))
    }
}

pub(crate) fn random_uuid() -> Result<[u8; 16], ServeError> {
    let mut uuid = [0; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut uuid[..], flags) {
        Ok(16) => Ok(uuid),
        Ok(_) => Err(system("random numbers", io::Error::from_raw_os_error(libc::EIO))),
        Err(error) => Err(system("random numbers", error.into())),
    }
}

pub(crate) const fn system(action: &'static str, source: io::Error) -> ServeError {
    ServeError::System { action, source }
}

pub(crate) fn superblocks(file: &File, name: &str) -> Result<Vec<u8>, ServeError> {
    read_at(file, 0, SUPERBLOCKS_BYTES)
        .map(|buffer| buffer.to_vec())
        .map_err(|source| unreadable(name, source).into())
}

pub(crate) fn unreadable(name: &str, source: io::Error) -> LabelError {
    LabelError::Io { device: name.to_owned(), action: "reading the cache's metadata", source }
}

pub(crate) fn image(file: &File, name: &str) -> Result<(Vec<u8>, Vec<Buffer>), ServeError> {
    let superblocks = superblocks(file, name)?;
    let layout =
        layout(&superblocks).map_err(|source| ServeError::Cache { device: name.to_owned(), source })?;
    let mut logs = Vec::new();
    for partition in &layout.partitions {
        let len = partition.log_blocks as usize * 4096;
        let log =
            read_at(file, partition.log_offset_bytes, len).map_err(|source| unreadable(name, source))?;
        logs.push(log);
    }
    Ok((superblocks, logs))
}

pub(crate) fn carry_out(file: &File, name: &str, write: &Write) -> Result<(), ServeError> {
    let failed =
        |source| LabelError::Io { device: name.to_owned(), action: "writing the cache's metadata", source };
    write_at(file, write.offset_bytes, &write.bytes).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    Ok(())
}

/// A daemon that has everything it needs, to be run on the thread that makes it.
pub struct Daemon {
    runtime: Runtime,
    memory: Option<Mapped>,
    /// What is served where, a line each.
    pub served: Vec<String>,
}

impl Daemon {
    /// Opens and recovers everything; sockets are there when this returns.
    ///
    /// # Errors
    /// Something cannot be used; nothing was changed.
    pub fn start(config: &Config, stopper: Stopper) -> Result<Self, ServeError> {
        let (devices, backends) = Devices::open(config)?;
        let home = devices.home_index();
        let label = match devices.file(home) {
            None => None,
            Some((file, name)) => {
                let label =
                    Label::read(file, name)?.ok_or_else(|| LabelError::None { device: name.to_owned() })?;
                label.check(config, name)?;
                Some(label)
            }
        };
        let uuid = label.as_ref().map_or([0; 16], |label| label.uuid);
        let disks = label.as_ref().map_or_else(|| config.place(&uuid), |label| label.place(config));
        let calibrated = config.calibrated(&uuid)?;
        let fence = devices.fence(&calibrated, disks, [0; 16])?;
        let max_request_bytes = fence.max_request_bytes;
        let sizes: Vec<u64> = fence.disks.iter().map(|disk| disk.size_bytes).collect();
        let (fence, memory) = recover(fence, &devices, &config.cache.memory, label.as_ref())?;
        let figures = Figures::new(config.watched(), fence.cache_counts().count());
        let block_bytes = devices.facts.iter().flatten().map(|facts| facts.block_bytes).max();
        let (mut front_ends, mut served) = front_ends(config, &sizes, block_bytes.unwrap_or(512))?;
        if let Some(path) = config.control_socket() {
            let log = memory.as_ref().map(|memory| memory.log.clone());
            let control = Control::start(Listener::bind(&path)?, Live::new(devices, calibrated, log))
                .map_err(|source| system("the control socket", source))?;
            served.push(format!("control at {}", path.display()));
            front_ends.push(Box::new(control));
        }
        let parts = Parts {
            fence,
            write_through: config.disks.iter().map(|disk| disk.write_through).collect(),
            devices: backends,
            front_ends,
            requests_per_disk: config.limits.requests_per_disk,
            max_request_bytes,
            spin: Duration::from_micros(config.limits.spin_us),
            figures: Arc::clone(&figures),
        };
        if let Some(address) = config.metrics {
            let address = metrics::serve(address, figures).map_err(|source| system("metrics", source))?;
            served.push(format!("figures at http://{address}/metrics"));
        }
        let runtime = Runtime::new(parts, stopper).map_err(|source| system("io_uring", source))?;
        Ok(Self { runtime, memory, served })
    }

    /// Serves until the stopper says so; requests under way are finished first.
    ///
    /// # Errors
    /// The ring fails.
    pub fn run(self) -> Result<(), ServeError> {
        self.runtime.run().map_err(|source| system("io_uring", source))?;
        self.memory.into_iter().for_each(Mapped::close);
        Ok(())
    }
}

/// The label goes by what is served from now on; it is checked before anything changes.
fn recover(
    fence: FenceConfig,
    devices: &Devices,
    folder: &Path,
    label: Option<&Label>,
) -> Result<(Fence, Option<Mapped>), ServeError> {
    let home = label.zip(devices.file(devices.home_index()));
    let (Backing::Cached(_), Some((file, name))) = (&fence.backing, devices.file(1)) else {
        let fence = Fence::new(fence)?;
        if let Some((label, (file, device))) = home {
            attach::alone(label, file, device)?;
        }
        return Ok((fence, None));
    };
    let known = home.map(|(label, (_, device))| (label, device));
    let found = attach::find(known, name, &superblocks(file, name)?)?;
    let (superblocks, logs) = image(file, name)?;
    if let Some((label, device)) = known {
        let is_empty = || Ok(attach::is_empty(&inspected(name, &superblocks, &logs, folder)?));
        attach::check(label, [device, name], &found, is_empty)?;
    }
    let memory = Mapped::open(folder, &superblocks)?;
    let cache = |source| ServeError::Cache { device: name.to_owned(), source };
    let image = Image { superblocks: &superblocks, logs: &logs, memory: Some(&memory.log) };
    let (fence, writes) = Fence::recover(fence, &image).map_err(|error| match error {
        StartError::Config(error) => error.into(),
        StartError::Recovery(source) => cache(source),
        StartError::NoCache => cache(RecoveryError::NoSuperblock),
    })?;
    let write = || writes.iter().try_for_each(|write| carry_out(file, name, write));
    match home {
        None => write()?,
        Some((label, home)) => {
            let cached = Cached::Cache { uuid: found.uuid, start: found.start + 1, beginning: false };
            attach::advance(label, Label { cached, ..label.clone() }, home, &found, write)?;
        }
    }
    Ok((fence, Some(memory)))
}

/// What a cache holds, with what is in memory.
pub(crate) fn inspected(
    name: &str,
    superblocks: &[u8],
    logs: &[Buffer],
    folder: &Path,
) -> Result<Inspection, ServeError> {
    let memory = memory_log::left(folder, superblocks)?;
    inspect(&Image { superblocks, logs, memory: memory.as_ref() })
        .map_err(|source| ServeError::Cache { device: name.to_owned(), source })
}

type FrontEnds = (Vec<Box<dyn FrontEnd>>, Vec<String>);

fn front_ends(config: &Config, sizes: &[u64], block_bytes: u32) -> Result<FrontEnds, ServeError> {
    let mut front_ends: Vec<Box<dyn FrontEnd>> = Vec::new();
    let mut lines = Vec::new();
    for (place, disk) in config.disks.iter().enumerate() {
        if let Some(socket) = &disk.socket {
            let listener = Listener::bind(socket)?;
            let served = Served {
                disk: DiskId(u16::try_from(place).unwrap_or(u16::MAX)),
                name: disk.name.clone(),
                size_bytes: sizes.get(place).copied().unwrap_or(0),
                block_bytes,
                queues: disk.queues,
                read_only: disk.read_only,
            };
            lines.push(format!("disk {}: vhost-user-blk at {}", disk.name, socket.display()));
            front_ends.push(Box::new(VhostUserBlk::new(listener, served)));
        }
    }
    if let Some(front_end) = nbd::from_config(config, block_bytes)? {
        lines.extend(nbd::served(config));
        front_ends.push(Box::new(front_end));
    }
    Ok((front_ends, lines))
}
