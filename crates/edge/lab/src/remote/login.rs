//! From a login to a running agent.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use virtbench_agent::protocol::{LISTENS, NOT_READY, READY};
use virtbench_agents::Agent;

use super::script::MARK;
use crate::child;

/// The most that a login may print before the agent speaks, in bytes.
const CHATTER_LIMIT: usize = 1 << 20;
/// How soon a stop is noticed.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The longest line that is read whole, in bytes.
const LINE_LIMIT: usize = 4096;

/// Why no agent runs.
#[derive(Debug)]
pub(super) enum LoginError {
    /// The machine cannot be used, as its script says.
    Unusable(String),
    /// The folder on it cannot be used, as its script or agent says.
    Folder(String),
    /// The process is to stop.
    Stopped,
    /// The connection ended or fell silent.
    Broken {
        /// What happened.
        error: io::Error,
        /// The last line that the login printed, if any.
        last: String,
    },
}

/// Brings the agent to life at the other end of `stream`, within `limit`, unless the process is to stop.
pub(super) fn log_in(stream: &UnixStream, agents: &[Agent], limit: Duration) -> Result<(), LoginError> {
    log_in_unless(stream, agents, limit, &child::is_requested)
}

fn log_in_unless(
    stream: &UnixStream,
    agents: &[Agent],
    limit: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), LoginError> {
    let mut lines = Lines { stream, until: Instant::now() + limit, is_stopped, read: 0, last: String::new() };
    loop {
        let line = match lines.next() {
            Ok(line) => line,
            Err(_) if is_stopped() => return Err(LoginError::Stopped),
            Err(error) => return Err(LoginError::Broken { error, last: lines.last }),
        };
        if line == READY {
            return Ok(());
        }
        if let Some(why) = line.strip_prefix(NOT_READY) {
            return Err(LoginError::Folder(why.to_owned()));
        }
        let Some(said) = line.strip_prefix(MARK) else {
            tracing::trace!(line, "the login says");
            lines.last = line;
            continue;
        };
        match said.trim_start().split_once(' ') {
            Some(("no", why)) => return Err(LoginError::Unusable(why.to_owned())),
            Some(("unusable", why)) => return Err(LoginError::Folder(why.to_owned())),
            Some(("need", machine)) => {
                let agent = agents.iter().find(|agent| agent.machine() == machine);
                let agent = agent.ok_or_else(|| LoginError::Unusable(format!("no agent for {machine}")))?;
                let agent = agent.blocks().map_err(|error| LoginError::Unusable(error.to_string()))?;
                tracing::debug!(machine, bytes = agent.len(), "the agent is sent");
                let sent = lines.send(agent);
                if sent.is_err() && is_stopped() {
                    return Err(LoginError::Stopped);
                }
                // A machine that has no room hangs up in the middle, and its word is already on its way.
                if let Err(error) = sent
                    && error.kind() != io::ErrorKind::BrokenPipe
                {
                    return Err(LoginError::Broken { error, last: lines.last });
                }
            }
            Some(("have", machine)) => tracing::debug!(machine, "the agent is there already"),
            _ => lines.last = line,
        }
    }
}

/// Waits until the agent at the other end of `stream` says at which port of its machine's loopback it listens.
pub(super) fn await_port(stream: &UnixStream, limit: Duration) -> Result<u16, LoginError> {
    let is_stopped = &child::is_requested;
    let mut lines = Lines { stream, until: Instant::now() + limit, is_stopped, read: 0, last: String::new() };
    loop {
        match lines.next() {
            Ok(line) => match (line.strip_prefix(LISTENS).map(str::parse), line.strip_prefix(NOT_READY)) {
                (Some(Ok(port)), _) => return Ok(port),
                (_, Some(why)) => return Err(LoginError::Folder(why.to_owned())),
                _ => lines.last = line,
            },
            Err(_) if is_stopped() => return Err(LoginError::Stopped),
            Err(error) => return Err(LoginError::Broken { error, last: lines.last }),
        }
    }
}

