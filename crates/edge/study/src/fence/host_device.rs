//! An NBD export as a block device of the host, so that what limits block devices can limit it.
//!
//! ```text
//! QEMU, raw -> /dev/loopN -> a file of FUSE, without a place in any folder -> NBD -> the daemon
//! ```
//!
//! The file is served by threads of this process. Each request is answered when the daemon has answered it, however many
//! are in flight. `qemu-storage-daemon --export type=fuse` (7.2) was tried and is no substitute: under 32 requests of 10 ms
//! at once it did 1,020 a second in place of 3,200. The kernel's own NBD client would need a driver that many kernels lack.
//!
//! Nothing has to be cleaned up, also after a kill: the file system is mounted nowhere, the kernel takes the loop device
//! away with its last user, and fails what is in flight when the process that answers is gone.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use std::{env, io, thread};

use fuser::{
    Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyOpen, ReplyWrite, Request, Session,
    SessionACL, WriteFlags,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use thiserror::Error;
use virtbench_engine::nbd::{Connection, NbdAddress, NbdError};
use virtbench_lab::{LoopCache, LoopDevice, LoopError};
use virtbench_nbd::client::{Event, ReplyStream};
use virtbench_nbd::{Command, encode_request};

/// How long the kernel may take to let go of a device that nobody uses any more.
const END_LIMIT: Duration = Duration::from_secs(10);

/// No block device can be had.
#[derive(Debug, Error)]
pub enum HostDeviceError {
    /// The export.
    #[error(transparent)]
    Nbd(#[from] NbdError),
    /// The file.
    #[error(
        "{action}: {source}; a disk as a block device of the host needs root, /dev/fuse and a kernel from 5.8"
    )]
    Fuse {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The device.
    #[error(transparent)]
    Loop(#[from] LoopError),
}

/// A block device with the blocks of an export. It is gone when this and its users are.
#[derive(Debug)]
pub(super) struct HostDevice {
    device: Option<LoopDevice>,
    /// Closes when the kernel has let go of the file.
    ended: Receiver<()>,
}

impl HostDevice {
    /// Connects to `export` of the server at the Unix socket `nbd`, and makes a device of it.
    pub(super) fn attach(nbd: &Path, export: &str) -> Result<Self, HostDeviceError> {
        let failed = |action| move |source| HostDeviceError::Fuse { action, source };
        let address = NbdAddress::unix(nbd, export);
        let file = ExportFile::new(Requests::open(&address)?);
        let (session, mount) = mount(file).map_err(failed("a file system of FUSE"))?;
        let (ending, ended) = sync_channel(0);
        thread::Builder::new()
            .name("fuse".into())
            .spawn(move || {
                // It ends with an error where the connection to the kernel does, which is how it is to end.
                let _ = session.run();
                drop::<std::sync::mpsc::SyncSender<()>>(ending);
            })
            .map_err(failed("a thread"))?;
        let device = LoopDevice::attach(&mount.path(), LoopCache::Direct)?;
        Ok(Self { device: Some(device), ended })
    }

    /// Its node under `/dev`.
    pub(super) fn path(&self) -> &Path {
        self.device.as_ref().map_or(Path::new(""), LoopDevice::path)
    }
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        self.device = None;
        // The server stays until what was written has arrived.
        let _ = self.ended.recv_timeout(END_LIMIT);
    }
}

/// Checks that such devices can be had, as far as that shows without making one.
///
/// # Errors
/// Not permitted, or no such driver.
pub fn check_host_devices() -> Result<(), HostDeviceError> {
    check().map_err(|source| HostDeviceError::Fuse { action: "/dev/fuse", source })?;
    Ok(LoopDevice::check()?)
}

/// The largest request, in bytes: what the daemon of a study takes.
const MAX_REQUEST_BYTES: u32 = 64 << 10;

/// Requests that the kernel may have in flight: as many as a loop device has.
const UNDER_WAY: u16 = 128;

const _: () = assert!((UNDER_WAY as u32) < SLOTS, "those that the kernel waits for come on top");

/// Nothing about the file changes.
const LASTING: Duration = Duration::from_secs(1 << 30);

/// The file of an export.
struct ExportFile {
    requests: Requests,
}

impl ExportFile {
    fn new(requests: Requests) -> Self {
        Self { requests }
    }

    fn facts(&self) -> FileAttr {
        let size = self.requests.size_bytes();
        FileAttr {
            ino: INodeNo::ROOT,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: 0o600,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for ExportFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = || io::Error::other("FUSE takes no such limits");
        config.set_max_write(MAX_REQUEST_BYTES).map_err(|_| refused())?;
        config.set_max_background(UNDER_WAY).map_err(|_| refused())?;
        // Without it the loop driver would wait for one request before the next.
        let asynchronous = InitFlags::FUSE_ASYNC_DIO;
        config
            .add_capabilities(asynchronous)
            .map_err(|_| io::Error::other("the kernel has no asynchronous FUSE"))
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&LASTING, &self.facts());
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.requests.submit(Command::Read, offset, size, &[], Waiting::Read(reply));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.requests.submit(Command::Write, offset, len, data, Waiting::Write(reply));
    }

    /// Of a descriptor that is closed, which writes nothing.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if self.requests.can_flush() {
            self.requests.submit(Command::Flush, 0, 0, &[], Waiting::Flush(reply));
        } else {
            reply.ok();
        }
    }
}

