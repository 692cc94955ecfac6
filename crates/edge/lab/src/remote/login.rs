//! From a login to a running agent.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use virtbench_agent::protocol::{NOT_READY, READY};
use virtbench_agents::Agent;

use super::script::MARK;
use crate::connection::Deadline;

/// The most that a login may print before the agent speaks, in bytes.
const CHATTER_LIMIT: usize = 1 << 20;
/// The longest line that is read whole, in bytes.
const LINE_LIMIT: usize = 4096;

/// Why no agent runs.
#[derive(Debug)]
pub(super) enum LoginError {
    /// The machine cannot be used, as its script or agent says.
    Unusable(String),
    /// The connection ended or fell silent.
    Broken {
        /// What happened.
        error: io::Error,
        /// The last line that the login printed, if any.
        last: String,
    },
}

/// Brings the agent to life at the other end of `stream`, within `limit`.
pub(super) fn log_in(stream: &UnixStream, agents: &[Agent], limit: Duration) -> Result<(), LoginError> {
    let reader = Deadline { stream, at: Instant::now() + limit };
    let mut lines = Lines { reader, read: 0, last: String::new() };
    loop {
        let line = match lines.next() {
            Ok(line) => line,
            Err(error) => return Err(LoginError::Broken { error, last: lines.last }),
        };
        if line == READY {
            return Ok(());
        }
        if let Some(why) = line.strip_prefix(NOT_READY) {
            return Err(LoginError::Unusable(why.to_owned()));
        }
        let Some(said) = line.strip_prefix(MARK) else {
            tracing::trace!(line, "the login says");
            lines.last = line;
            continue;
        };
        match said.trim_start().split_once(' ') {
            Some(("no", why)) => return Err(LoginError::Unusable(why.to_owned())),
            Some(("need", machine)) => {
                let agent = agents.iter().find(|agent| agent.machine() == machine);
                let agent = agent.ok_or_else(|| LoginError::Unusable(format!("no agent for {machine}")))?;
                let agent = agent.blocks().map_err(|error| LoginError::Unusable(error.to_string()))?;
                tracing::debug!(machine, bytes = agent.len(), "the agent is sent");
                let sent = lines.send(agent);
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

/// What comes over the stream, line by line: not a byte is read beyond the last one's end.
struct Lines<'a> {
    reader: Deadline<'a>,
    read: usize,
    /// The last line that meant nothing.
    last: String,
}

impl Lines<'_> {
    fn next(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            match self.reader.read(&mut byte) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
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

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.reader.stream;
        stream.set_write_timeout(Some(self.reader.left()?))?;
        stream.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
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
        for text in [
            "x\nvirtbench-login no its system is Plan9\n",
            "\nvirtbench-agent cannot start: its system is Plan9\n",
        ] {
            let (result, _near) = said(text);
            assert!(matches!(result, Err(LoginError::Unusable(why)) if why == "its system is Plan9"));
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
        assert!(matches!(result, Err(LoginError::Broken { .. })));
    }
}
