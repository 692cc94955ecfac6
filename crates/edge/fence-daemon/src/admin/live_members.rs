//! A virtual disk more, or one less, while a daemon serves the others: their clients wait while the devices change.
//!
//! By the steps of `add` and `remove`, in an order that keeps the wait short: the room of a new disk is zeroed first. Then
//! the thread that serves rests, with everything stable; what the cache alone has comes to the disks; superblock and label
//! change; a fence over the new cache takes the place of the old one. Up to the superblock the old fence can go on, and does
//! if something fails. From there on it cannot: then the daemon ends, and the same command completes what was begun.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use virtbench_fence::cache::{Image, MemoryLog};
use virtbench_fence::{Backing, DiskId, Fence};

use super::held::Held;
use super::live::Live;
use super::resize::{Plan, ResizeStep};
use super::resize_error::ResizeError;
use crate::cache_metadata::{image, superblocks};
use crate::config::{Config, DiskTable};
use crate::frontend::Served;
use crate::frontend::listen::Listener;
use crate::label::{Label, LabelError};
use crate::memory_log::Mapped;
use crate::requests::core::{Added, Change};
use crate::serve_error::ServeError;
use crate::{attach, start};

/// The thread that serves, as the one beside it asks it.
pub(crate) trait Serving {
    /// Finishes what is under way, makes it stable, and takes nothing more. Not if the disk `leaves` has a client.
    ///
    /// # Errors
    /// Why it goes on.
    fn rest(&self, leaves: Option<DiskId>) -> Result<(), ResizeError>;

    /// Takes requests again.
    fn go_on(&self);

    /// Takes requests again, by another fence.
    ///
    /// # Errors
    /// The daemon is ending.
    fn change(&self, change: Change) -> Result<(), ResizeError>;

    /// Ends.
    fn end(&self);
}

/// What a client has opened for the daemon, which may open nothing itself.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// The new disk's socket, bound and listening.
    pub(crate) listener: Option<OwnedFd>,
    /// The new cache's log in memory: an empty file.
    pub(crate) memory: Option<OwnedFd>,
}

impl Handed {
    /// In the order in which they are sent: the socket, where the disk has one, and the log, where there is a cache.
    pub(crate) fn of(has_socket: bool, descriptors: Vec<OwnedFd>) -> Self {
        let mut descriptors = descriptors.into_iter();
        let listener = if has_socket { descriptors.next() } else { None };
        Self { listener, memory: descriptors.next() }
    }
}

impl Live {
    /// Serves a disk more.
    ///
    /// # Errors
    /// It does not fit, is there already as another one, or not all was handed over that it needs: nothing has changed. After
    /// a device's failure nothing is lost; the daemon may end then, and the same command completes it.
    pub(crate) fn add(
        &mut self,
        disk: &DiskTable,
        handed: Handed,
        serving: &dyn Serving,
        tell: &mut dyn FnMut(ResizeStep),
    ) -> Result<(), ResizeError> {
        if let Some(known) = self.config.disks.iter().find(|known| known.name == disk.name) {
            // The client may not have heard of it.
            let name = &disk.name;
            return if known == disk {
                Ok(())
            } else {
                Err(ResizeError::Value(format!("there is a disk {name} already")))
            };
        }
        if disk.export.is_some() && self.config.nbd.is_none() {
            let why =
                "--export needs [nbd] with listen in the configuration that the daemon serves".to_owned();
            return Err(ResizeError::Value(why));
        }
        let mut new = self.config.clone();
        new.disks.push(disk.clone());
        let moved: Vec<Option<DiskId>> = (0..self.config.disks.len()).map(|place| Some(id(place))).collect();
        let listener = match (&disk.socket, handed.listener) {
            (None, _) => None,
            (Some(path), Some(socket)) => Some(
                Listener::adopt(socket, path.clone())
                    .map_err(|error| ResizeError::Value(error.to_string()))?,
            ),
            (Some(_), None) => return Err(not_handed("the disk's socket")),
        };
        let block_bytes = self.devices.facts.iter().flatten().map(|facts| facts.block_bytes).max();
        let served = Served {
            disk: id(self.config.disks.len()),
            name: disk.name.clone(),
            size_bytes: disk.size.0,
            block_bytes: block_bytes.unwrap_or(512),
            queues: disk.queues,
            read_only: disk.read_only,
            export: disk.export.clone(),
        };
        let added = Added { served, listener };
        self.change_disks(new, (moved, None, Some(added)), handed.memory, serving, tell)
    }

    /// Serves a disk no more, and gives up what it holds.
    ///
    /// # Errors
    /// There is no such disk, it has a client, or none would be left; and as [`add`](Self::add).
    pub(crate) fn remove(
        &mut self,
        name: &str,
        handed: Handed,
        serving: &dyn Serving,
        tell: &mut dyn FnMut(ResizeStep),
    ) -> Result<(), ResizeError> {
        let place = self.config.disks.iter().position(|disk| disk.name == name);
        let place = place.ok_or_else(|| ResizeError::NoDisk(name.to_owned()))?;
        let mut new = self.config.clone();
        new.disks.remove(place);
        let moved = (0..self.config.disks.len())
            .map(|old| match old.cmp(&place) {
                std::cmp::Ordering::Less => Some(id(old)),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => Some(id(old - 1)),
            })
            .collect();
        self.change_disks(new, (moved, Some(id(place)), None), handed.memory, serving, tell)
    }

