//! Asking a running daemon.

use std::io::{self, BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use thiserror::Error;

use super::{Answer, Question, Refusal};
use crate::admin::ResizeStep;

/// How long one step may take: new room is zeroed, which some devices do by writing.
const STEP_LIMIT: Duration = Duration::from_secs(3600);

const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// The longest line, in bytes.
const MOST_LINE_BYTES: u64 = 64 << 20;

/// Why a daemon did not do it.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ControlError {
    /// It says why.
    #[error("{why}")]
    Refused {
        /// What kind of reason.
        kind: Refusal,
        /// The reason.
        why: String,
    },
    /// It ended before it had answered, and may have done some of it.
    #[error("{path}: the daemon ended before it had answered: the same command again completes it", path = path.display())]
    Gone {
        /// Its control socket.
        path: PathBuf,
    },
    /// It cannot be asked.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Its control socket.
        path: PathBuf,
        source: io::Error,
    },
}

/// Asks the daemon at a control socket; false if there is none.
///
/// # Errors
/// It refuses, ends, or cannot be reached.
pub fn ask(path: &Path, question: &Question, progress: impl FnMut(ResizeStep)) -> Result<bool, ControlError> {
    ask_handing(path, question, &[], progress)
}

/// The same, with descriptors that go to the daemon.
///
/// # Errors
/// As for [`ask`].
pub fn ask_handing(
    path: &Path,
    question: &Question,
    handed: &[BorrowedFd<'_>],
    mut progress: impl FnMut(ResizeStep),
) -> Result<bool, ControlError> {
    answered(path, question, handed, |answer| match answer {
        Answer::ResizeStep(step) => progress(step),
        Answer::Figures(_) | Answer::Done | Answer::Refused { .. } => {}
    })
}

/// How things stand at the daemon of a control socket, as OpenMetrics text; none if there is none.
///
/// # Errors
/// It refuses, ends, or cannot be reached.
pub fn figures(path: &Path) -> Result<Option<String>, ControlError> {
    let mut text = None;
    answered(path, &Question::Figures, &[], |answer| {
        if let Answer::Figures(figures) = answer {
            text = Some(figures);
        }
    })?;
    Ok(text)
}

/// Sends as much of a text as goes at once, and all descriptors with it.
fn send_with(stream: &UnixStream, text: &[u8], handed: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handed)) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "too many descriptors"));
    }
    Ok(sendmsg(stream, &[IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Asks, and has `each` answer before the last.
fn answered(
    path: &Path,
    question: &Question,
    handed: &[BorrowedFd<'_>],
    mut each: impl FnMut(Answer),
) -> Result<bool, ControlError> {
    let fails = |source: io::Error| match source.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
            ControlError::Gone { path: path.to_owned() }
        }
        _ => ControlError::Io { path: path.to_owned(), source },
    };
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(false);
        }
        Err(error) => return Err(fails(error)),
    };
    stream.set_read_timeout(Some(STEP_LIMIT)).map_err(fails)?;
    stream.set_write_timeout(Some(WRITE_LIMIT)).map_err(fails)?;
    let mut text = serde_json::to_vec(question).map_err(|error| fails(error.into()))?;
    text.push(b'\n');
    let sent = send_with(&stream, &text, handed).map_err(fails)?;
    stream.write_all(&text[sent..]).map_err(fails)?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        lines.by_ref().take(MOST_LINE_BYTES).read_until(b'\n', &mut line).map_err(fails)?;
        if !line.ends_with(b"\n") {
            return Err(ControlError::Gone { path: path.to_owned() });
        }
        match serde_json::from_slice(&line).map_err(|error| fails(error.into()))? {
            Answer::Done => return Ok(true),
            Answer::Refused { kind, why } => return Err(ControlError::Refused { kind, why }),
            answer => each(answer),
        }
    }
}

/// Descriptors of one client at most: of a new disk's socket, and of a log in memory.
pub(super) const MOST_HANDED: usize = 2;

/// A client, whose stream does not block.
pub(super) struct Visitor {
    pub(super) stream: UnixStream,
    pub(super) handed: Vec<OwnedFd>,
}

impl Visitor {
    pub(super) const fn new(stream: UnixStream) -> Self {
        Self { stream, handed: Vec::new() }
    }
}

impl Read for Visitor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDED))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.stream, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                // Those that are too many are closed.
                let room = MOST_HANDED.saturating_sub(self.handed.len());
                self.handed.extend(descriptors.take(room));
            }
        }
        Ok(received.bytes)
    }
}

impl Write for Visitor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl AsFd for Visitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
