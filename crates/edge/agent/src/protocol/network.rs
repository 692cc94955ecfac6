//! What host and agent say of a measured network path, and what the two agents at its ends say to each other.
//!
//! A TCP connection to the port of [`NetworkRequest::Serve`] begins with one byte that says what it is for. Datagrams to the UDP port of
//! the same number are counted under the 64 bits with which they begin.

use serde::{Deserialize, Serialize};

/// One byte goes back, and then the connection is closed.
pub const ONCE: u8 = b'o';

/// The number of a series of datagrams comes (64 bits, little endian); how many have arrived goes back (64 bits, little endian).
pub const COUNT: u8 = b'c';

/// An IPv4 address of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinOrder {
    /// The interface.
    pub interface: String,
    /// Its address.
    pub address: [u8; 4],
    /// How many of its bits name the network.
    pub prefix: u8,
    /// The largest packet, in bytes; as the kernel has it where nothing is said.
    pub mtu: Option<u32>,
}

/// What passes over the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Bytes to the other end, by so many connections at once.
    To {
        /// Connections.
        streams: u32,
    },
    /// Bytes from the other end, by so many connections at once.
    From {
        /// Connections.
        streams: u32,
    },
    /// One byte there and back, the next once that is here.
    Requests,
    /// Datagrams to the other end, as fast as they can be sent.
    Datagrams {
        /// The size of each, without headers; at least 8.
        bytes: u32,
    },
    /// Connections one after the other: each is made, carries one byte there and back, and is closed.
    Connections,
}

/// What is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkOrder {
    /// The IPv4 address of the other end, as this one reaches it.
    pub address: [u8; 4],
    /// Its TCP port, as this end reaches it.
    pub port: u16,
    /// Its UDP port, as this end reaches it.
    pub datagram_port: u16,
    /// What passes.
    pub traffic: Traffic,
    /// How long it passes before that counts, in nanoseconds.
    pub ramp_ns: u64,
    /// How long it counts, in nanoseconds.
    pub time_ns: u64,
}

/// What was measured at the end that sends requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkOutcome {
    /// How long it counted, in nanoseconds.
    pub elapsed_ns: u64,
    /// Bytes that have arrived.
    pub bytes: u64,
    /// Requests answered, connections closed, or datagrams that arrived.
    pub completed: u64,
    /// Requests, connections or datagrams that were sent.
    pub sent: u64,
    /// How long requests and connections took: the upper end of a range in nanoseconds, and how many fell into it.
    pub latencies: Vec<(u64, u64)>,
}

/// What the host asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkRequest {
    /// Gives an interface its address, and switches it on.
    Join(JoinOrder),
    /// Answers the other end on a TCP and a UDP port of this number from now on, or of another one where it is taken.
    Serve {
        /// The number.
        port: u16,
    },
    /// Measures the path to the other end. `Measuring` comes when it begins to count.
    Measure(NetworkOrder),
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkReply {
    /// The interface is up.
    Joined,
    /// The other end is answered.
    Served {
        /// The number of both ports.
        port: u16,
    },
    /// It was measured.
    Measured(NetworkOutcome),
}

/// Whatever comes goes back.
pub const ECHO: u8 = b'e';

/// Whatever comes is counted; once the other side has ended, the count goes back (64 bits, little endian).
pub const SINK: u8 = b's';

/// Bytes come until the other side hangs up.
pub const SOURCE: u8 = b'g';

/// What is read or written at once, in bytes: as iperf3 does.
pub const BLOCK_BYTES: usize = 128 << 10;
