//! The agent's side of the conversation: one host, one load at a time.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::{Control, EngineError, Target, TargetRequest, monotonic_ns, run};
use virtbench_workload::LoadSpec;

use crate::block_device::{device_facts, disk_names, node};
use crate::greeting::greeting;
use crate::protocol::{FailureKind, Job, ProtocolError, Reply, Request, TargetRef, VERSION, receive, send};

/// How long a guest's disk may take to appear.
const DISK_LIMIT: Duration = Duration::from_secs(10);

/// Answers the host until it says [`Request::Shutdown`] or closes the connection; a load under way
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

/// The writing half, shared with the thread that runs a load.
struct Replies<W>(Mutex<W>);

impl<W: Write> Replies<W> {
    fn send(&self, reply: &Reply) -> Result<(), ProtocolError> {
        send(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), reply)
    }
}

/// A target that is open and the load meant for it.
struct Prepared {
    target: Target,
    spec: LoadSpec,
}

struct Session<'scope> {
    prepared: Option<Prepared>,
    running: Option<(Arc<Control>, thread::ScopedJoinHandle<'scope, ()>)>,
}

impl<'scope> Session<'scope> {
    fn is_busy(&self) -> bool {
        self.running.as_ref().is_some_and(|(_, load)| !load.is_finished())
    }

    fn stop(&self) {
        if let Some((control, _)) = &self.running {
            control.stop();
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
            Request::Describe { name_prefix } => Some(describe(&name_prefix)),
            Request::Prepare(_) if self.is_busy() => Some(refusal("a load is under way")),
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
        match open(&job) {
            Ok(target) => {
                let facts = target.facts().clone();
                self.prepared = Some(Prepared { target, spec: job.spec });
                Reply::Prepared { target: facts }
            }
            Err(message) => Reply::Failed { kind: FailureKind::Target, message },
        }
    }

    fn start<'env, W: Write + Send>(
        &mut self,
        scope: &'scope thread::Scope<'scope, 'env>,
        replies: &'scope Replies<W>,
        at_ns: u64,
    ) -> Result<(), ProtocolError>
    where
        'env: 'scope,
    {
        if self.is_busy() {
            return replies.send(&refusal("a load is under way"));
        }
        let Some(Prepared { target, spec }) = self.prepared.take() else {
            return replies.send(&refusal("nothing was prepared"));
        };
        let control = Arc::new(Control::new(spec.workers));
        let load = scope.spawn({
            let control = Arc::clone(&control);
            move || {
                let measuring = |clock_ns| {
                    let _ = replies.send(&Reply::Measuring { clock_ns });
                };
                let reply = match run(&spec, &target, &control, at_ns, measuring) {
                    Ok(outcome) => Reply::Finished(Box::new(outcome)),
                    Err(error) => Reply::Failed { kind: failure_kind(&error), message: error.to_string() },
                };
                // The host may use the target as soon as it hears of the end: a device held
                // exclusively must be closed by then.
                drop(target);
                // A host that is gone cannot be told.
                let _ = replies.send(&reply);
            }
        });
        self.running = Some((control, load));
        Ok(())
    }
}

fn refusal(message: &str) -> Reply {
    Reply::Failed { kind: FailureKind::Request, message: message.to_owned() }
}

fn failure_kind(error: &EngineError) -> FailureKind {
    match error {
        EngineError::Load(_) => FailureKind::Request,
        EngineError::Misfit(_) => FailureKind::Target,
        EngineError::Resource { .. } => FailureKind::Engine,
    }
}

fn open(job: &Job) -> Result<Target, String> {
    let (path, allow_overwrite) = match &job.target {
        TargetRef::Path(path) => (PathBuf::from(path), false),
        // Whatever disk a guest was given was made for it.
        TargetRef::Disk { name_prefix } => (node(&wait_for_disk(name_prefix)?), true),
    };
    let request = TargetRequest {
        path,
        size_bytes: None,
        direct: job.spec.direct,
        reads: job.spec.access.reads(),
        writes: job.spec.access.writes(),
        allow_overwrite,
    };
    Target::open(&request, |_, _| true).map_err(|error| error.to_string())
}

/// The first disk whose name begins like this.
fn wait_for_disk(name_prefix: &str) -> Result<String, String> {
    let limit = Instant::now() + DISK_LIMIT;
    loop {
        let names = disk_names().map_err(|error| format!("cannot list the guest's disks: {error}"))?;
        if let Some(name) = names.iter().find(|name| name.starts_with(name_prefix)) {
            return Ok(name.clone());
        }
        if Instant::now() > limit {
            return Err(format!(
                "no disk named {name_prefix}* appeared within {} s; there are: {}",
                DISK_LIMIT.as_secs(),
                names.join(", ")
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn describe(name_prefix: &str) -> Reply {
    match wait_for_disk(name_prefix) {
        Ok(name) => Reply::Device(device_facts(&name)),
        Err(message) => Reply::Failed { kind: FailureKind::Target, message },
    }
}
