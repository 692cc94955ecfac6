//! Clients that ask one question each, many at once on one thread: none waits for a slow one.
//!
//! The time of a client is that of its whole question and answer, however it divides them. Where there are as many as may
//! be, the client that has waited longest is dropped: a client that asks at once is read before that can happen to it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What bounds the clients of a [`Desk`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Clients at once.
    pub clients: usize,
    /// The longest question, in bytes.
    pub question_bytes: usize,
    /// From the connection to the end of the answer.
    pub time: Duration,
}

/// A client whose stream does not block.
#[derive(Debug)]
struct Client<S> {
    stream: S,
    until: Instant,
    question: Vec<u8>,
    /// What is left to send, once the question was whole.
    answer: Option<VecDeque<u8>>,
}

/// A client that has asked.
#[derive(Debug)]
pub(crate) struct Asked<S> {
    /// What it has sent.
    pub question: Vec<u8>,
    /// For an answer; it does not block.
    pub stream: S,
    until: Instant,
}

/// The clients of one thread.
#[derive(Debug)]
pub(crate) struct Desk<S> {
    bounds: Bounds,
    /// The one that came first in front.
    clients: VecDeque<Client<S>>,
}

/// How a client's turn ended.
enum Turn {
    Waits,
    Asked,
    Over,
}

impl<S: Read + Write + AsFd> Desk<S> {
    pub(crate) const fn new(bounds: Bounds) -> Self {
        Self { bounds, clients: VecDeque::new() }
    }

    /// Waits until a client or `other` has something to say, or a client's time is over. True if it is `other`.
    ///
    /// # Errors
    /// The kernel cannot watch them.
    pub(crate) fn wait(&self, other: BorrowedFd<'_>) -> io::Result<bool> {
        let watched = |client: &Client<S>| {
            if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN }
        };
        let mut fds = vec![PollFd::from_borrowed_fd(other, PollFlags::IN)];
        fds.extend(self.clients.iter().map(|client| PollFd::new(&client.stream, watched(client))));
        let first = self.clients.iter().map(|client| client.until).min();
        let left = first.map(|until| until.saturating_duration_since(Instant::now()));
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a client in, whose stream does not block.
    pub(crate) fn admit(&mut self, stream: S) {
        let until = Instant::now() + self.bounds.time;
        self.clients.push_back(Client { stream, until, question: Vec::new(), answer: None });
    }

    /// Reads and sends what can be without waiting, and gives the clients that have asked; `is_whole` knows the end of a question.
    /// Clients whose time is over, and those in front of too many others, are gone afterwards.
    pub(crate) fn turn(&mut self, is_whole: impl Fn(&[u8]) -> bool) -> Vec<Asked<S>> {
        let mut asked = Vec::new();
        for _ in 0..self.clients.len() {
            let Some(mut client) = self.clients.pop_front() else { break };
            match client.turn(self.bounds.question_bytes, &is_whole) {
                Turn::Waits if client.until > Instant::now() => self.clients.push_back(client),
                Turn::Waits | Turn::Over => {}
                Turn::Asked => {
                    let Client { stream, until, question, .. } = client;
                    asked.push(Asked { question, stream, until });
                }
            }
        }
        let too_many = self.clients.len().saturating_sub(self.bounds.clients);
        self.clients.drain(..too_many);
        asked
    }

    /// Sends `answer` as fast as the client takes it, then lets it go.
    pub(crate) fn answer(&mut self, asked: Asked<S>, answer: Vec<u8>) {
        let Asked { question, stream, until } = asked;
        self.clients.push_back(Client { stream, until, question, answer: Some(answer.into()) });
    }
}

impl<S: Read + Write> Client<S> {
    fn turn(&mut self, most_bytes: usize, is_whole: impl Fn(&[u8]) -> bool) -> Turn {
        loop {
            let moved = match &mut self.answer {
                None => {
                    let mut piece = [0; 4096];
                    let read = self.stream.read(&mut piece);
                    read.inspect(|&len| self.question.extend_from_slice(&piece[..len]))
                }
                Some(answer) => {
                    let sent = self.stream.write(answer.as_slices().0);
                    sent.inspect(|&len| drop(answer.drain(..len)))
                }
            };
            match moved {
                Ok(0) => return Turn::Over,
                Ok(_) if self.answer.as_ref().is_some_and(VecDeque::is_empty) => return Turn::Over,
                Ok(_) if self.answer.is_some() => {}
                Ok(_) if is_whole(&self.question) => return Turn::Asked,
                Ok(_) if self.question.len() > most_bytes => return Turn::Over,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Waits,
                Err(_) => return Turn::Over,
            }
        }
    }
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
