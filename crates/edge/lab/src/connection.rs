//! The host's end of the conversation with one agent: nothing is waited for without a limit.

mod appliance;
mod error;

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use virtbench_agent::now_ns;
use virtbench_agent::protocol::appliance::{ApplianceReply, ServiceFailure};
use virtbench_agent::protocol::{Greeting, Job, ProtocolError, Reply, Request, VERSION, receive, send};
use virtbench_record::{DeviceFacts, HostFacts, HostUse, JobOutcome, TargetFacts};

use crate::child;
use crate::clock::{ClockOffset, RoundTrip, best_of};
pub use error::ConnectionError;

/// How long an idle agent may take to answer a ping, and any agent to take a request.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How often somebody who waits for a boot looks whether to go on.
const STOP_INTERVAL: Duration = Duration::from_millis(100);
/// How long an agent that writes a file may say nothing of its progress.
const PROGRESS_LIMIT: Duration = Duration::from_secs(120);
/// How often an agent that is late is asked for a sign of life.
const SIGN_INTERVAL: Duration = Duration::from_secs(3);
/// How often the clock of an agent that works is looked at.
const LOOK_INTERVAL: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(5) };
/// Pings of one such look; the quickest round trip counts. They cost the agent 0.2 ms each.
const LOOK_PINGS: usize = 5;
/// Crashes of services that are kept until somebody asks.
const MOST_CRASHES: usize = 64;
/// How much of the agent's introduction and of its explanations is believed, in characters.
const TEXT_LIMIT: usize = 500;

/// A conversation with an agent.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    sender: Sender,
    pings: u64,
    /// The last ping that only asked for a sign of life; answers up to it may come at any time.
    last_sign_asked: u64,
    /// When it left, by the host's clock.
    sign_sent_ns: u64,
    /// Round trips of signs of life since the last look at the clock.
    trips: Vec<RoundTrip>,
    /// What was found out of the agent's clock while it worked.
    offsets: Vec<ClockOffset>,
    /// Services of an appliance that ended by themselves and of which nobody was told yet.
    crashes: Vec<ServiceFailure>,
}

/// The writing half. Several threads may have one: each message goes out whole.
#[derive(Debug, Clone)]
pub(crate) struct Sender(Arc<Mutex<UnixStream>>);

impl Sender {
    pub(crate) fn send(&self, request: &Request) -> Result<(), ProtocolError> {
        send(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), request)
    }
}

/// Tells an agent to stop while someone else waits for what it says.
#[derive(Debug)]
pub struct Stopper {
    sender: Sender,
}

impl Stopper {
    /// Sends `Stop`.
    ///
    /// # Errors
    /// The connection failed.
    pub fn stop(&mut self) -> Result<(), ConnectionError> {
        Ok(self.sender.send(&Request::Stop)?)
    }
}

