//! The way back: what a server has to tell its client unasked, over a socket that the client gave it.
//!
//! A client that hears of a changed configuration asks for it over the connection itself, and guests then see a disk's
//! new size. QEMU up to 7.2 does so even from within a question of its own, the answer to which it then takes for the
//! other's. So nothing is told while it talks to us or has no ring at work.

use std::os::fd::OwnedFd;

use rustix::net::{SocketType, sockopt};
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
