//! A device with a volatile cache: a file of FUSE that is mounted nowhere and reached by a descriptor of this process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyOpen, ReplyWrite, Request, Session,
    SessionACL, WriteFlags,
};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use super::Random;

/// What is written whole or not at all.
pub const SECTOR_BYTES: usize = 512;
const LASTING: Duration = Duration::from_secs(1 << 30);

struct Contents {
    /// What is read.
    now: Vec<u8>,
    /// What a power failure leaves for certain.
    stable: Vec<u8>,
    /// What was answered since the last sync: where, and what.
    unsynced: Vec<(usize, Vec<u8>)>,
    is_off: bool,
    /// What fails, and with what.
    refuses: Option<(Work, Errno)>,
}

/// What is asked of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Read,
    Write,
    Sync,
}

impl Contents {
    fn check(&self, work: Work) -> Result<(), Errno> {
        match self.refuses {
            Some((refused, errno)) if refused == work => Err(errno),
            _ => Ok(()),
        }
    }

    fn range(&self, offset: u64, len: usize) -> Result<std::ops::Range<usize>, Errno> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.now.len());
        if self.is_off { Err(Errno::EIO) } else { Ok(start..start.saturating_add(len).min(self.now.len())) }
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        self.check(Work::Write)?;
        let range = self.range(offset, data.len())?;
        let data = &data[..range.len()];
        self.now[range.clone()].copy_from_slice(data);
        self.unsynced.push((range.start, data.to_vec()));
        Ok(u32::try_from(data.len()).unwrap())
    }

    fn sync(&mut self) -> Result<(), Errno> {
        self.check(Work::Sync)?;
        if self.is_off {
            return Err(Errno::EIO);
        }
        for (at, bytes) in self.unsynced.drain(..) {
            self.stable[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// Each write that was not synced is lost, kept or torn, and they arrive in any order.
    fn fail(&mut self, random: &mut Random) {
        let mut writes = std::mem::take(&mut self.unsynced);
        for last in (1..writes.len()).rev() {
            writes.swap(last, random.below(last + 1));
        }
        // Of ten writes so many are lost, and so many whole.
        let (lost, whole) = (random.below(11), random.below(11));
        for (at, bytes) in writes {
            if random.below(10) < lost {
                continue;
            }
            let torn = random.below(10) >= whole;
            for (place, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                if !torn || random.below(2) == 0 {
                    let at = at + place * SECTOR_BYTES;
                    self.stable[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        self.now.copy_from_slice(&self.stable);
    }
}

/// A device. It is gone when this is dropped and nobody has it open.
pub struct PowerDisk {
    contents: Arc<Mutex<Contents>>,
    mount: OwnedFd,
}

impl PowerDisk {
    /// A device of zeroes.
    pub fn new(size_bytes: usize) -> Self {
        let (now, stable) = (vec![0; size_bytes], vec![0; size_bytes]);
        let contents = Contents { now, stable, unsynced: Vec::new(), is_off: false, refuses: None };
        let contents = Arc::new(Mutex::new(contents));
        let mount = mount(Served(Arc::clone(&contents)));
        let mount =
            mount.unwrap_or_else(|error| panic!("a file system of FUSE (needs root, /dev/fuse): {error}"));
        Self { contents, mount }
    }

    /// Its name for every process, as long as this lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.mount.as_raw_fd()).into()
    }

    /// Has writes fail from now on, with such an error or no more.
    pub fn refuse(&self, errno: Option<Errno>) {
        self.refuse_work(errno.map(|errno| (Work::Write, errno)));
    }

    /// The same, of any work.
    pub fn refuse_work(&self, refuses: Option<(Work, Errno)>) {
        self.contents.lock().unwrap().refuses = refuses;
    }

    /// Has it answer nothing until what is returned is dropped.
    pub fn stall(&self) -> impl Drop {
        self.contents.lock().unwrap()
    }

    /// The power of all fails at one moment, with other consequences for each. Nothing is answered well from then on.
    pub fn fail(disks: &[Self], random: &mut Random) {
        let mut all: Vec<_> = disks.iter().map(|disk| disk.contents.lock().unwrap()).collect();
        all.iter_mut().for_each(|contents| contents.is_off = true);
        all.iter_mut().for_each(|contents| contents.fail(random));
    }

    /// Power is back. Waits first until nothing of a daemon that was killed can arrive any more: its lock says that.
    pub fn restore(&self) {
        let file = File::open(self.path()).unwrap();
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        self.contents.lock().unwrap().is_off = false;
    }
}

fn mount(served: Served) -> io::Result<OwnedFd> {
    let connection = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in [
        ("source", "virtbench".to_owned()),
        ("fd", connection.as_raw_fd().to_string()),
        ("rootmode", "100600".to_owned()),
        ("user_id", rustix::process::geteuid().as_raw().to_string()),
        ("group_id", rustix::process::getegid().as_raw().to_string()),
    ] {
        fsconfig_set_string(&context, name, value.as_str())?;
    }
    fsconfig_set_flag(&context, "allow_other")?;
    fsconfig_create(&context)?;
    let mut config = Config::default();
    config.n_threads = Some(2);
    let session = Session::from_fd(served, connection.into(), SessionACL::All, config)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    // It ends with an error where the connection to the kernel does, which is how it is to end.
    std::thread::Builder::new().name("power-disk".into()).spawn(move || drop(session.run()))?;
    Ok(mount)
}

/// What the kernel asks.
struct Served(Arc<Mutex<Contents>>);

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let asked = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        asked.map_err(|_| io::Error::other("the kernel has no asynchronous FUSE"))
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let size = self.0.lock().unwrap().now.len() as u64;
        let (ino, blocks, kind) = (INodeNo::ROOT, size / 512, FileType::RegularFile);
        let [atime, mtime, ctime, crtime] = [UNIX_EPOCH; 4];
        let (uid, gid, rdev, perm, nlink, blksize, flags) = (0, 0, 0, 0o600, 1, 4096, 0);
        let facts = FileAttr {
            ino,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize,
            flags,
        };
        reply.attr(&LASTING, &facts);
    }

    /// Nothing is kept in the kernel's page cache, which would outlive a power failure here.
    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
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
        let contents = self.0.lock().unwrap();
        match contents.check(Work::Read).and_then(|()| contents.range(offset, size as usize)) {
            Ok(range) => reply.data(&contents.now[range]),
            Err(error) => reply.error(error),
        }
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
        match self.0.lock().unwrap().write(offset, data) {
            Ok(len) => reply.written(len),
            Err(error) => reply.error(error),
        }
    }

    /// Of a descriptor that is closed: stable is only what was synced.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.0.lock().unwrap().sync() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let mut contents = self.0.lock().unwrap();
        let written = contents
            .range(offset, usize::try_from(length).unwrap_or(usize::MAX))
            .and_then(|range| contents.write(offset, &vec![0; range.len()]));
        match written {
            Ok(_) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }
}
