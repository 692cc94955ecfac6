//! From a configuration to a daemon at work: devices are opened, what an earlier daemon left is recovered, sockets
//! appear last.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use virtbench_fence::cache::Image;
use virtbench_fence::{Backing, Config as FenceConfig, DiskId, Fence};

use crate::admin::Live;
use crate::attach;
use crate::cache_metadata::{image, inspected, superblocks};
use crate::config::{Config, DiskTable};
use crate::control::Control;
use crate::devices::Devices;
use crate::frontend::FrontEnd;
use crate::frontend::listen::Listener;
use crate::frontend::nbd;
use crate::frontend::vhost_user::{Served, VhostUserBlk};
use crate::journal;
use crate::label::{Label, LabelError};
use crate::memory_log::{self, Kept, Mapped};
use crate::metrics::{self, Board, Metrics};
use crate::runtime::{Parts, Runtime, Stopper};
use crate::serve_error::{ServeError, system};
use crate::start;

/// A daemon that has everything it needs, to be run on the thread that makes it.
pub struct Daemon {
    runtime: Runtime,
    memory: Kept,
    /// What is served where, a line each.
    pub served: Vec<String>,
}

impl Daemon {
    /// Opens and recovers everything; sockets are there when this returns.
    ///
    /// # Errors
    /// Something cannot be used; nothing was changed.
    pub fn start(config: &Config, stopper: Stopper) -> Result<Self, ServeError> {
        config.pool.iter().for_each(|pool| journal::is_of_pool(pool));
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
        let memory = Kept::new(memory);
        let figures = Metrics::of_pool(config.pool.clone(), config.watched(), fence.cache_counts().count());
        let board = Board::new(Arc::clone(&figures));
        let block_bytes = devices.facts.iter().flatten().map(|facts| facts.block_bytes).max();
        let reachable = without_sealed(config, &fence);
        let (mut front_ends, mut served) = front_ends(&reachable, &sizes, block_bytes.unwrap_or(512))?;
        served.extend(sealed(config, &fence));
        if let Some(path) = config.control_socket() {
            let is_whole = fence.damage().is_empty();
            let live = Live::new(devices, calibrated, memory.clone(), is_whole, board.clone());
            let control = Control::start(Listener::bind(&path)?, live)
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
            figures,
        };
        if let Some(address) = config.metrics {
            let address = metrics::serve(address, board).map_err(|source| system("metrics", source))?;
            served.push(format!("figures at http://{address}/metrics"));
        }
        tracing::info!(?served, "the daemon has what it needs");
        let runtime = Runtime::new(parts, stopper).map_err(|source| system("io_uring", source))?;
        Ok(Self { runtime, memory, served })
    }

    /// Serves until the stopper says so; requests in flight are finished first.
    ///
    /// # Errors
    /// The ring fails, or a change of disks that was begun.
    pub fn run(self) -> Result<(), ServeError> {
        tracing::info!("the daemon serves");
        let served = self.runtime.run();
        tracing::info!(?served, "the daemon has ended");
        served.map_err(|source| system("serving", source))?;
        self.memory.close();
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
    memory_log::check_place(label.and_then(|label| label.memory.as_ref()), folder, &superblocks)?;
    if let Some((label, device)) = known {
        let is_empty = || Ok(attach::is_empty(&inspected(name, &superblocks, &logs, folder)?));
        attach::check(label, [device, name], &found, is_empty)?;
    }
    let memory = Mapped::open(folder, &superblocks)?;
    let image = Image { superblocks: &superblocks, logs: &logs, memory: Some(&memory.log) };
    let home = home.map(|(label, home)| (label, home, memory_log::place_of(folder)));
    let fence = start::over(fence, &image, (file, name), home)?;
    Ok((fence, Some(memory)))
}

/// The configuration without sockets and exports of disks whose part of the cache cannot be believed.
fn without_sealed(config: &Config, fence: &Fence) -> Config {
    let mut config = config.clone();
    for (disk, table) in (0..).zip(&mut config.disks) {
        if fence.is_sealed(DiskId(disk)) {
            (table.socket, table.export) = (None, None);
        }
    }
    config
}

/// Those disks, a line each.
fn sealed(config: &Config, fence: &Fence) -> Vec<String> {
    let line = |(place, disk): (usize, &DiskTable)| {
        let fault = fence.damage().iter().find(|fault| fault.partition() == Some(place))?;
        Some(format!(
            "disk {}: NOT served: {fault}: nothing of it is changed; `virtbench fence inspect` tells more, `fence drain \
             --force` brings to the disk what can still be read",
            disk.name
        ))
    };
    config.disks.iter().enumerate().filter_map(line).collect()
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
                export: disk.export.clone(),
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
