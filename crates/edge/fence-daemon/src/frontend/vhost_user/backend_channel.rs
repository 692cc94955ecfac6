//! The way back: what a server has to tell its client unasked, over a socket that the client gave it.
//!
//! A client that hears of a changed configuration asks for it over the connection itself, and guests then see a disk's
//! new size. QEMU up to 7.2 does so even from within a question of its own, the answer to which it then takes for the
//! other's. So nothing is told while it talks to us or has no ring at work.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketType, send, sockopt};
use vhost::vhost_user::message::BackendReq;
use virtbench_fence::Time;

use super::wire::{self, WireError};

/// A client that has said nothing for so long is gone.
const QUIET_NS: u64 = 200_000_000;

/// A socket of the client's. Nothing is read from it: no answers are asked for.
#[derive(Debug)]
pub struct BackendChannel(OwnedFd);

impl BackendChannel {
    /// # Errors
    /// The descriptor is no socket for messages of any length.
    pub fn new(fd: OwnedFd) -> Result<Self, WireError> {
        match sockopt::socket_type(&fd) {
            Ok(SocketType::STREAM) => Ok(Self(fd)),
            _ => Err(WireError::Malformed("a channel for our messages that is no stream socket")),
        }
    }

    /// Tells the client that its device has another configuration.
    ///
    /// # Errors
    /// It does not take it.
    pub fn config_changed(&self) -> Result<(), WireError> {
        wire::tell(&self.0, BackendReq::CONFIG_CHANGE_MSG.into())
    }
}

/// Whether a client is owed the news that its configuration changed, and when it gets them.
#[derive(Debug, Default)]
pub struct News {
    owed: bool,
    due: Option<Time>,
}

impl News {
    /// There are some.
    pub fn owe(&mut self, now: Time) {
        self.owed = true;
        self.heard(now);
    }

    /// The client has said something.
    pub fn heard(&mut self, now: Time) {
        if self.owed {
            self.due = Some(now.after(QUIET_NS));
        }
    }

    /// The client is not ready for them: it will say something before it is.
    pub const fn wait(&mut self) {
        self.due = None;
    }

    /// They were told, or cannot be. Gives which.
    pub fn told(&mut self, told: bool) -> bool {
        *self = Self::default();
        told
    }

    /// When they are told.
    pub const fn due(&self) -> Option<Time> {
        self.due
    }
}

/// Tells a client that something is done.
#[derive(Debug)]
pub enum Call {
    /// As nearly all of them have it.
    Event(OwnedFd),
    /// One end of a pair of stream sockets, as the kernel of User Mode Linux has it: an eventfd would not wake it.
    Socket(OwnedFd),
}

impl Call {
    /// Takes it from a client.
    ///
    /// # Errors
    /// It is something else.
    pub fn new(fd: OwnedFd) -> Result<Self, WireError> {
        let local = sockopt::socket_domain(&fd).is_ok_and(|domain| domain == AddressFamily::UNIX);
        if local && sockopt::socket_type(&fd).is_ok_and(|kind| kind == SocketType::STREAM) {
            return Ok(Self::Socket(fd));
        }
        eventfd(fd).map(Self::Event)
    }

    /// Tells the client. One that has not read what it was told before knows already.
    pub fn tell(&self) {
        match self {
            Self::Event(event) => add_one(event),
            Self::Socket(socket) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let _ = send(socket, &1u64.to_ne_bytes(), flags);
            }
        }
    }
}

/// Adds one to an eventfd. One that is full tells all there is to tell.
pub fn add_one(event: &OwnedFd) {
    let _ = rustix::io::write(event.as_fd(), &1u64.to_ne_bytes());
}

/// Takes an eventfd from a client: other files may not be read and written without fear of waiting.
///
/// # Errors
/// It is something else, or the kernel does not say what it is.
pub fn eventfd(fd: OwnedFd) -> Result<OwnedFd, WireError> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    match link {
        Ok(link) if link.as_os_str() == "anon_inode:[eventfd]" => {}
        Ok(_) => return Err(WireError::Malformed("a descriptor that is no eventfd")),
        Err(_) => return Err(WireError::Malformed("a descriptor of which /proc does not say what it is")),
    }
    let flags = rustix::fs::fcntl_getfl(&fd).map_err(WireError::Socket)?;
    rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK).map_err(WireError::Socket)?;
    Ok(fd)
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod call_tests;

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    #[test]
    fn a_client_hears_once_it_is_quiet() {
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut news = News::default();
        news.heard(at(0));
        assert_eq!(news.due(), None, "there are none");
        news.owe(at(10));
        news.heard(at(50));
        assert_eq!(news.due(), Some(at(250)));
        news.wait();
        assert_eq!(news.due(), None);
        news.heard(at(300));
        assert_eq!(news.due(), Some(at(500)));
        assert!(news.told(true));
        news.heard(at(600));
        assert_eq!(news.due(), None, "once");
    }

    #[test]
    fn only_a_socket_will_do_and_a_client_that_does_not_read_is_no_danger() {
        let (mut client, ours) = UnixStream::pair().unwrap();
        let channel = BackendChannel::new(ours.into()).unwrap();
        channel.config_changed().unwrap();
        let mut message = [0; 12];
        client.read_exact(&mut message).unwrap();
        assert_eq!((message[0], message[4], message[8]), (2, 1, 0));
        let full = (0..1_000_000).find_map(|_| channel.config_changed().err());
        assert!(matches!(full, Some(WireError::Deaf)), "{full:?}");
        drop(client);
        assert!(channel.config_changed().is_err());
        let (one, _other) = UnixDatagram::pair().unwrap();
        assert!(BackendChannel::new(one.into()).is_err());
        assert!(BackendChannel::new(std::fs::File::open("/dev/null").unwrap().into()).is_err());
    }
}
