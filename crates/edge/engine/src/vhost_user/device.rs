//! A started device and its queues.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use blkio::{Blkio, Blkioq, MemoryRegion};
use thiserror::Error;

use crate::buffers::Shared;

/// How long the server may take for each exchange of messages.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A started device. Queues must be dropped before it.
pub(crate) struct Device {
    blkio: Mutex<Blkio>,
    queues: Mutex<Vec<Blkioq>>,
}

/// Connects to the server, without starting the device.
pub(super) fn connect(socket: &Path, read_only: bool) -> Result<Blkio, VhostUserError> {
    let path = socket.to_owned();
    bounded(socket, "connect", move || {
        let mut blkio = Blkio::new("virtio-blk-vhost-user")?;
        blkio.set_str("path", &path.to_string_lossy())?;
        blkio.set_bool("read-only", read_only)?;
        blkio.connect()?;
        tracing::info!(socket = %path.display(), "connected to a vhost-user server");
        Ok(blkio)
    })
}

impl Device {
    /// Starts the device with so many queues of so many descriptors.
    pub(super) fn start(
        socket: &Path,
        mut blkio: Blkio,
        queues: i32,
        queue_size: i32,
    ) -> Result<Self, VhostUserError> {
        bounded(socket, "start the device", move || {
            blkio.set_i32("num-queues", queues)?;
            blkio.set_i32("queue-size", queue_size)?;
            let queues = blkio.start()?.queues;
            tracing::info!(queues = queues.len(), "shaken hands with a vhost-user server");
            Ok(Self { blkio: Mutex::new(blkio), queues: Mutex::new(queues) })
        })
    }

    /// A queue that nobody else has.
    pub(crate) fn take_queue(&self) -> Option<Blkioq> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Lets the server see a worker's buffers.
    pub(super) fn share(self: &Arc<Self>, socket: &Path, shared: &Shared<'_>) -> Result<(), VhostUserError> {
        let region = MemoryRegion {
            addr: shared.address,
            iova: 0,
            len: shared.len,
            fd: shared.file.as_raw_fd(),
            fd_offset: 0,
            flags: 0,
        };
        let device = Arc::clone(self);
        bounded(socket, "share memory", move || {
            device.blkio.lock().unwrap_or_else(PoisonError::into_inner).map_mem_region(&region)
        })
    }
}

/// Runs an exchange with the server under the time limit.
pub(super) fn bounded<T: Send + 'static>(
    socket: &Path,
    action: &'static str,
    exchange: impl FnOnce() -> blkio::Result<T> + Send + 'static,
) -> Result<T, VhostUserError> {
    let socket = socket.to_owned();
    let (answer, answered) = mpsc::channel();
    let spawned = thread::Builder::new().name("vhost-user".into()).spawn(move || {
        let _ = answer.send(exchange());
    });
    if let Err(error) = spawned {
        return Err(VhostUserError::Failed { socket, action, message: error.to_string() });
    }
    match answered.recv_timeout(ANSWER_LIMIT) {
        Ok(result) => result.map_err(|error| VhostUserError::Failed {
            socket,
            action,
            message: error.message().to_owned(),
        }),
        Err(RecvTimeoutError::Timeout) => {
            Err(VhostUserError::Silent { socket, action, seconds: ANSWER_LIMIT.as_secs() })
        }
        // The crate panicked over what the server said.
        Err(RecvTimeoutError::Disconnected) => Err(VhostUserError::Nonsense { socket, action }),
    }
}

/// What goes wrong with a vhost-user server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum VhostUserError {
    /// It cannot be reached, or refuses.
    #[error("vhost-user:{socket}: cannot {action}: {message}; is a vhost-user-blk server listening there, with no other client?",
        socket = socket.display())]
    Failed {
        socket: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the `blkio` crate said.
        message: String,
    },
    /// It does not answer.
    #[error("vhost-user:{socket}: no answer within {seconds} s while trying to {action}: is it a vhost-user-blk server, \
        with no other client?", socket = socket.display())]
    Silent {
        socket: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// It says what cannot be.
    #[error("vhost-user:{socket}: the server's answers make no sense (while trying to {action})", socket = socket.display())]
    Nonsense {
        socket: PathBuf,
        /// What was tried.
        action: &'static str,
    },
}
