//! QEMU's machine protocol, as far as it is needed: to stop and go on, to be asked, and to tell that it has paused a guest.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

/// How long QEMU may take to answer: `stop` waits for the I/O in flight and flushes the disks.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// States of a guest that QEMU has paused by itself and that does not go on: its instructions cannot be executed, or its disk cannot be
/// written.
const ENDS: [&str; 3] = ["internal-error", "io-error", "guest-panicked"];
/// Marks the answers to what the reader itself has asked.
const READY: &str = "ready";
const WHY: &str = "why";
/// Answers that nobody has fetched, at most.
const MAX_ANSWERS: usize = 16;

/// A conversation with one QEMU. A thread reads what it says at any time, so that a guest that QEMU pauses is noticed at once: that is its
/// end.
#[derive(Debug)]
pub(crate) struct Qmp {
    shared: Arc<Shared>,
    answers: Receiver<Value>,
    ready: Receiver<()>,
    is_ready: bool,
}

#[derive(Debug)]
struct Shared {
    stream: Mutex<UnixStream>,
    /// Whether we have told QEMU to pause the guest.
    is_told: AtomicBool,
    /// Why QEMU has paused the guest.
    paused: Mutex<Option<String>>,
    /// QEMU's process, which ends with a guest that is paused.
    process: OnceLock<OwnedFd>,
}

