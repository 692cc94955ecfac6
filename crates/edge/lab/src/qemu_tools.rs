//! QEMU's own tools: qemu-img, which makes qcow2 images, and qemu-storage-daemon, which serves one disk over NBD or vhost-user.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use thiserror::Error;
use virtbench_units::format_bytes;

use crate::adapters::Transport;
use crate::child::{BoundChild, describe_end};
use crate::guest_disk::{EXPORT, GuestDisk};
use crate::process::{AgentProcess, MachineError};

const QEMU_IMG: &str = "qemu-img";

/// How long making an image may take: an hour is 4 TiB at 1 GiB/s.
const LIMIT: Duration = Duration::from_secs(3600);

/// How often a wish to stop is looked for.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// An image that cannot be made.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ImageMakingError {
    /// qemu-img is not there.
    #[error(
        "{program} was not found, which the backings qcow2 and overlay need: `apt install qemu-utils`, or set \
             VIRTBENCH_QEMU_IMG to its path"
    )]
    Missing {
        /// What was looked for.
        program: String,
    },
    /// It failed.
    #[error("qemu-img could not make {}: {why}; look at the space left there", path.display())]
    Failed {
        /// The image.
        path: PathBuf,
        why: String,
    },
    /// It was stopped.
    #[error("stopped while {} was made", path.display())]
    Stopped {
        /// The image.
        path: PathBuf,
    },
}

/// How much of an image is allocated when it is made, before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preallocation {
    /// Nothing.
    Off,
    /// The tables that say where clusters are.
    Metadata,
    /// Those, and space for the clusters.
    Falloc,
    /// Those, and zeros written.
    Full,
}

impl Preallocation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Off, Self::Metadata, Self::Falloc, Self::Full];

    /// qemu-img's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Metadata => "metadata",
            Self::Falloc => "falloc",
            Self::Full => "full",
        }
    }
}

/// A qcow2 image to be made.
#[derive(Debug, Clone, Copy)]
pub struct Qcow2<'a> {
    /// Where; what is there is overwritten.
    pub path: &'a Path,
    /// The size of the disk in it, in bytes.
    pub size_bytes: u64,
    /// The size of a cluster, in bytes.
    pub cluster_bytes: u64,
    /// What is allocated at first.
    pub preallocation: Preallocation,
    /// The raw file with what is not in the image.
    pub backing: Option<&'a Path>,
    /// The raw file whose blocks are then written into it.
    pub contents: Option<&'a Path>,
}

/// Finds qemu-img: `$VIRTBENCH_QEMU_IMG`, else on the path.
///
/// # Errors
/// It is not there.
pub fn find_qemu_img() -> Result<PathBuf, ImageMakingError> {
    let program = env::var("VIRTBENCH_QEMU_IMG").unwrap_or_else(|_| QEMU_IMG.to_owned());
    which::which(&program).map_err(|_| ImageMakingError::Missing { program })
}

impl Qcow2<'_> {
    /// Makes it.
    ///
    /// # Errors
    /// qemu-img is missing or fails, or `stop` was set.
    pub fn make(&self, stop: &AtomicBool) -> Result<(), ImageMakingError> {
        let program = find_qemu_img()?;
        let mut create = Command::new(&program);
        let options =
            format!("cluster_size={},preallocation={}", self.cluster_bytes, self.preallocation.name());
        create.args(["create", "-q", "-f", "qcow2", "-o", &options]);
        if let Some(backing) = self.backing {
            create.arg("-b").arg(backing).args(["-F", "raw"]);
        }
        create.arg(self.path).arg(self.size_bytes.to_string());
        self.run(create, stop)?;
        let Some(contents) = self.contents else { return Ok(()) };
        let mut fill = Command::new(&program);
        fill.args(["convert", "-q", "-n", "-t", "none", "-T", "none", "-f", "raw", "-O", "qcow2"]);
        fill.arg(contents).arg(self.path);
        self.run(fill, stop)
    }

    fn run(&self, mut command: Command, stop: &AtomicBool) -> Result<(), ImageMakingError> {
        let failed = |why: String| ImageMakingError::Failed { path: self.path.to_owned(), why };
        let io_failed = |error: io::Error| failed(error.to_string());
        let (reader, writer) = io::pipe().map_err(io_failed)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer);
        let mut child = BoundChild::spawn(command, Vec::new()).map_err(io_failed)?;
        let until = Instant::now() + LIMIT;
        let status = loop {
            if stop.load(Ordering::Relaxed) {
                return Err(ImageMakingError::Stopped { path: self.path.to_owned() });
            }
            if let Some(status) = child.wait_within(STOP_INTERVAL).map_err(io_failed)? {
                break status;
            }
            if Instant::now() > until {
                return Err(failed(format!(
                    "not ready within {LIMIT:?} at {}",
                    format_bytes(self.size_bytes)
                )));
            }
        };
        if status.success() {
            return Ok(());
        }
        let mut said = Vec::new();
        // It has ended, so that what it said is all there is.
        io::Read::read_to_end(&mut io::Read::take(reader, 4096), &mut said).map_err(io_failed)?;
        let said = String::from_utf8_lossy(&said);
        Err(failed(format!("it {}: {}", describe_end(status), said.trim().replace('\n', "; "))))
    }
}

const STORAGE_DAEMON: &str = "qemu-storage-daemon";

/// The block node it serves.
const NODE: &str = "served";