/// What comes over the stream, line by line: not a byte is read beyond the last one's end.
struct Lines<'a> {
    stream: &'a UnixStream,
    until: Instant,
    is_stopped: &'a dyn Fn() -> bool,
    read: usize,
    /// The last line that meant nothing.
    last: String,
}

impl Lines<'_> {
    fn next(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            // One system call a byte, as long as there are some: a login may print a lot.
            match rustix::net::recv(self.stream, &mut byte, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(Errno::AGAIN) => {
                    self.wait(PollFlags::IN)?;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            self.read += 1;
            if self.read > CHATTER_LIMIT {
                return Err(io::Error::other("the login prints without end"));
            }
            match byte {
                [b'\n'] => break,
                [byte] if line.len() < LINE_LIMIT => line.push(byte),
                _ => {}
            }
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.wait(PollFlags::OUT)?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(self.stream, bytes, flags) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the stream can be read from or written to.
    fn wait(&self, what: PollFlags) -> io::Result<()> {
        loop {
            if (self.is_stopped)() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let limit = Timespec::try_from(left.min(LOOK_INTERVAL)).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(self.stream, what)], Some(&limit)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use virtbench_agents::agents;

    const LIMIT: Duration = Duration::from_secs(10);

    fn said(text: &str) -> (Result<(), LoginError>, UnixStream) {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(text.as_bytes()).unwrap();
        let result = log_in(&near, agents(), LIMIT);
        (result, near)
    }

    #[test]
    fn what_a_login_prints_is_passed_over_and_not_a_byte_more() {
        let (result, mut near) = said(
            "Welcome!\nvirtbench is great\n\nvirtbench-login have x86_64\n\nvirtbench-agent ready\nframe",
        );
        result.unwrap();
        let mut rest = [0; 5];
        near.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"frame");
    }

    #[test]
    fn what_the_machine_lacks_is_its_own_word() {
        let (result, _near) = said("x\nvirtbench-login no its system is Plan9\n");
        assert!(matches!(result, Err(LoginError::Unusable(why)) if why == "its system is Plan9"));
        for text in
            ["x\nvirtbench-login unusable /srv is full\n", "\nvirtbench-agent cannot start: /srv is full\n"]
        {
            let (result, _near) = said(text);
            assert!(matches!(result, Err(LoginError::Folder(why)) if why == "/srv is full"));
        }
    }

    #[test]
    fn a_login_that_never_ends_its_speech_is_left() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let speaker = std::thread::spawn(move || while far.write_all(&[b'y'; 4096]).is_ok() {});
        let result = log_in(&near, agents(), LIMIT);
        assert!(
            matches!(result, Err(LoginError::Broken { error, .. }) if error.to_string().contains("without end"))
        );
        drop(near);
        speaker.join().unwrap();
    }

    #[test]
    fn a_silent_login_is_left() {
        let (near, _far) = UnixStream::pair().unwrap();
        let result = log_in(&near, agents(), Duration::from_millis(50));
        let Err(LoginError::Broken { error, .. }) = result else { panic!("{result:?}") };
        assert_eq!(error.to_string(), "timed out");
    }

    #[test]
    fn a_stop_ends_a_login_that_waits_or_sends() {
        let (near, _far) = UnixStream::pair().unwrap();
        let began = Instant::now();
        let is_stopped = || began.elapsed() > Duration::from_millis(20);
        let waited = log_in_unless(&near, agents(), LIMIT, &is_stopped);
        assert!(matches!(waited, Err(LoginError::Stopped)), "{waited:?}");
        // One that takes nothing of what it asked for.
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(format!("virtbench-login need {}\n", agents()[0].machine()).as_bytes()).unwrap();
        let began = Instant::now();
        let is_stopped = || began.elapsed() > Duration::from_millis(200);
        let sent = log_in_unless(&near, agents(), LIMIT, &is_stopped);
        assert!(matches!(sent, Err(LoginError::Stopped)), "{sent:?}");
    }
}