impl Qmp {
    /// A conversation and the other end of it, which QEMU is to inherit.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (stream, other) = UnixStream::pair()?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        let reader = BufReader::new(stream.try_clone()?);
        let shared = Arc::new(Shared {
            stream: Mutex::new(stream),
            is_told: AtomicBool::new(false),
            paused: Mutex::new(None),
            process: OnceLock::new(),
        });
        let (answer, answers) = sync_channel(MAX_ANSWERS);
        let (become_ready, ready) = sync_channel(1);
        let of_reader = Arc::clone(&shared);
        let read = move || read_all(reader, &of_reader, &answer, &become_ready);
        thread::Builder::new().name("qmp".into()).spawn(read)?;
        Ok((Self { shared, answers, ready, is_ready: false }, other.into()))
    }

    /// Names the process that is to end once its guest is paused for good.
    ///
    /// # Errors
    /// There is no such process any more.
    pub(crate) fn watch(&self, process_id: u32) -> io::Result<()> {
        let id = i32::try_from(process_id).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        let process = pidfd_open(id, PidfdFlags::empty())?;
        let _ = self.shared.process.set(process);
        Ok(())
    }

    /// The state in which QEMU has paused the guest for good, if it has.
    pub(crate) fn paused(&self) -> Option<String> {
        lock(&self.shared.paused).clone()
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
        match command {
            "stop" => self.shared.is_told.store(true, Ordering::Relaxed),
            "cont" => self.shared.is_told.store(false, Ordering::Relaxed),
            _ => {}
        }
        lock(&self.shared.stream).write_all(line(command, &arguments, None).as_bytes())?;
        self.answer(command)
    }

    /// Hands QEMU an open file, which its next commands call by this name.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    pub(crate) fn lend(&mut self, name: &str, file: OwnedFd) -> io::Result<()> {
        self.get_ready()?;
        let line = line("getfd", &json!({ "fdname": name }), None);
        let files = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        let mut stream = lock(&self.shared.stream);
        let sent =
            sendmsg(&*stream, &[io::IoSlice::new(line.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
        stream.write_all(&line.as_bytes()[sent..])?;
        drop(stream);
        self.answer("getfd").map(drop)
    }

    fn get_ready(&mut self) -> io::Result<()> {
        if !self.is_ready {
            self.ready.recv_timeout(ANSWER_LIMIT).map_err(silent)?;
            self.is_ready = true;
        }
        Ok(())
    }

    fn answer(&mut self, command: &str) -> io::Result<Value> {
        let mut answer = self.answers.recv_timeout(ANSWER_LIMIT).map_err(silent)?;
        if let Some(result) = answer.get_mut("return") {
            return Ok(result.take());
        }
        let why = answer.get("error").map_or(&answer, |error| &error["desc"]);
        Err(io::Error::other(format!("QEMU refuses {command}: {why}")))
    }
}

fn silent(error: RecvTimeoutError) -> io::Error {
    match error {
        RecvTimeoutError::Timeout => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("QEMU does not answer within {} s", ANSWER_LIMIT.as_secs()),
        ),
        RecvTimeoutError::Disconnected => io::ErrorKind::UnexpectedEof.into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until QEMU has gone: answers go to those who wait for them.
fn read_all(
    mut reader: BufReader<UnixStream>,
    shared: &Shared,
    answer: &SyncSender<Value>,
    ready: &SyncSender<()>,
) {
    let ask = |command: &str, id: &str| {
        // Of one that takes nothing any more the conversation ends.
        let _ = lock(&shared.stream).write_all(line(command, &json!({}), Some(id)).as_bytes());
    };
    while let Ok(Some(said)) = next_line(&mut reader) {
        let id = said.get("id").and_then(Value::as_str);
        if said.get("QMP").is_some() {
            ask("qmp_capabilities", READY);
        } else if id == Some(READY) {
            let _ = ready.try_send(());
        } else if id == Some(WHY) {
            shared.end_if_paused(said["return"]["status"].as_str().unwrap_or_default());
        } else if said.get("event").is_some() {
            if said["event"] == "STOP" && !shared.is_told.load(Ordering::Relaxed) {
                ask("query-status", WHY);
            }
        } else if answer.try_send(said).is_err() {
            return;
        }
    }
}

impl Shared {
    fn end_if_paused(&self, status: &str) {
        if !ENDS.contains(&status) {
            return;
        }
        tracing::warn!(status, "QEMU has paused the guest by itself: that is its end");
        *lock(&self.paused) = Some(status.to_owned());
        if let Some(process) = self.process.get() {
            // It may have ended meanwhile.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

/// The next line; nothing at the end.
fn next_line(reader: &mut BufReader<UnixStream>) -> io::Result<Option<Value>> {
    let mut line = String::new();
    let read = Read::by_ref(reader).take(MAX_LINE_BYTES).read_line(&mut line)?;
    if read == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).map_err(io::Error::other)
}

/// A command as it is sent.
fn line(command: &str, arguments: &Value, id: Option<&str>) -> String {
    let mut words = json!({ "execute": command, "arguments": arguments });
    if let Some(id) = id {
        words["id"] = id.into();
    }
    format!("{words}\n")
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
        let greeting = "{\"QMP\":{}}\n{\"return\":{},\"id\":\"ready\"}\n";
        let told =
            answer(&format!("{greeting}{{\"event\":\"STOP\"}}\n{{\"return\":{{\"a\":1}}}}\n")).unwrap();
        assert_eq!(told["a"], 1);
        let refused = answer(&format!("{greeting}{{\"error\":{{\"desc\":\"no\"}}}}\n")).unwrap_err();
        assert!(refused.to_string().contains("refuses stop"), "{refused}");
        assert!(answer("{\"QMP\":{}}\n").is_err() && answer("nonsense\n").is_err());
    }

    /// The state of a guest that QEMU has paused, and whether its process has been ended, where `told` says who had it paused.
    fn paused(told: bool, status: &str) -> (Option<String>, bool) {
        let (mut qmp, other) = Qmp::pair().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        qmp.watch(child.id()).unwrap();
        let qemu = UnixStream::from(other);
        let mut said = BufReader::new(qemu.try_clone().unwrap());
        let say = |text: &str| (&qemu).write_all(text.as_bytes()).unwrap();
        let mut asked = || next_line(&mut said).unwrap().unwrap()["execute"].as_str().unwrap().to_owned();
        say("{\"QMP\":{}}\n");
        assert_eq!(asked(), "qmp_capabilities");
        say("{\"return\":{},\"id\":\"ready\"}\n");
        if told {
            say("{\"return\":{}}\n");
            qmp.execute("stop").unwrap();
            say("{\"event\":\"STOP\"}\n");
        } else {
            say("{\"event\":\"STOP\"}\n");
            assert_eq!(asked(), "query-status");
            say(&format!("{{\"return\":{{\"status\":\"{status}\"}},\"id\":\"why\"}}\n"));
        }
        let until =
            std::time::Instant::now() + Duration::from_secs(if told || status == "paused" { 1 } else { 30 });
        while qmp.paused().is_none() && std::time::Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        let is_ended = qmp.paused().is_some() && child.wait().is_ok();
        let _ = child.kill();
        let _ = child.wait();
        (qmp.paused(), is_ended)
    }

    #[test]
    fn a_guest_that_qemu_pauses_for_good_is_ended_and_one_that_we_pause_is_not() {
        assert_eq!(paused(false, "internal-error"), (Some("internal-error".into()), true));
        assert_eq!(paused(false, "paused"), (None, false), "somebody else's, who will have it go on");
        assert_eq!(paused(true, ""), (None, false));
    }
}
