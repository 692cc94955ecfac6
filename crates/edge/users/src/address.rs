//! Where a service listens.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;

use crate::service::{Fault, FaultKind};

/// The longest that a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// A host and a port, looked up once. Connections go to what its name leads to in turn.
#[derive(Debug, Clone)]
pub struct Address {
    host: String,
    port: u16,
    found: Vec<SocketAddr>,
    /// Connections that were made, by all who share this address.
    made: Arc<AtomicUsize>,
}

/// How many connections were made says nothing of where they lead.
impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        (&self.host, self.port, &self.found) == (&other.host, other.port, &other.found)
    }
}

impl Eq for Address {}

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
        Ok(Self { host: host.to_owned(), port, found, made: Arc::default() })
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
        Self { host: self.host.clone(), port, found, made: Arc::default() }
    }

    /// Where the next connection goes first, and where if nobody answers there.
    fn in_turn(&self) -> Vec<SocketAddr> {
        let mut found = self.found.clone();
        let places = found.len().max(1);
        found.rotate_left(self.made.fetch_add(1, Ordering::Relaxed) % places);
        found
    }

    /// A connection, without delays for small messages.
    ///
    /// # Errors
    /// The host and the port that refuse it, or do not answer within ten seconds.
    pub async fn connect(&self) -> Result<TcpStream, Fault> {
        let unreachable = |why: &dyn fmt::Display| {
            Fault::new(FaultKind::Unreachable, format!("cannot connect to {self}: {why}"))
        };
        let connected = tokio::time::timeout(CONNECT, TcpStream::connect(self.in_turn().as_slice())).await;
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
    fn connections_go_to_all_that_a_name_leads_to() {
        let found: Vec<SocketAddr> =
            ["127.0.0.1:1", "127.0.0.2:1", "127.0.0.3:1"].map(|at| at.parse().unwrap()).into();
        let address = Address { found: found.clone(), ..Address::parse("127.0.0.1", 1).unwrap() };
        let shared = address.clone();
        let first = [&address, &shared, &address, &shared].map(|address| address.in_turn()[0]);
        assert_eq!(first, [found[0], found[1], found[2], found[0]]);
        assert_eq!(address.in_turn().len(), 3, "all are tried");
    }

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
