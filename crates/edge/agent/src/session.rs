//! The agent's side of the conversation: one host, one job at a time.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use virtbench_engine::{Control, monotonic_ns};

use crate::greeting::greeting;
use crate::job::Prepared;
use crate::protocol::{FailureKind, Job, ProtocolError, Reply, Request, VERSION, receive, send};

/// Answers the host until it says [`Request::Shutdown`] or closes the connection; a job under way
/// is stopped then.
///
/// # Errors
/// The connection failed, or what came over it was no message.
pub fn serve(mut reader: impl Read, writer: impl Write + Send) -> Result<(), ProtocolError> {
    let replies = Replies(Mutex::new(writer));
    thread::scope(|scope| {
        let mut session = Session { prepared: None, running: None };
        let ended = loop {
            match receive::<Request>(&mut reader) {
                Ok(Request::Shutdown) | Err(ProtocolError::Closed) => break Ok(()),
                Ok(Request::Start { at_ns }) => session.start(scope, &replies, at_ns),
                Ok(request) => match session.answer(request) {
                    Some(reply) => replies.send(&reply),
                    None => continue,
                },
                Err(error) => break Err(error),
            }?;
        };
        session.stop();
        ended
    })
}

/// The writing half, shared with the thread that runs a job.
struct Replies<W>(Mutex<W>);

impl<W: Write> Replies<W> {
    fn send(&self, reply: &Reply) -> Result<(), ProtocolError> {
        send(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), reply)
    }
}

/// A job under way on a thread of its own.
struct Running {
    control: Arc<Control>,
    over: Arc<AtomicBool>,
}

struct Session {
    prepared: Option<Prepared>,
    running: Option<Running>,
}

impl Session {
    fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.over.load(Ordering::Acquire))
    }

    fn stop(&self) {
        if let Some(running) = &self.running {
            running.control.stop();
        }
    }

    /// The answer to everything but a start, where there is one.
    fn answer(&mut self, request: Request) -> Option<Reply> {
        match request {
            Request::Hello { version: VERSION } => Some(Reply::Hello(greeting())),
            Request::Hello { version } => Some(refusal(&format!(
                "the host speaks protocol version {version}, the agent {VERSION}: they are not of one build"
            ))),
            Request::Ping { id } => Some(Reply::Pong { id, clock_ns: monotonic_ns() }),
            Request::Prepare(_) if self.is_busy() => Some(refusal("a job is under way")),
            Request::Prepare(job) => Some(self.prepare(*job)),
            Request::Stop => {
                self.stop();
                None
            }
            Request::Start { .. } | Request::Shutdown => None,
        }
    }

    fn prepare(&mut self, job: Job) -> Reply {
        // A target that stays open would hold a file that the next job may want to replace.
        self.prepared = None;
        match Prepared::new(&job) {
            Ok(prepared) => {
                let target = prepared.target();
                self.prepared = Some(prepared);
                Reply::Prepared { target }
            }
            Err((kind, message)) => Reply::Failed { kind, message },
        }
    }

    fn start<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
        replies: &'scope Replies<W>,
        at_ns: u64,
    ) -> Result<(), ProtocolError> {
        if self.is_busy() {
            return replies.send(&refusal("a job is under way"));
        }
        let Some(prepared) = self.prepared.take() else {
            return replies.send(&refusal("nothing was prepared"));
        };
        let control = Arc::new(Control::new(prepared.workers()));
        let over = Arc::new(AtomicBool::new(false));
        scope.spawn({
            let (control, over) = (Arc::clone(&control), Arc::clone(&over));
            move || {
                let measuring = |clock_ns| {
                    let _ = replies.send(&Reply::Measuring { clock_ns });
                };
                let reply = match prepared.run(&control, at_ns, measuring) {
                    Ok(outcome) => Reply::Finished(outcome),
                    Err((kind, message)) => Reply::Failed { kind, message },
                };
                // The host may give the next job as soon as it has read this.
                over.store(true, Ordering::Release);
                // A host that is gone cannot be told.
                let _ = replies.send(&reply);
            }
        });
        self.running = Some(Running { control, over });
        Ok(())
    }
}

fn refusal(message: &str) -> Reply {
    Reply::Failed { kind: FailureKind::Request, message: message.to_owned() }
}
