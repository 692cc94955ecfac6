//! QEMU's machine protocol, as far as it is needed: to stop and go on, and to be asked.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

/// How long QEMU may take to answer: `stop` waits for the I/O in flight and flushes the disks.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Events that may come before an answer.
const MAX_EVENTS: u32 = 1000;

/// A conversation with one QEMU.
#[derive(Debug)]
pub(crate) struct Qmp {
    reader: BufReader<UnixStream>,
    ready: bool,
}

impl Qmp {
    /// A conversation and the other end of it, which QEMU is to inherit.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok((Self { reader: BufReader::new(stream), ready: false }, other.into()))
    }

    /// Has QEMU execute a command without arguments; returns what it answers.
    ///
    /// # Errors
    /// No answer within the limit, or a refusal in QEMU's words.
    pub(crate) fn execute(&mut self, command: &str) -> io::Result<Value> {
        self.execute_with(command, json!({}))
    }

    /// The same of a command with these arguments.
    pub(crate) fn execute_with(&mut self, command: &str, arguments: Value) -> io::Result<Value> {
        self.get_ready()?;
        self.command(command, &arguments)
    }

    /// Hands QEMU an open file, which its next commands call by this name.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    pub(crate) fn lend(&mut self, name: &str, file: OwnedFd) -> io::Result<()> {
        self.get_ready()?;
        let line = line("getfd", &json!({ "fdname": name }));
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let sent = sendmsg(
            self.reader.get_ref(),
            &[io::IoSlice::new(line.as_bytes())],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        self.reader.get_mut().write_all(&line.as_bytes()[sent..])?;
        self.answer("getfd").map(drop)
    }

    fn get_ready(&mut self) -> io::Result<()> {
        if !self.ready {
            self.next_line(Instant::now() + ANSWER_LIMIT)?;
            self.command("qmp_capabilities", &json!({}))?;
            self.ready = true;
        }
        Ok(())
    }

    fn command(&mut self, command: &str, arguments: &Value) -> io::Result<Value> {
        self.reader.get_mut().write_all(line(command, arguments).as_bytes())?;
        self.answer(command)
    }

    fn answer(&mut self, command: &str) -> io::Result<Value> {
        let until = Instant::now() + ANSWER_LIMIT;
        for _ in 0..MAX_EVENTS {
            let mut answer = self.next_line(until)?;
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(io::Error::other(format!("QEMU refuses {command}: {}", error["desc"])));
            }
        }
        Err(io::Error::other(format!("QEMU does not answer {command}")))
    }

    fn next_line(&mut self, until: Instant) -> io::Result<Value> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.reader.get_ref().set_read_timeout(Some(left))?;
        let mut line = String::new();
        let read = Read::by_ref(&mut self.reader).take(MAX_LINE_BYTES).read_line(&mut line)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

/// A command as it is sent.
fn line(command: &str, arguments: &Value) -> String {
    format!("{}\n", json!({ "execute": command, "arguments": arguments }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of `execute("stop")` when QEMU says these lines.
    fn answer(lines: &str) -> io::Result<Value> {
        let (mut qmp, other) = Qmp::pair().unwrap();
        let mut qemu = UnixStream::from(other);
        qemu.write_all(lines.as_bytes()).unwrap();
        qemu.shutdown(std::net::Shutdown::Write).unwrap();
        qmp.execute("stop")
    }

    #[test]
    fn events_are_passed_over_and_refusals_told() {
        let greeting = "{\"QMP\":{}}\n{\"return\":{}}\n";
        let told =
            answer(&format!("{greeting}{{\"event\":\"STOP\"}}\n{{\"return\":{{\"a\":1}}}}\n")).unwrap();
        assert_eq!(told["a"], 1);
        let refused = answer(&format!("{greeting}{{\"error\":{{\"desc\":\"no\"}}}}\n")).unwrap_err();
        assert!(refused.to_string().contains("refuses stop"), "{refused}");
        assert!(answer("{\"QMP\":{}}\n").is_err() && answer("nonsense\n").is_err());
    }
}
