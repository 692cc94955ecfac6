//! A client of the control socket, and the descriptors that come with what it says.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Descriptors of one client at most: of a new disk's socket, and of a log in memory.
pub(super) const MOST_HANDED: usize = 2;

/// A client, whose stream does not block.
pub(super) struct Visitor {
    pub(super) stream: UnixStream,
    pub(super) handed: Vec<OwnedFd>,
}

impl Visitor {
    pub(super) const fn new(stream: UnixStream) -> Self {
        Self { stream, handed: Vec::new() }
    }
}

impl Read for Visitor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDED))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.stream, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                // Those that are too many are closed.
                let room = MOST_HANDED.saturating_sub(self.handed.len());
                self.handed.extend(descriptors.take(room));
            }
        }
        Ok(received.bytes)
    }
}

impl Write for Visitor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl AsFd for Visitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