/// FUSE's device, unless `$VIRTBENCH_FUSE` names another.
const DEVICE: &str = "/dev/fuse";

/// A regular file, for its owner.
const ROOT_MODE: &str = "100600";

/// A mount without a place, as long as this is there.
struct Mount(OwnedFd);

impl Mount {
    /// A name of its root, for this process.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

fn open() -> io::Result<File> {
    let device = env::var("VIRTBENCH_FUSE").unwrap_or_else(|_| DEVICE.to_owned());
    OpenOptions::new().read(true).write(true).open(device)
}

/// Checks that there is such a thing.
fn check() -> io::Result<()> {
    open().map(drop)
}

/// Mounts the file. The session has greeted the kernel and is to be run.
fn mount(file: ExportFile) -> io::Result<(Session<ExportFile>, Mount)> {
    let connection = open()?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let settings = [
        ("source", "virtbench".to_owned()),
        ("fd", connection.as_raw_fd().to_string()),
        ("rootmode", ROOT_MODE.to_owned()),
        ("user_id", rustix::process::geteuid().as_raw().to_string()),
        ("group_id", rustix::process::getegid().as_raw().to_string()),
        ("max_read", MAX_REQUEST_BYTES.to_string()),
    ];
    for (name, value) in settings {
        fsconfig_set_string(&context, name, value.as_str())?;
    }
    // The loop driver's threads may be another user's.
    fsconfig_set_flag(&context, "allow_other")?;
    fsconfig_create(&context)?;
    let session = Session::from_fd(file, connection.into(), SessionACL::All, Config::default())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok((session, Mount(mount)))
}

/// Requests in flight at most.
const SLOTS: u32 = 256;

/// Received at once, in bytes.
const STAGING_BYTES: usize = 128 << 10;

/// What waits for replies.
struct UnderWay {
    replies: ReplyStream,
    /// Who waits, and what was read for it.
    waiting: Vec<Option<(Waiting, Vec<u8>)>>,
    free: Vec<u32>,
    is_broken: bool,
}

struct Shared {
    connection: Connection,
    under_way: Mutex<UnderWay>,
    /// Nothing is sent between a request's header and its data.
    sending: Mutex<()>,
    is_over: AtomicBool,
}

/// A connection to an export. Dropping it ends the thread that receives, and fails what is in flight.
struct Requests {
    shared: Arc<Shared>,
}

impl Requests {
    /// Connects.
    fn open(address: &NbdAddress) -> Result<Self, NbdError> {
        let under_way = UnderWay {
            replies: ReplyStream::new(SLOTS),
            waiting: (0..SLOTS).map(|_| None).collect(),
            free: (0..SLOTS).collect(),
            is_broken: false,
        };
        let shared = Arc::new(Shared {
            connection: Connection::open(address)?,
            under_way: Mutex::new(under_way),
            sending: Mutex::new(()),
            is_over: AtomicBool::new(false),
        });
        let received = Arc::clone(&shared);
        thread::Builder::new().name("fuse-nbd".into()).spawn(move || {
            received.receive();
            received.give_up();
        })?;
        Ok(Self { shared })
    }