/// There is no qemu-storage-daemon.
#[derive(Debug, Error)]
#[error(
    "{program} was not found, which vhost-user-blk and the backing nbd need: `apt install qemu-system-common`, or set \
     VIRTBENCH_STORAGE_DAEMON to its path"
)]
pub struct NoStorageDaemon {
    program: String,
}

/// Finds the daemon: `$VIRTBENCH_STORAGE_DAEMON`, else on the path.
///
/// # Errors
/// It is not there.
pub fn find_storage_daemon() -> Result<PathBuf, NoStorageDaemon> {
    let program = env::var("VIRTBENCH_STORAGE_DAEMON").unwrap_or_else(|_| STORAGE_DAEMON.to_owned());
    which::which(&program).map_err(|_| NoStorageDaemon { program })
}

/// A running daemon that serves one disk to one client. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct StorageDaemon {
    process: AgentProcess,
    command_line: Vec<String>,
}

impl StorageDaemon {
    /// Starts it for a guest of so many processors; also returns the connection that its client is to inherit.
    pub(crate) fn start(disk: &GuestDisk, vcpus: u32) -> Result<(Self, OwnedFd), MachineError> {
        let (listener, client) = listener_with_client().map_err(failed)?;
        Ok((Self::serve(disk, vcpus, listener)?, client))
    }

    /// The same for a client that connects to a socket at `path`, which is made.
    pub(crate) fn start_at(disk: &GuestDisk, vcpus: u32, path: &Path) -> Result<Self, MachineError> {
        Self::serve(disk, vcpus, UnixListener::bind(path).map_err(failed)?.into())
    }

    fn serve(disk: &GuestDisk, vcpus: u32, listener: OwnedFd) -> Result<Self, MachineError> {
        let program = find_storage_daemon().map_err(|error| failed(io::Error::other(error)))?;
        let mut arguments = disk.block_arguments(NODE);
        let settings = &disk.settings;
        let mut export = String::new();
        if settings.iothread == Some(true) {
            arguments.extend(["--object".to_owned(), "iothread,id=thread".to_owned()]);
            export.push_str(",iothread=thread");
        }
        if !settings.cache().acknowledges_early() {
            export.push_str(",writethrough=on");
        }
        let socket = format!("addr.type=fd,addr.str={}", listener.as_raw_fd());
        let writable = if disk.read_only { "off" } else { "on" };
        let common = format!("id=export,node-name={NODE},writable={writable}");
        match disk.adapter.transport {
            Transport::Qemu => arguments.extend([
                "--nbd-server".to_owned(),
                socket,
                "--export".to_owned(),
                format!("type=nbd,{common},name={EXPORT}{export}"),
            ]),
            Transport::VhostUser => {
                // QEMU asks for a queue for each processor, as it does of its own virtio disks; the daemon would
                // offer one.
                export.push_str(&format!(",num-queues={}", settings.queues.unwrap_or(vcpus)));
                arguments.extend([
                    "--export".to_owned(),
                    format!("type=vhost-user-blk,{common},{socket}{export}"),
                ]);
            }
        }
        let mut command = Command::new(&program);
        command.args(&arguments);
        let process = AgentProcess::spawn(command, vec![listener], "qemu-storage-daemon")?;
        tracing::info!(process = process.id(), disk = %disk.path.display(), "a server of a guest's disk started");
        let command_line = std::iter::once(program.to_string_lossy().into_owned()).chain(arguments).collect();
        Ok(Self { process, command_line })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// Whether it still runs; if not, why.
    pub(crate) fn check(&mut self) -> Result<(), MachineError> {
        self.process.check()
    }
}

fn failed(source: io::Error) -> MachineError {
    MachineError::Start { program: STORAGE_DAEMON.into(), source }
}

/// A socket that is listened on and a connection to it. Its name is gone when this returns, so that
/// no one else can connect, and nothing is left to clean up.
fn listener_with_client() -> io::Result<(OwnedFd, OwnedFd)> {
    let directory = tempfile::TempDir::new()?;
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path)?;
    let client = UnixStream::connect(&path)?;
    fs::remove_file(&path)?;
    Ok((listener.into(), client.into()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn image(path: &Path) -> Qcow2<'_> {
        Qcow2 {
            path,
            size_bytes: 4 << 20,
            cluster_bytes: 65536,
            preallocation: Preallocation::Off,
            backing: None,
            contents: None,
        }
    }

    #[test]
    fn contents_are_written_into_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, raw) = (directory.path().join("a,b.qcow2"), directory.path().join("raw"));
        fs::write(&raw, vec![7; 4 << 20]).unwrap();
        let never = AtomicBool::new(false);
        let made = Qcow2 { contents: Some(&raw), ..image(&path) }.make(&never);
        made.unwrap_or_else(|error| panic!("{error}"));
        assert!(fs::metadata(&path).unwrap().len() >= 4 << 20);
    }

    #[test]
    fn a_failure_is_in_the_tools_words_and_a_stop_is_obeyed() {
        let path = Path::new("/nonexistent/image");
        let error = image(path).make(&AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/image") && error.contains("exit code 1"), "{error}");
        let stopped = image(path).make(&AtomicBool::new(true)).unwrap_err();
        assert!(matches!(stopped, ImageMakingError::Stopped { .. }));
    }

    #[test]
    fn a_missing_daemon_is_named_with_what_mends_it() {
        let message = NoStorageDaemon { program: "/x".into() }.to_string();
        assert!(message.contains("apt install") && message.contains("vhost-user-blk"), "{message}");
    }

    #[test]
    fn client_and_listener_meet() {
        let (listener, _client) = listener_with_client().unwrap();
        UnixListener::from(listener).accept().unwrap();
    }
}
