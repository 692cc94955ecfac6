//! The file: reads, writes and flushes go to the export, and are answered when they are over.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use virtbench_nbd::Command;

use super::requests::{Requests, SLOTS};
use super::waiting::Waiting;

/// The largest request, in bytes: what the daemon of a study takes.
pub(super) const MAX_REQUEST_BYTES: u32 = 64 << 10;
/// Requests that the kernel may have in flight: as many as a loop device has.
const UNDER_WAY: u16 = 128;
const _: () = assert!((UNDER_WAY as u32) < SLOTS, "those that the kernel waits for come on top");
/// Nothing about the file changes.
const LASTING: Duration = Duration::from_secs(1 << 30);

/// The file of an export.
pub(super) struct ExportFile {
    requests: Requests,
}

impl ExportFile {
    pub(super) fn new(requests: Requests) -> Self {
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
