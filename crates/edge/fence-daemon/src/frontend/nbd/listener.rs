//! Where NBD clients connect: unix sockets that their owner alone may use, and TCP.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use crate::frontend::listen;

/// An address to listen at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// `unix:PATH`.
    Unix(PathBuf),
    /// `tcp:ADDRESS:PORT`.
    Tcp(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => address
                .parse()
                .map(Self::Tcp)
                .map_err(|_| format!("{text:?}: write tcp:127.0.0.1:10809 or tcp:[::1]:10809")),
            _ => Err(format!("{text:?}: write unix:/PATH or tcp:ADDRESS:PORT")),
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// Why the server cannot listen.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum NbdListenError {
    /// A unix socket cannot be had.
    #[error(transparent)]
    Unix(#[from] listen::ListenError),
    /// Another server has the port.
    #[error("tcp:{0} is in use: end the server that listens there, or choose another port")]
    InUse(SocketAddr),
    /// The operating system refuses.
    #[error("cannot listen at tcp:{at}: {source}")]
    Refused { at: SocketAddr, source: io::Error },
}

/// A socket that clients connect to.
#[derive(Debug)]
pub enum Listener {
    /// With a name, which goes with it.
    Unix(listen::Listener),
    /// With a port.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// Another server listens there, something else is there, or the operating system refuses.
    pub fn open(at: &Listen) -> Result<Self, NbdListenError> {
        let address = match at {
            Listen::Unix(path) => return Ok(Self::Unix(listen::Listener::bind(path)?)),
            Listen::Tcp(address) => *address,
        };
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener.map(Self::Tcp).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => NbdListenError::InUse(address),
            _ => NbdListenError::Refused { at: address, source },
        })
    }

    /// The port, if it is a TCP socket's.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
        }
    }

    /// The next client that waits, if any; its socket does not block.
    ///
    /// # Errors
    /// There is no descriptor or memory left.
    pub fn accept(&self) -> io::Result<Option<OwnedFd>> {
        let listener = match self {
            Self::Unix(listener) => return Ok(listener.accept()?.map(OwnedFd::from)),
            Self::Tcp(listener) => listener,
        };
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Some(stream.into()))
            }
            // No client, or one that is gone already.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.socket().as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!("unix:/run/s".parse(), Ok(Listen::Unix("/run/s".into())));
        assert_eq!("tcp:[::1]:80".parse(), Ok(Listen::Tcp("[::1]:80".parse().unwrap())));
        for wrong in ["", "/run/s", "unix:run/s", "tcp:localhost:1", "tcp:127.0.0.1", "udp:127.0.0.1:1"] {
            assert!(wrong.parse::<Listen>().unwrap_err().contains("write"), "{wrong}");
        }
    }

    #[test]
    fn a_port_in_use_is_said_to_be() {
        let any = Listener::open(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        let address = format!("tcp:127.0.0.1:{}", any.port().unwrap());
        let taken = Listener::open(&address.parse().unwrap()).unwrap_err();
        assert!(taken.to_string().contains("in use"), "{taken}");
    }
}