impl Connection {
    /// Talks over `stream`.
    ///
    /// # Errors
    /// The stream takes no time limit.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let sender = Sender(Arc::new(Mutex::new(stream.try_clone()?)));
        let (trips, offsets) = (Vec::new(), Vec::new());
        let crashes = Vec::new();
        Ok(Self { stream, sender, pings: 0, last_sign_asked: 0, sign_sent_ns: 0, trips, offsets, crashes })
    }

    /// A conversation and the other end of it, which an agent's process is to inherit.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (stream, other) = UnixStream::pair()?;
        Ok((Self::new(stream)?, other.into()))
    }

    /// Greets the agent, who may take `limit` to come to life.
    ///
    /// # Errors
    /// No answer, or one of another version.
    pub fn greet(&mut self, limit: Duration) -> Result<Greeting, ConnectionError> {
        self.send(&Request::Hello { version: VERSION })?;
        self.greeting(limit)
    }

    /// The same, unless this process is to stop meanwhile.
    ///
    /// # Errors
    /// As for [`greet`](Self::greet), or it is to stop.
    pub fn greet_unless_stopped(&mut self, limit: Duration) -> Result<Greeting, ConnectionError> {
        self.send(&Request::Hello { version: VERSION })?;
        let until = Instant::now() + limit;
        while !self.readable_within(STOP_INTERVAL.min(until.saturating_duration_since(Instant::now())))? {
            if child::is_requested() {
                return Err(ConnectionError::Stopped);
            }
            if Instant::now() >= until {
                return Err(ConnectionError::TimedOut { expected: "answer its greeting", limit });
            }
        }
        self.greeting(limit)
    }

    fn greeting(&mut self, limit: Duration) -> Result<Greeting, ConnectionError> {
        match self.receive("answer its greeting", limit)? {
            Reply::Hello(greeting) if greeting.version == VERSION => Ok(Greeting {
                kernel: shortened(&greeting.kernel),
                clock_source: shortened(&greeting.clock_source),
                ..greeting
            }),
            other => Err(unexpected("answer its greeting", &other)),
        }
    }

    /// Holds the agent's clock against the host's with `pings` pings; the quickest round trip counts.
    ///
    /// # Errors
    /// An answer is missing or wrong.
    pub fn synchronise(&mut self, pings: u32) -> Result<ClockOffset, ConnectionError> {
        let trips: Vec<RoundTrip> = (0..pings.max(1)).map(|_| self.ping()).collect::<Result<_, _>>()?;
        Ok(best_of(&trips))
    }

    /// One question for the agent's clock.
    ///
    /// # Errors
    /// The answer is missing or wrong.
    pub fn ping(&mut self) -> Result<RoundTrip, ConnectionError> {
        self.pings += 1;
        let id = self.pings;
        let sent_ns = now_ns();
        self.send(&Request::Ping { id })?;
        match self.receive("answer a ping", ANSWER_LIMIT)? {
            Reply::Pong { id: answered, clock_ns } if answered == id => {
                Ok(RoundTrip { sent_ns, clock_ns, received_ns: now_ns() })
            }
            other => Err(unexpected("answer a ping", &other)),
        }
    }

    /// What the kernel over there says of the first disk whose name begins like this; it is waited for.
    ///
    /// # Errors
    /// `Refused` if none appears within the agent's limit; anything else breaks the connection.
    pub fn describe(&mut self, name_prefix: &str, limit: Duration) -> Result<DeviceFacts, ConnectionError> {
        self.send(&Request::Describe { name_prefix: name_prefix.to_owned() })?;
        match self.receive("describe its disk", limit)? {
            Reply::Device(facts) => {
                let text = |text: Option<String>| text.map(|text| shortened(&text));
                Ok(DeviceFacts {
                    name: shortened(&facts.name),
                    driver: text(facts.driver),
                    model: text(facts.model),
                    scheduler: text(facts.scheduler),
                    write_cache: text(facts.write_cache),
                    ..facts
                })
            }
            other => Err(unexpected("describe its disk", &other)),
        }
    }

    /// What the machine is, with the storage under `path`.
    ///
    /// # Errors
    /// No answer, or a wrong one.
    pub fn facts(&mut self, path: &str) -> Result<HostFacts, ConnectionError> {
        self.send(&Request::Facts { path: path.to_owned() })?;
        match self.receive("say what its machine is", ANSWER_LIMIT)? {
            Reply::Facts(facts) => Ok(facts),
            other => Err(unexpected("say what its machine is", &other)),
        }
    }

    /// Has the agent write a test file whole; returns what a reader of results should know about it. `on_progress` is told
    /// bytes written of bytes in all, and answers whether to go on.
    ///
    /// # Errors
    /// `Refused` if it cannot be written or was not to be; anything else breaks the connection.
    pub fn make_file(
        &mut self,
        path: &str,
        size_bytes: u64,
        mut on_progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Vec<String>, ConnectionError> {
        self.send(&Request::MakeFile { path: path.to_owned(), size_bytes })?;
        loop {
            match self.receive("write its test file", PROGRESS_LIMIT)? {
                Reply::Making { done_bytes, total_bytes } => {
                    if !on_progress(done_bytes, total_bytes) {
                        self.send(&Request::Stop)?;
                    }
                }
                Reply::Made { notes } => return Ok(notes.iter().map(|note| shortened(note)).collect()),
                other => return Err(unexpected("write its test file", &other)),
            }
        }
    }

    /// Has the agent get ready for `job`.
    ///
    /// # Errors
    /// `Refused` if the target or the job cannot be used; anything else breaks the connection.
    pub fn prepare(&mut self, job: Job, limit: Duration) -> Result<Option<TargetFacts>, ConnectionError> {
        self.send(&Request::Prepare(Box::new(job)))?;
        match self.receive("prepare the load", limit)? {
            Reply::Prepared { target } => Ok(target),
            other => Err(unexpected("prepare the load", &other)),
        }
    }

    /// Has the agent begin when its own clock shows `at_ns`.
    ///
    /// # Errors
    /// The connection failed.
    pub fn start(&mut self, at_ns: u64) -> Result<(), ConnectionError> {
        self.send(&Request::Start { at_ns })
    }

    /// Waits for ramp-up to end; returns the agent's clock at that moment, or nothing if the load
    /// was stopped before and is [`finished`](Self::finished) next.
    ///
    /// # Errors
    /// `Refused` if the load failed; anything else breaks the connection.
    pub fn measuring(&mut self, limit: Duration) -> Result<Measuring, ConnectionError> {
        match self.receive("begin to measure", limit)? {
            Reply::Measuring { clock_ns } => Ok(Measuring::Since { clock_ns }),
            Reply::Finished { outcome, .. } => Ok(Measuring::Stopped(outcome)),
            other => Err(unexpected("begin to measure", &other)),
        }
    }

    /// Waits for the job's outcome, and what the machine's processors did meanwhile where only the agent sees it: for as long
    /// as it may take, and `grace` beyond. From when it is expected the agent is asked for signs of life, so that an error can
    /// tell a dead disk from a dead guest; one that gives none for `grace` is not waited for any longer. Every few seconds
    /// before, its clock is looked at; [`take_offsets`](Self::take_offsets) has what was found.
    ///
    /// # Errors
    /// `Refused` if the load failed, `NotFinished` if its time ran out; anything else breaks the
    /// connection.
    pub fn finished(
        &mut self,
        expected: Duration,
        longest: Duration,
        grace: Duration,
    ) -> Result<(JobOutcome, Option<HostUse>), ConnectionError> {
        let (begun, limit) = (Instant::now(), longest + grace);
        let (due, until) = (begun + expected, begun + limit);
        let (mut heard, mut answers) = (due, false);
        let mut ask_at = next_question(due);
        self.trips.clear();
        self.offsets.clear();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ConnectionError::NotFinished { limit, answers });
            }
            if heard.elapsed() >= grace {
                return Err(ConnectionError::NotFinished { limit: expected + grace, answers: false });
            }
            if !self.readable_within(ask_at.saturating_duration_since(Instant::now()).min(left))? {
                self.end_look();
                self.ask_for_sign()?;
                ask_at = next_question(due);
                continue;
            }
            match self.receive_next("finish the load", Instant::now() + ANSWER_LIMIT, limit)? {
                Some(Reply::Finished { outcome, host }) => {
                    self.end_look();
                    return Ok((outcome, host));
                }
                Some(other) => return Err(unexpected("finish the load", &other)),
                None if Instant::now() < due && (1..LOOK_PINGS).contains(&self.trips.len()) => {
                    self.ask_for_sign()?
                }
                None => {
                    heard = heard.max(Instant::now());
                    answers |= Instant::now() >= due;
                    ask_at = next_question(due);
                }
            }
        }
    }

    fn ask_for_sign(&mut self) -> Result<(), ConnectionError> {
        self.pings += 1;
        (self.last_sign_asked, self.sign_sent_ns) = (self.pings, now_ns());
        self.send(&Request::Ping { id: self.pings })
    }

    /// Makes one offset of the round trips until now, if there are any.
    fn end_look(&mut self) {
        if !self.trips.is_empty() {
            self.offsets.push(best_of(&self.trips));
            self.trips.clear();
        }
    }

    /// The offsets of the agent's clock that were measured while it worked, in order.
    pub fn take_offsets(&mut self) -> Vec<ClockOffset> {
        std::mem::take(&mut self.offsets)
    }

    /// Waits until there is something to read, or the agent has hung up.
    fn readable_within(&self, limit: Duration) -> Result<bool, ConnectionError> {
        let timeout = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let mut asked = [PollFd::new(&self.stream, PollFlags::IN)];
        match poll(&mut asked, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(ProtocolError::Io(error.into()).into()),
        }
    }

    /// Tells the agent to end.
    ///
    /// # Errors
    /// The connection failed.
    pub fn shut_down(&mut self) -> Result<(), ConnectionError> {
        self.send(&Request::Shutdown)
    }

    /// A second way to the agent, for `Stop` alone.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { sender: self.sender.clone() }
    }

    /// A second way to the agent.
    pub(crate) fn sender(&self) -> Sender {
        self.sender.clone()
    }

    pub(crate) fn send(&mut self, request: &Request) -> Result<(), ConnectionError> {
        self.sender.send(request).map_err(|error| match error {
            ProtocolError::Io(error) if is_timeout(&error) => {
                ConnectionError::TimedOut { expected: "take a request", limit: ANSWER_LIMIT }
            }
            // The reader sees the same end, with less ado than a broken pipe.
            ProtocolError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                ProtocolError::Closed.into()
            }
            error => error.into(),
        })
    }

    /// The next reply, late signs of life left out.
    pub(crate) fn receive(
        &mut self,
        expected: &'static str,
        limit: Duration,
    ) -> Result<Reply, ConnectionError> {
        let until = Instant::now() + limit;
        loop {
            if let Some(reply) = self.receive_next(expected, until, limit)? {
                return Ok(reply);
            }
        }
    }

    /// The next reply, or nothing if it was a sign of life that was asked for.
    fn receive_next(
        &mut self,
        expected: &'static str,
        until: Instant,
        limit: Duration,
    ) -> Result<Option<Reply>, ConnectionError> {
        let mut reader = Deadline { stream: &self.stream, at: until };
        match receive(&mut reader) {
            Ok(Reply::Failed { kind, message }) => {
                Err(ConnectionError::Refused { kind, message: shortened(&message) })
            }
            Ok(Reply::Pong { id, clock_ns }) if id <= self.last_sign_asked => {
                // An answer to an earlier question came late, and says nothing of the clock.
                if id == self.last_sign_asked {
                    let (sent_ns, received_ns) = (self.sign_sent_ns, now_ns());
                    self.trips.push(RoundTrip { sent_ns, clock_ns, received_ns });
                }
                Ok(None)
            }
            Ok(Reply::Appliance(ApplianceReply::Crashed(failure))) => {
                if self.crashes.len() < MOST_CRASHES {
                    self.crashes.push(failure);
                }
                Ok(None)
            }
            Ok(reply) => Ok(Some(reply)),
            Err(ProtocolError::Io(error)) if is_timeout(&error) => {
                Err(ConnectionError::TimedOut { expected, limit })
            }
            Err(ProtocolError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(ProtocolError::Closed.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What became of ramp-up.
#[derive(Debug)]
pub enum Measuring {
    /// It is over.
    Since {
        /// The agent's clock when it was, in nanoseconds.
        clock_ns: u64,
    },
    /// The load was stopped before.
    Stopped(JobOutcome),
}

/// A stream that gives up at one instant, however slowly bytes trickle in.
pub(crate) struct Deadline<'a> {
    pub(crate) stream: &'a UnixStream,
    pub(crate) at: Instant,
}

impl Deadline<'_> {
    /// The time that is left, if there is any.
    pub(crate) fn left(&self) -> io::Result<Duration> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Deadline<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream
            .read(buffer)
            .map_err(|error| if is_timeout(&error) { io::ErrorKind::TimedOut.into() } else { error })
    }
}

/// When an agent that works is asked next, whose outcome is `due` then: for its clock, and once it is late, for a sign of life.
fn next_question(due: Instant) -> Instant {
    let now = Instant::now();
    if now + LOOK_INTERVAL < due { now + LOOK_INTERVAL } else { due.max(now) + SIGN_INTERVAL }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

pub(crate) fn unexpected(expected: &'static str, reply: &impl std::fmt::Debug) -> ConnectionError {
    ConnectionError::Unexpected { expected, said: shortened(&format!("{reply:?}")) }
}

/// A guest's words are limited, and cannot command the user's terminal.
fn shortened(text: &str) -> String {
    text.chars().filter(|character| !character.is_control() || *character == '\n').take(TEXT_LIMIT).collect()
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
