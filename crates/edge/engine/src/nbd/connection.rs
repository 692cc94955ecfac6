//! A connection to a server, made and shaken hands on within time limits: where the server is, and what goes wrong with it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use thiserror::Error;
use virtbench_nbd::client::{ClientError, Export, Handshake, Progress};
use virtbench_nbd::{Command, encode_request};

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

/// The port of `nbd://` without one.
const DEFAULT_PORT: u16 = 10809;

/// Where an NBD server is, and the name of its export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdAddress {
    /// How to reach it.
    pub server: Server,
    /// The export's name; servers call their default "".
    pub export: String,
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// Over TCP: host name or address, and port.
    Tcp(String, u16),
    /// Through a unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl NbdAddress {
    /// An export of the server at a Unix socket.
    #[must_use]
    pub fn unix(socket: &Path, export: &str) -> Self {
        Self { server: Server::Unix(socket.to_owned()), export: export.to_owned() }
    }

    /// Reads `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`.
    ///
    /// # Errors
    /// [`NbdError::Uri`], saying what is wrong.
    pub fn parse(text: &str) -> Result<Self, NbdError> {
        let fail = |why: &str| NbdError::Uri { uri: text.to_owned(), why: why.to_owned() };
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
            return Err(fail(&format!("{odd:?} must be written in percent encoding")));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| fail("// is missing"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(fail("NBD without TLS knows no users"));
        }
        // The colons of an IPv6 address stand in brackets.
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let export = decoded(path).ok_or_else(|| fail("the export's name is not UTF-8"))?;
        let socket = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
        let socket = socket.map(|path| decoded(path).ok_or_else(|| fail("the socket's path is not UTF-8")));
        let socket = socket.transpose()?;
        let server = match (scheme.to_ascii_lowercase().as_str(), socket) {
            ("nbd", None) if host.is_empty() => return Err(fail("the host is missing")),
            ("nbd", None) => {
                let port = if port.is_empty() { Ok(DEFAULT_PORT) } else { port.parse() };
                Server::Tcp(host.to_owned(), port.map_err(|_| fail("the port is not below 65536"))?)
            }
            ("nbd", Some(_)) => return Err(fail("a socket needs nbd+unix")),
            ("nbd+unix", _) if !host.is_empty() => {
                return Err(fail("nbd+unix has no host: begin with nbd+unix:///"));
            }
            ("nbd+unix", Some(path)) if !path.is_empty() => Server::Unix(PathBuf::from(path)),
            ("nbd+unix", _) => return Err(fail("?socket= is missing")),
            ("nbds" | "nbds+unix", _) => return Err(fail("virtbench does not speak TLS")),
            _ => return Err(fail("this is no NBD scheme")),
        };
        Ok(Self { server, export })
    }
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// What goes wrong with an NBD server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum NbdError {
    /// The URI cannot be understood.
    #[error("{uri}: {why}; write nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=/PATH")]
    Uri {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers there.
    #[error("nobody serves NBD at {address} ({source}): start the server, or correct the address")]
    Connect {
        address: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The server is silent.
    #[error("the server said nothing for {seconds} s of the handshake: is it an NBD server?")]
    Silent {
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// What the server says or does is wrong.
    #[error(transparent)]
    Server(#[from] ClientError),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NbdError {
    /// The error number by which operations are counted that this error ended.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Server(ClientError::Closed { .. }) => libc::ECONNRESET,
            Self::Silent { .. } => libc::ETIMEDOUT,
            Self::Io(error) | Self::Connect { source: error, .. } => {
                error.raw_os_error().unwrap_or(libc::EIO)
            }
            _ => libc::EPROTO,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_the_specification_are_read() {
        let tcp = |host: &str, port, export: &str| NbdAddress {
            server: Server::Tcp(host.into(), port),
            export: export.into(),
        };
        for (text, address) in [
            ("nbd://localhost", tcp("localhost", 10809, "")),
            ("nbd://localhost/", tcp("localhost", 10809, "")),
            ("nbd://127.0.0.1:7777/disk", tcp("127.0.0.1", 7777, "disk")),
            ("NBD://[::1]:10810/a%20b/c", tcp("::1", 10810, "a b/c")),
            ("nbd://h//leading", tcp("h", 10809, "/leading")),
        ] {
            assert_eq!(NbdAddress::parse(text).unwrap(), address, "{text}");
        }
        let unix = NbdAddress::parse("nbd+unix:///e?socket=/run/my%20nbd.sock&x=y").unwrap();
        assert_eq!(unix.server, Server::Unix("/run/my nbd.sock".into()));
        assert_eq!(unix.export, "e");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("nbd://", "host"),
            ("nbd:///disk", "host"),
            ("nbd:disk", "//"),
            ("nbd://h:99999/", "port"),
            ("nbd://me@h/", "users"),
            ("nbd+unix:///e", "socket"),
            ("nbd+unix:///e?socket=", "socket"),
            ("nbd+unix://host/e?socket=/s", "no host"),
            ("nbd://h/e?socket=/s", "nbd+unix"),
            ("nbds://h/", "TLS"),
            ("nbd://h/%ff", "UTF-8"),
            ("nbd://h/ ", "percent encoding"),
            ("nbd://h/a#b", "percent encoding"),
            ("nbd://[::1]x/", "port"),
        ] {
            let message = NbdAddress::parse(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(nbd(\\+unix)?://)?[ -~é]{0,40}") {
            let _ = NbdAddress::parse(&text);
        }
    }
}
