//! From a configuration to a daemon at work: devices are opened, what an earlier daemon left is recovered, sockets
//! appear last.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use virtbench_fence::cache::{Image, RecoveryError, Write, format as format_cache, layout};
use virtbench_fence::{
    Backing, Config as FenceConfig, ConfigError, Device, DiskConfig, DiskId, Fence, StartError,
};

use crate::admin::Live;
use crate::config::{Built, Config, DeviceSpec, LoadError};
use crate::control::Control;
use crate::device::{Backend, DeviceError, Facts, FaultyBackend, Opened, open, read_at, write_at};
use crate::frontend::FrontEnd;
use crate::frontend::listen::{ListenError, Listener};
use crate::frontend::nbd::{self, NbdSetupError};
use crate::frontend::vhost_user::{Served, VhostUserBlk};
use crate::label::{Label, LabelError};
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

/// Makes the devices of a configuration its own: divided, and with an empty cache.
///
/// # Errors
/// There is data on them, and `force` is not given; or they cannot be used.
pub fn format(config: &Config, force: bool) -> Result<(), ServeError> {
    let (devices, _backends) = Devices::open(config)?;
    let label = Label::new(config, random_uuid()?);
    let fence = devices.fence(config, config.place(&label.uuid), random_uuid()?)?;
    let home = devices.home_index();
    if !force {
        for (file, name) in [0, 1].into_iter().filter_map(|index| devices.file(index)) {
            let ours = Label::read(file, name)?.is_some()
                || superblocks(file, name).is_ok_and(|b| layout(&b).is_ok());
            if !ours && !Label::is_empty(file, name)? {
                return Err(LabelError::Foreign { device: name.to_owned() }.into());
            }
        }
        if let Some((file, name)) = devices.file(1).filter(|_| home == 0)
            && is_dirty(&fence, file, name, &config.cache.memory)?
        {
            return Err(LabelError::Dirty { device: devices.names[0].clone() }.into());
        }
    }
    if let (Backing::Cached(cache), Some((file, name))) = (&fence.backing, devices.file(1)) {
        if let Ok(before) = superblocks(file, name) {
            memory_log::forget(&config.cache.memory, &before);
        }
        // The identity of the cache comes last, so that nothing half-formatted passes for whole.
        for write in format_cache(&fence, cache) {
            carry_out(file, name, &write)?;
        }
    }
    if let Some((file, name)) = devices.file(home) {
        label.write(file, name)?;
        file.sync_all().map_err(|source| system("syncing a device", source))?;
    }
    Ok(())
}

/// Whether a cache holds what its disks have not. Asked with disks that cannot be its own.
fn is_dirty(fence: &FenceConfig, file: &File, name: &str, folder: &Path) -> Result<bool, ServeError> {
    let Ok((superblocks, logs)) = image(file, name) else { return Ok(false) };
    let memory = memory_log::left(folder, &superblocks)?;
    let image = Image { superblocks: &superblocks, logs: &logs, memory: memory.as_ref() };
    Ok(matches!(
        Fence::recover(fence.clone(), &image),
        Err(StartError::Recovery(RecoveryError::DirtyDisk { .. } | RecoveryError::DirtyPartitions { .. }))
    ))
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
        let (uuid, disks) = match devices.file(home) {
            None => ([0; 16], config.place(&[0; 16])),
            Some((file, name)) => {
                let label =
                    Label::read(file, name)?.ok_or_else(|| LabelError::None { device: name.to_owned() })?;
                label.check(config, name)?;
                (label.uuid, label.place(config))
            }
        };
        let calibrated = config.calibrated(&uuid)?;
        let fence = devices.fence(&calibrated, disks, [0; 16])?;
        let max_request_bytes = fence.max_request_bytes;
        let sizes: Vec<u64> = fence.disks.iter().map(|disk| disk.size_bytes).collect();
        let (fence, memory) = recover(fence, &devices, &config.cache.memory)?;
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

fn recover(
    fence: FenceConfig,
    devices: &Devices,
    folder: &Path,
) -> Result<(Fence, Option<Mapped>), ServeError> {
    let (Backing::Cached(_), Some((file, name))) = (&fence.backing, devices.file(1)) else {
        return Ok((Fence::new(fence)?, None));
    };
    let (superblocks, logs) = image(file, name)?;
    let memory = Mapped::open(folder, &superblocks)?;
    match Fence::recover(fence, &Image { superblocks: &superblocks, logs: &logs, memory: Some(&memory.log) })
    {
        Ok((fence, write)) => {
            carry_out(file, name, &write)?;
            Ok((fence, Some(memory)))
        }
        Err(StartError::Config(error)) => Err(error.into()),
        Err(StartError::Recovery(source)) => Err(ServeError::Cache { device: name.to_owned(), source }),
        Err(StartError::NoCache) => {
            Err(ServeError::Cache { device: name.to_owned(), source: RecoveryError::NoSuperblock })
        }
    }
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
