//! The program inside the session: requests out, answers in.

use std::io::{self, ErrorKind};
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use virtbench_desktops::{Answer, LONGEST_LINE, Request, Unreadable};
use virtbench_rfb::RfbError;

const LIMIT: Duration = Duration::from_secs(30);

const SESSION: &str = "the program inside the session";

pub(crate) struct Control {
    stream: TcpStream,
    inbox: Vec<u8>,
}

impl Control {
    pub(crate) fn new(stream: TcpStream) -> Result<Self, Fault> {
        stream.set_nodelay(true).map_err(lost)?;
        Ok(Self { stream, inbox: Vec::new() })
    }

    pub(crate) async fn ask(&mut self, request: &Request) -> Result<(), Fault> {
        let mut line = serde_json::to_vec(request).map_err(|error| Fault::Answer(error.to_string()))?;
        line.push(b'\n');
        let (mut rest, until) = (line.as_slice(), Instant::now() + LIMIT);
        while !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or(&[]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let writable = timeout_at(until, self.stream.writable()).await;
                    writable
                        .map_err(|_| Fault::Frozen(format!("{SESSION} takes no orders any more")))?
                        .map_err(lost)?;
                }
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// The answer of this number, if it comes until then.
    pub(crate) async fn answer(&mut self, sequence: u16, until: Instant) -> Result<Option<Answer>, Fault> {
        let mut part = [0; 4096];
        loop {
            if let Some(end) = self.inbox.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.inbox.drain(..=end).collect();
                let answer: Answer = serde_json::from_slice(&line)
                    .map_err(|error| Fault::Answer(format!("{}: {error}", clean(&line))))?;
                // Of an operation that was given up before.
                if answer.sequence != sequence {
                    continue;
                }
                return Ok(Some(answer));
            }
            match timeout_at(until, self.stream.readable()).await {
                Err(_) => return Ok(None),
                Ok(ready) => ready.map_err(lost)?,
            }
            match self.stream.try_read(&mut part) {
                Ok(0) => return Err(lost(ErrorKind::UnexpectedEof.into())),
                Ok(count) if self.inbox.len() + count > LONGEST_LINE => {
                    return Err(Fault::Answer(format!("a line of more than {LONGEST_LINE} bytes")));
                }
                Ok(count) => self.inbox.extend_from_slice(part.get(..count).unwrap_or(&[])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(lost(error)),
            }
        }
    }
}

fn clean(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).take(200).collect()
}

fn lost(error: io::Error) -> Fault {
    Fault::Lost(SESSION, error)
}

/// What is to be done about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The operation has failed; its user begins another application.
    Operation,
    /// The desktop is of no use any more; its user is gone.
    Desktop,
}

/// What can go wrong with a user's desktop.
#[derive(Debug, Error)]
pub enum Fault {
    /// The server breaks the protocol, or refuses the login.
    #[error(transparent)]
    Protocol(#[from] RfbError),
    /// There is no connection.
    #[error(
        "the VNC server cannot be reached: {0}; does it listen there, and do firewalls let this host in?"
    )]
    Unreached(io::Error),
    /// The connection is gone.
    #[error("the connection to {0} is lost: {1}")]
    Lost(&'static str, io::Error),
    /// Nothing comes any more.
    #[error("the desktop is frozen: {0}")]
    Frozen(String),
    /// The operation is over, but the picture does not say so.
    #[error("{0}, although the session says that the operation is over")]
    Marker(Unreadable),
    /// The session says why it has failed.
    #[error("{0}")]
    Session(String),
    /// The picture does not show an end of what was typed.
    #[error("{0}")]
    Picture(String),
    /// The session breaks the protocol.
    #[error("the program inside the session answers what nobody asked: {0}")]
    Answer(String),
    /// The day asks for a key that there is none of.
    #[error("{0}")]
    Key(String),
}

impl Fault {
    /// What is to be done about it.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Marker(_) | Self::Session(_) | Self::Picture(_) | Self::Key(_) => FaultKind::Operation,
            Self::Protocol(_) | Self::Unreached(_) | Self::Lost(..) | Self::Frozen(_) | Self::Answer(_) => {
                FaultKind::Desktop
            }
        }
    }
}
