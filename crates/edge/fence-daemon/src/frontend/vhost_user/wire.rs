//! Messages of the vhost-user protocol: framing, and descriptors that come along.
//!
//! The `vhost` crate's own connection waits for the rest of a message that was begun; one silent client would then halt
//! every disk. Here a message is put together over as many turns as it takes.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use thiserror::Error;
use vhost::vhost_user::message::{MAX_ATTACHED_FD_ENTRIES, MAX_MSG_SIZE};

const HEADER_BYTES: usize = 12;
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;

/// What ends a connection.
#[derive(Debug, Error)]
pub enum WireError {
    /// The client has closed it.
    #[error("the client has gone")]
    Closed,
    /// What it sends is no message.
    #[error("not a vhost-user message: {0}")]
    Malformed(&'static str),
    /// It does not take answers.
    #[error("the client does not take answers")]
    Deaf,
    /// The socket fails.
    #[error("the socket: {0}")]
    Socket(Errno),
}

/// A message of a client.
#[derive(Debug)]
pub struct Message {
    /// What it asks for, one of `FrontendReq`.
    pub code: u32,
    /// The client waits for an answer even where there would be none.
    pub need_reply: bool,
    /// What follows the header.
    pub payload: Vec<u8>,
    /// Descriptors that came along.
    pub fds: Vec<OwnedFd>,
}

impl Message {
    /// The number at byte `at` of the payload, in the machine's order as the protocol has it.
    pub fn u32(&self, at: usize) -> Result<u32, WireError> {
        let bytes = self.payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_ne_bytes).ok_or(WireError::Malformed("too short"))
    }

    /// The same of eight bytes.
    pub fn u64(&self, at: usize) -> Result<u64, WireError> {
        let bytes = self.payload.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_ne_bytes).ok_or(WireError::Malformed("too short"))
    }

    /// The only descriptor that came along.
    pub fn one_fd(&mut self) -> Result<OwnedFd, WireError> {
        match (self.fds.pop(), self.fds.is_empty()) {
            (Some(fd), true) => Ok(fd),
            _ => Err(WireError::Malformed("one descriptor must come along")),
        }
    }
}

/// A message that is being received.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl Inbox {
    /// Takes what the socket has; `None` if that is no whole message yet.
    ///
    /// # Errors
    /// The connection is over, one way or another.
    pub fn receive(&mut self, socket: impl AsFd) -> Result<Option<Message>, WireError> {
        loop {
            let want = self.want()?;
            if self.bytes.len() == want {
                return Ok(Some(self.take()));
            }
            let mut bytes = [0; MAX_MSG_SIZE];
            let len = (want - self.bytes.len()).min(bytes.len());
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_ATTACHED_FD_ENTRIES))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let mut into = [IoSliceMut::new(&mut bytes[..len])];
            let received = match recvmsg(socket.as_fd(), &mut into, &mut control, flags) {
                Ok(received) => received,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
                Err(Errno::CONNRESET) => return Err(WireError::Closed),
                Err(error) => return Err(WireError::Socket(error)),
            };
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    self.fds.extend(fds);
                }
            }
            if received.flags.contains(ReturnFlags::CTRUNC) || self.fds.len() > MAX_ATTACHED_FD_ENTRIES {
                return Err(WireError::Malformed("too many descriptors"));
            }
            if received.bytes == 0 {
                return Err(WireError::Closed);
            }
            self.bytes.extend_from_slice(&bytes[..received.bytes]);
        }
    }

    /// Bytes of the message, as far as is known.
    fn want(&self) -> Result<usize, WireError> {
        let Some(header) = self.bytes.get(..HEADER_BYTES) else { return Ok(HEADER_BYTES) };
        let word =
            |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if word(4) & VERSION_MASK != VERSION {
            return Err(WireError::Malformed("another version of the protocol"));
        }
        if word(4) & REPLY != 0 {
            return Err(WireError::Malformed("an answer that nothing was asked for"));
        }
        let size = word(8) as usize;
        if size > MAX_MSG_SIZE {
            return Err(WireError::Malformed("too long"));
        }
        Ok(HEADER_BYTES + size)
    }

    fn take(&mut self) -> Message {
        let payload = self.bytes.split_off(HEADER_BYTES);
        let header = std::mem::take(&mut self.bytes);
        let word =
            |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Message {
            code: word(0),
            need_reply: word(4) & NEED_REPLY != 0,
            payload,
            fds: std::mem::take(&mut self.fds),
        }
    }
}

