//! A connection to a server, made and shaken hands on within time limits.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use virtbench_nbd::client::{Export, Handshake, Progress};
use virtbench_nbd::{Command, encode_request};

use super::address::Server;
use super::{NbdAddress, NbdError};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long the whole handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How long a receiving worker sleeps before it looks at its stop flag.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// A socket in the transmission phase. Receiving from it blocks for 50 ms at most.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    /// What the server said about the export.
    pub export: Export,
}

impl Connection {
    /// Connects and shakes hands, each in 5 s at most.
    ///
    /// # Errors
    /// There is no server, it says nothing in time, or it has no such export.
    pub fn open(address: &NbdAddress) -> Result<Self, NbdError> {
        let named = |source| NbdError::Connect { address: address.server.to_string(), source };
        let socket = match &address.server {
            Server::Tcp(host, port) => connect_tcp(host, *port).map_err(named)?,
            Server::Unix(path) => connect_unix(path).map_err(named)?,
        };
        let export = shake_hands(socket.as_fd(), &address.export)?;
        tracing::info!(server = %address.server, name = address.export, ?export, "shaken hands with an NBD server");
        set_socket_timeout(&socket, Timeout::Recv, Some(HEARTBEAT)).map_err(io::Error::from)?;
        Ok(Self { socket, export })
    }

    /// Whether nothing has come unasked: no bytes, and no end.
    pub(crate) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&self.socket, &mut [0u8; 1], flags), Err(Errno::AGAIN))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let goodbye = encode_request(Command::Disconnect, 0, 0, 0);
        let _ = send(&self.socket, &goodbye, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

fn connect_tcp(host: &str, port: u16) -> io::Result<OwnedFd> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream.into());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A unix socket's connect blocks only while the server's queue is full, under the limit for sending.
fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_LIMIT))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn shake_hands(socket: BorrowedFd<'_>, name: &str) -> Result<Export, NbdError> {
    let limit = Instant::now() + HANDSHAKE_LIMIT;
    let mut handshake = Handshake::new(name)?;
    loop {
        let mut bytes = vec![0; handshake.wants()];
        receive_all(socket, &mut bytes, limit, &handshake)?;
        match handshake.take(&bytes)? {
            Progress::Send(bytes) => send_all(socket, &bytes, limit, &handshake)?,
            Progress::Done(export) => return Ok(export),
        }
    }
}

/// Sets the time left as the socket's limit, or fails when there is none.
fn limit_to(socket: BorrowedFd<'_>, which: Timeout, limit: Instant) -> Result<(), NbdError> {
    let left = limit.saturating_duration_since(Instant::now());
    if left < Duration::from_millis(1) {
        return Err(NbdError::Silent { seconds: HANDSHAKE_LIMIT.as_secs() });
    }
    Ok(set_socket_timeout(socket, which, Some(left)).map_err(io::Error::from)?)
}

fn receive_all(
    socket: BorrowedFd<'_>,
    mut bytes: &mut [u8],
    limit: Instant,
    handshake: &Handshake,
) -> Result<(), NbdError> {
    while !bytes.is_empty() {
        limit_to(socket, Timeout::Recv, limit)?;
        match recv(socket, &mut *bytes, RecvFlags::empty()) {
            Ok((0, _)) | Err(Errno::CONNRESET) => return Err(handshake.closed().into()),
            Ok((count, _)) => bytes = &mut bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

fn send_all(
    socket: BorrowedFd<'_>,
    mut bytes: &[u8],
    limit: Instant,
    handshake: &Handshake,
) -> Result<(), NbdError> {
    while !bytes.is_empty() {
        limit_to(socket, Timeout::Send, limit)?;
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(handshake.closed().into()),
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}
