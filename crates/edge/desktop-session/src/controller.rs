//! The side of the controller: requests in, answers out.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use virtbench_desktops::{Answer, LONGEST_LINE, Request};

/// How long an answer may take to be taken.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// One connection at a time; who comes later takes the place of who was there.
pub(crate) struct Controller {
    listener: TcpListener,
    stream: Option<TcpStream>,
    inbox: Vec<u8>,
}

impl Controller {
    pub(crate) fn new(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("0.0.0.0", port))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, stream: None, inbox: Vec::new() })
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.as_fd()).chain(self.stream.as_ref().map(AsFd::as_fd))
    }

    /// Whether somebody is there.
    pub(crate) fn is_there(&self) -> bool {
        self.stream.is_some()
    }

    /// The next request, if one has come. What is none ends the connection.
    pub(crate) fn next(&mut self) -> Option<Request> {
        if let Ok((stream, _)) = self.listener.accept() {
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            self.inbox.clear();
            self.stream = ready.is_ok().then_some(stream);
        }
        self.read();
        let end = self.inbox.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.inbox.drain(..=end).collect();
        let request = serde_json::from_slice(&line).ok();
        if request.is_none() {
            self.stream = None;
        }
        request
    }

    fn read(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let mut part = [0; 4096];
        loop {
            match stream.read(&mut part) {
                Ok(count) if count > 0 && self.inbox.len() + count <= LONGEST_LINE => {
                    self.inbox.extend_from_slice(&part[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => {
                    self.stream = None;
                    return;
                }
            }
        }
    }

    pub(crate) fn answer(&mut self, answer: &Answer) {
        let Some(stream) = &mut self.stream else { return };
        let Ok(mut line) = serde_json::to_vec(answer) else { return };
        line.push(b'\n');
        let written = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_write_timeout(Some(WRITE_LIMIT)))
            .and_then(|()| stream.write_all(&line))
            .and_then(|()| stream.set_nonblocking(true));
        if written.is_err() {
            self.stream = None;
        }
    }
}