/// Sends an answer, whole or not at all: a client that takes no answers is none.
///
/// # Errors
/// It was not taken.
pub fn reply(
    socket: impl AsFd,
    code: u32,
    payload: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> Result<(), WireError> {
    send(socket, code, VERSION | REPLY, payload, fd)
}

/// Sends a message of our own, whole or not at all, to which there is no answer.
///
/// # Errors
/// It was not taken.
pub fn tell(socket: impl AsFd, code: u32) -> Result<(), WireError> {
    send(socket, code, VERSION, &[], None)
}

fn send(
    socket: impl AsFd,
    code: u32,
    flags: u32,
    payload: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> Result<(), WireError> {
    let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let header = [code, flags, size].map(u32::to_ne_bytes).concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let pieces = [IoSlice::new(&header), IoSlice::new(payload)];
    match sendmsg(socket.as_fd(), &pieces, &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(sent) if sent == HEADER_BYTES + payload.len() => Ok(()),
        Ok(_) | Err(Errno::AGAIN) => Err(WireError::Deaf),
        Err(Errno::PIPE | Errno::CONNRESET) => Err(WireError::Closed),
        Err(error) => Err(WireError::Socket(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn message(code: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
        let len = u32::try_from(payload.len()).unwrap();
        [[code, flags, len].map(u32::to_ne_bytes).concat(), payload.to_vec()].concat()
    }

    #[test]
    fn a_message_may_come_byte_by_byte() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let mut inbox = Inbox::default();
        let bytes = message(7, VERSION | NEED_REPLY, &5u64.to_ne_bytes());
        for byte in &bytes {
            assert!(inbox.receive(&server).unwrap().is_none());
            client.write_all(std::slice::from_ref(byte)).unwrap();
        }
        let message = inbox.receive(&server).unwrap().unwrap();
        assert_eq!((message.code, message.need_reply, message.u64(0).unwrap()), (7, true, 5));
        assert!(message.u32(5).is_err());
    }

    #[test]
    fn what_is_no_message_ends_the_connection() {
        for bytes in [message(1, 2, &[]), message(1, VERSION | REPLY, &[]), {
            let mut long = message(1, VERSION, &[]);
            long[8..12].copy_from_slice(&5000u32.to_ne_bytes());
            long
        }] {
            let (mut client, server) = UnixStream::pair().unwrap();
            client.write_all(&bytes).unwrap();
            assert!(matches!(Inbox::default().receive(&server), Err(WireError::Malformed(_))));
        }
        let (client, server) = UnixStream::pair().unwrap();
        drop(client);
        assert!(matches!(Inbox::default().receive(&server), Err(WireError::Closed)));
    }

    #[test]
    fn a_descriptor_goes_along_both_ways() {
        let (client, server) = UnixStream::pair().unwrap();
        let (kept, mut sent) = UnixStream::pair().unwrap();
        send(&client, 9, VERSION, &[1; 8], Some(kept.as_fd())).unwrap();
        let mut message = Inbox::default().receive(&server).unwrap().unwrap();
        let fd = message.one_fd().unwrap();
        sent.write_all(b"x").unwrap();
        let mut byte = [0];
        UnixStream::from(fd).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
        reply(&server, 9, &[2; 4], None).unwrap();
        let mut answer = [0; 16];
        (&client).read_exact(&mut answer).unwrap();
        assert_eq!(answer[4], 5);
    }
}