    fn size_bytes(&self) -> u64 {
        self.shared.connection.export.size_bytes
    }

    fn can_flush(&self) -> bool {
        self.shared.connection.export.can_flush()
    }

    /// Sends a request; `waiting` is answered when its reply comes, or at once if it cannot be sent.
    fn submit(&self, command: Command, offset: u64, len: u32, data: &[u8], waiting: Waiting) {
        let reads = command == Command::Read;
        let mut under_way = self.shared.lock();
        let Some(slot) = under_way.free.pop().filter(|_| !under_way.is_broken) else {
            return waiting.answer(&[], Err(Errno::IO.raw_os_error()));
        };
        let cookie = under_way.replies.expect(slot, len, reads);
        let room = if reads { vec![0; len as usize] } else { Vec::new() };
        under_way.waiting[slot as usize] = Some((waiting, room));
        drop(under_way);
        let header = encode_request(command, cookie, offset, len);
        let whole = self.shared.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.shared.send(&header).and_then(|()| self.shared.send(data));
        drop(whole);
        if sent.is_err() {
            self.shared.give_up();
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let _ = shutdown(&self.shared.connection, Shutdown::Both);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all; the socket has a limit of its own for a server that takes nothing.
    fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(self.connection.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes replies until the connection ends.
    fn receive(&self) {
        let mut staging = vec![0; STAGING_BYTES];
        while !self.is_over.load(Ordering::Relaxed) {
            let count = match recv(self.connection.as_fd(), &mut staging[..], RecvFlags::empty()) {
                Ok((0, _)) => return,
                Ok((count, _)) => count,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(_) => return,
            };
            let mut under_way = self.lock();
            let UnderWay { replies, waiting, free, .. } = &mut *under_way;
            let fed = replies.feed(&staging[..count], &mut |event| match event {
                Event::Data { slot, at, bytes } => {
                    if let Some((_, room)) = &mut waiting[slot as usize] {
                        room[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                }
                Event::Done { slot, result } => {
                    free.push(slot);
                    if let Some((waiting, data)) = waiting[slot as usize].take() {
                        waiting.answer(&data, u32::try_from(result).map_err(|_| -result));
                    }
                }
            });
            if fed.is_err() {
                return;
            }
        }
    }

    /// Fails what is in flight, and what comes after it.
    fn give_up(&self) {
        let mut under_way = self.lock();
        under_way.is_broken = true;
        let waiting: Vec<_> = under_way.waiting.iter_mut().filter_map(Option::take).collect();
        drop(under_way);
        for (waiting, _) in waiting {
            waiting.answer(&[], Err(Errno::IO.raw_os_error()));
        }
    }
}

/// A request of the kernel that waits for its answer.
enum Waiting {
    Read(ReplyData),
    Write(ReplyWrite),
    Flush(ReplyEmpty),
}

impl Waiting {
    /// Answers it: with what was read, the number of bytes written, or an error's number.
    fn answer(self, data: &[u8], result: Result<u32, i32>) {
        match (self, result) {
            (Self::Read(reply), Ok(_)) => reply.data(data),
            (Self::Write(reply), Ok(written)) => reply.written(written),
            (Self::Flush(reply), Ok(_)) => reply.ok(),
            (Self::Read(reply), Err(errno)) => reply.error(fuser::Errno::from_i32(errno)),
            (Self::Write(reply), Err(errno)) => reply.error(fuser::Errno::from_i32(errno)),
            (Self::Flush(reply), Err(errno)) => reply.error(fuser::Errno::from_i32(errno)),
        }
    }
}

#[cfg(test)]
#[path = "host_device_tests.rs"]
mod tests;
