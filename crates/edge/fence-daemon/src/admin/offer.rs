//! What the command opens for a daemon that may open nothing itself any more: the socket of a new disk, and the file of the
//! new cache's log in memory.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::resize_error::ResizeError;
use crate::attach;
use crate::cache_metadata::superblocks;
use crate::config::{Built, Config};
use crate::frontend::listen::Listener;
use crate::serve_error::ServeError;

/// What is offered; what no daemon took goes with this.
#[derive(Debug, Default)]
pub struct Offer {
    listener: Option<Listener>,
    memory: Option<(File, PathBuf)>,
}

impl Offer {
    /// Opens what the daemon of `config` needs for other disks: the new one's socket, if there is a new one that has one.
    ///
    /// # Errors
    /// Somebody listens there, or a file cannot be made or read.
    pub fn make(config: &Config, socket: Option<&Path>) -> Result<Self, ResizeError> {
        let listener = socket.map(Listener::bind).transpose().map_err(ServeError::from)?;
        let mut offer = Self { listener, memory: None };
        let fast = config.fast.as_ref().and_then(|fast| fast.device.path());
        if let (Ok(Built::Cached { .. }), Some(fast)) = (config.home(), fast) {
            offer.memory = Some(next_memory(config, fast)?);
        }
        if let Some(control) = config.control_socket() {
            offer.give_to_owner_of(&control)?;
        }
        Ok(offer)
    }

    /// Root may ask a daemon of another user's.
    fn give_to_owner_of(&self, control: &Path) -> Result<(), ResizeError> {
        let failed = |path: &Path, source| {
            ResizeError::Value(format!("{}: cannot be given to the daemon's user: {source}", path.display()))
        };
        let Ok(facts) = fs::metadata(control) else { return Ok(()) };
        let (user, group) = (facts.uid(), facts.gid());
        if user == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        if let Some(listener) = &self.listener {
            let path = listener.path();
            chown(path, Some(user), Some(group)).map_err(|source| failed(path, source))?;
        }
        if let Some((file, path)) = &self.memory {
            fchown(file, Some(user), Some(group)).map_err(|source| failed(path, source))?;
        }
        Ok(())
    }

    /// What is sent with the question, in this order.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let socket = self.listener.iter().map(|listener| listener.socket().as_fd());
        socket.chain(self.memory.iter().map(|(file, _)| file.as_fd()))
    }

    /// The daemon has it: its names stay.
    pub fn taken(mut self) {
        self.listener.take().into_iter().for_each(Listener::leave_name);
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some((file, path)) = &self.memory
            // A daemon that took it keeps its log in there, though nobody may have heard of that.
            && file.metadata().is_ok_and(|facts| facts.len() == 0)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// An empty file where the next daemon of the next cache will look for its log. It is locked: as long as a daemon has it, nobody else offers it.
fn next_memory(config: &Config, fast: &Path) -> Result<(File, PathBuf), ResizeError> {
    let name = fast.display().to_string();
    let unreadable = |source| ResizeError::Value(format!("{name}: {source}"));
    let device = File::open(fast).map_err(unreadable)?;
    let path = attach::next_log(&config.cache.memory, &name, &superblocks(&device, &name)?)?;
    let fails = |why: &dyn fmt::Display| ResizeError::Value(format!("{}: {why}", path.display()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(&path)
        .map_err(|source| fails(&source))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| fails(&"another change of disks is under way: give the command again after it"))?;
    let facts = file.metadata().map_err(|source| fails(&source))?;
    if facts.len() > 0 || facts.nlink() == 0 {
        return Err(fails(&"another change has come between: give the command again"));
    }
    Ok((file, path))
}
