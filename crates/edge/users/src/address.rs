//! Where a service listens.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tokio::net::TcpStream;

use crate::fault::{Fault, FaultKind};

/// The longest that a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// A host and a port, looked up once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    found: Vec<SocketAddr>,
}

impl Address {
    /// Reads `HOST`, `HOST:PORT` or `[IPV6]:PORT`, and looks the host up.
    ///
    /// # Errors
    /// What is wrong with it, or that there is no such host.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or("none"))),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => Some(default_port),
        };
        let written = || format!("{text:?} is no address: write HOST:PORT, an IPv6 address in brackets");
        let port = port.filter(|_| !host.is_empty()).ok_or_else(written)?;
        let found = (host, port).to_socket_addrs();
        let found: Vec<SocketAddr> =
            found.map_err(|error| format!("there is no host {host}: {error}"))?.collect();
        Ok(Self { host: host.to_owned(), port, found })
    }

    /// Where the host's name leads, in the order in which it is tried.
    #[must_use]
    pub fn found(&self) -> &[SocketAddr] {
        &self.found
    }

    /// The same host with another port.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        let found = self.found.iter().map(|one| SocketAddr::new(one.ip(), port)).collect();
        Self { host: self.host.clone(), port, found }
    }

    /// A connection, without delays for small messages.
    ///
    /// # Errors
    /// The host and the port that refuse it, or do not answer within ten seconds.
    pub async fn connect(&self) -> Result<TcpStream, Fault> {
        let unreachable = |why: &dyn fmt::Display| {
            Fault::new(FaultKind::Unreachable, format!("cannot connect to {self}: {why}"))
        };
        let connected = tokio::time::timeout(CONNECT, TcpStream::connect(self.found.as_slice())).await;
        let stream = connected
            .map_err(|_| unreachable(&format_args!("no answer within {} s", CONNECT.as_secs())))?
            .map_err(|error| unreachable(&error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        Ok(stream)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1:80"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("[::1]", "[::1]:80"),
        ] {
            let address = Address::parse(text, 80).unwrap();
            assert_eq!((address.to_string().as_str(), address.found.len()), (shown, 1));
        }
        for text in ["", ":80", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:x", "[::1]80"] {
            assert!(Address::parse(text, 80).unwrap_err().contains("HOST:PORT"), "{text}");
        }
    }
}