    fn change_disks(
        &mut self,
        new: Config,
        (moved, leaves, added): (Vec<Option<DiskId>>, Option<DiskId>, Option<Added>),
        memory: Option<OwnedFd>,
        serving: &dyn Serving,
        tell: &mut dyn FnMut(ResizeStep),
    ) -> Result<(), ResizeError> {
        let served = |why: &str| Err(ResizeError::Served(why.to_owned()));
        if !self.is_whole {
            return served("a disk's part of the cache is damaged");
        }
        let tables = self.config.disks.iter().chain(&new.disks);
        if tables.map(|disk| &disk.fault).any(Option::is_some) {
            return served("faults are of disks by their places");
        }
        new.check().map_err(ResizeError::Value)?;
        if new.control_socket() != self.config.control_socket() {
            return served(
                "the control socket is named after another disk then: `control = PATH` would keep it",
            );
        }
        let plan = Plan::towards(&self.devices, &self.config, new, false)?;
        if plan.moves() {
            return served("another disk would have to move");
        }
        let next = self.next_memory(&plan, memory)?;
        let mut told = |step| {
            tell(step);
            Ok(())
        };
        plan.make_room(&self.devices, &mut told)?;
        let resting = Resting::begin(serving, leaves)?;
        let written = match self.write_back(&plan) {
            Ok(written) => written,
            Err(error) => {
                resting.go_on();
                return Err(error);
            }
        };
        told(ResizeStep::WrittenBack(written))?;
        plan.divide(&self.devices, None, &mut told)?;
        let fence = self.begin(&plan, next)?;
        let new = plan.new;
        let figures = self.board.now().followed_by(new.watched(), fence.cache_counts().count());
        self.board.show(std::sync::Arc::clone(&figures));
        let write_through = new.disks.iter().map(|disk| disk.write_through).collect();
        resting.change(Change { fence, write_through, moved, added, figures })?;
        self.config = new;
        Ok(())
    }

    /// The file of the next cache's log, if it is the one that the next daemon looks for.
    fn next_memory(
        &self,
        plan: &Plan,
        memory: Option<OwnedFd>,
    ) -> Result<Option<(File, PathBuf)>, ResizeError> {
        let Some((fast, name)) = self.devices.file(1).filter(|_| plan.has_cache()) else { return Ok(None) };
        let file = File::from(memory.ok_or_else(|| not_handed("the log in memory of the new cache"))?);
        let path = attach::next_log(&self.config.cache.memory, name, &superblocks(fast, name)?)?;
        let is = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok();
        let is_empty = file.metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0);
        if is.is_none_or(|is| Some(is) != fs::canonicalize(&path).ok()) || !is_empty {
            let why = format!("{}: another change has come between: give the command again", path.display());
            return Err(ResizeError::Value(why));
        }
        Ok(Some((file, path)))
    }

    /// What the cache alone has comes to the disks. How many blocks.
    fn write_back(&self, plan: &Plan) -> Result<u64, ResizeError> {
        let Some(((fast, name), (file, _))) = self
            .devices
            .file(1)
            .filter(|_| plan.has_cache())
            .zip(self.devices.file(self.devices.home_index()))
        else {
            return Ok(0);
        };
        let memory: Option<MemoryLog> = self.memory.log();
        let held =
            Held { file, fast, name, label: &plan.label, config: &self.config, memory: memory.as_ref() };
        Ok(held.write_back(&held.inspect()?, false)?.written)
    }

    /// A fence over the devices as they are divided now.
    fn begin(&self, plan: &Plan, next: Option<(File, PathBuf)>) -> Result<Fence, ResizeError> {
        let (file, device) = super::resize::home_of(&self.devices)?;
        let label =
            Label::read(file, device)?.ok_or_else(|| LabelError::None { device: device.to_owned() })?;
        let disks = label.place(&plan.new);
        let fence = self.devices.fence(&plan.new, disks, [0; 16]).map_err(ServeError::from)?;
        let (Backing::Cached(_), Some((fast, name)), Some((next, path))) =
            (&fence.backing, self.devices.file(1), next)
        else {
            let fence = Fence::new(fence).map_err(ServeError::from)?;
            attach::alone(&label, file, device)?;
            return Ok(fence);
        };
        let (superblocks, logs) = image(fast, name)?;
        let before = self.memory.log().ok_or_else(|| not_handed("the log in memory"))?;
        let mapped = Mapped::adopt(next, path, &superblocks, &before).map_err(ServeError::from)?;
        let image = Image { superblocks: &superblocks, logs: &logs, memory: Some(&mapped.log) };
        // Where it lies has not changed since the daemon began.
        let home = (&label, (file, device), label.memory.clone());
        let fence = start::over(fence, &image, (fast, name), Some(home))?;
        self.memory.replace(mapped);
        Ok(fence)
    }
}

/// A daemon that takes no requests. It ends with this, unless it goes on before.
struct Resting<'a>(Option<&'a dyn Serving>);

impl<'a> Resting<'a> {
    fn begin(serving: &'a dyn Serving, leaves: Option<DiskId>) -> Result<Self, ResizeError> {
        serving.rest(leaves)?;
        Ok(Self(Some(serving)))
    }

    fn go_on(mut self) {
        if let Some(serving) = self.0.take() {
            serving.go_on();
        }
    }

    fn change(mut self, change: Change) -> Result<(), ResizeError> {
        self.0.take().map_or(Ok(()), |serving| serving.change(change))
    }
}

impl Drop for Resting<'_> {
    fn drop(&mut self) {
        if let Some(serving) = self.0 {
            serving.end();
        }
    }
}

fn id(place: usize) -> DiskId {
    DiskId(u16::try_from(place).unwrap_or(u16::MAX))
}

fn not_handed(what: &str) -> ResizeError {
    ResizeError::Value(format!("{what} was not handed over: use `virtbench fence add` and `fence remove`"))
}
