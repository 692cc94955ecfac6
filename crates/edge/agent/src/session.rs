//! The agent's side of the conversation: one host, one job at a time.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use virtbench_engine::{Control, Target, TargetRequest, monotonic_ns};
use virtbench_host::{CpuSample, clock_source, crossing_cost, host_facts, kernel_release, memory_bytes};
use virtbench_record::HostUse;

use crate::appliance_desk::ApplianceDesk;
use crate::block_device::{device_facts, wait_for_disk};
use crate::enclosing::enclosing;
use crate::job::Prepared;
use crate::network;
use crate::protocol::appliance::ApplianceRequest;
use crate::protocol::network::NetworkRequest;
use crate::protocol::{
    FailureKind, Greeting, Job, ProtocolError, Reply, Request, SILENCE_LIMIT, VERSION, receive, send,
};

/// How often the progress of a test file is told.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Who accounts for the machine's processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounts {
    /// The controller, which sees them: it runs on the same host.
    Controller,
    /// The agent, on another machine.
    Agent,
}

/// Answers the host until it says [`Request::Shutdown`] or closes the connection; a job that is running
/// is stopped then.
///
/// # Errors
/// The connection failed, or what came over it was no message.
pub fn serve(
    mut reader: impl Read,
    writer: impl Write + Send,
    accounts: Accounts,
) -> Result<(), ProtocolError> {
    let replies = Replies(Mutex::new(writer));
    thread::scope(|scope| {
        let appliance = ApplianceDesk::default();
        let mut session = Session { prepared: None, running: None, accounts, appliance };
        let ended = loop {
            match receive::<Request>(&mut reader) {
                Ok(Request::Shutdown) | Err(ProtocolError::Closed) => break Ok(()),
                Ok(Request::Start { at_ns }) => session.start(scope, &replies, at_ns),
                Ok(Request::MakeFile { path, size_bytes }) => {
                    session.make_file(scope, &replies, path, size_bytes)
                }
                Ok(Request::Appliance(request)) => session.appliance(scope, &replies, request),
                Ok(Request::Network(request)) => session.network(scope, &replies, request),
                Ok(request) => match session.answer(request) {
                    Some(reply) => replies.send(&reply),
                    None => continue,
                },
                Err(error) => break Err(error),
            }?;
        };
        session.stop();
        session.appliance.end();
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

/// A job, or the making of a file, that is running on a thread of its own.
struct Running {
    control: Arc<Control>,
    over: Arc<AtomicBool>,
}

struct Session {
    prepared: Option<Prepared>,
    running: Option<Running>,
    accounts: Accounts,
    appliance: ApplianceDesk,
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
            Request::Hello { version } => Some(hello(version)),
            Request::Ping { id } => Some(Reply::Pong { id, clock_ns: monotonic_ns() }),
            Request::Describe { name_prefix } => Some(describe(&name_prefix)),
            Request::Facts { path } => Some(Reply::Facts(host_facts(Path::new(&path)))),
            Request::Prepare(_) if self.is_busy() => Some(refusal("a job is running")),
            Request::Prepare(_) if self.appliance.is_used() => {
                Some(refusal("an appliance runs here, so no load does"))
            }
            Request::Prepare(job) => Some(self.prepare(*job)),
            Request::Enclosing(request) => Some(enclosing(&request)),
            Request::Stop => {
                self.stop();
                None
            }
            Request::Alive
            | Request::Start { .. }
            | Request::MakeFile { .. }
            | Request::Appliance(_)
            | Request::Network(_)
            | Request::Shutdown => None,
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
            return replies.send(&refusal("a job is running"));
        }
        let Some(prepared) = self.prepared.take() else {
            return replies.send(&refusal("nothing was prepared"));
        };
        let accounts = self.accounts;
        self.in_background(scope, replies, prepared.workers(), move |control| {
            let mut begin = None;
            let measuring = |clock_ns| {
                begin = sample(accounts);
                let _ = replies.send(&Reply::Measuring { clock_ns });
            };
            match prepared.run(control, at_ns, measuring) {
                Ok(outcome) => Reply::Finished { outcome, host: used_since(begin) },
                Err((kind, message)) => Reply::Failed { kind, message },
            }
        });
        Ok(())
    }

    fn make_file<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
        replies: &'scope Replies<W>,
        path: String,
        size_bytes: u64,
    ) -> Result<(), ProtocolError> {
        if self.is_busy() {
            return replies.send(&refusal("a job is running"));
        }
        self.in_background(scope, replies, 1, move |control| {
            let request = TargetRequest {
                path: path.into(),
                size_bytes: Some(size_bytes),
                direct: true,
                reads: true,
                writes: true,
                allow_overwrite: false,
            };
            let mut told = Instant::now();
            let made = Target::open(&request, |done_bytes, total_bytes| {
                if told.elapsed() >= PROGRESS_INTERVAL {
                    told = Instant::now();
                    let _ = replies.send(&Reply::Making { done_bytes, total_bytes });
                }
                !control.is_stopped()
            });
            match made {
                Ok(target) => Reply::Made { notes: target.notes().to_vec() },
                Err(error) => Reply::Failed { kind: FailureKind::Target, message: error.to_string() },
            }
        });
        Ok(())
    }

    /// What takes its time is done on a thread of its own; crashes are told by another.
    fn appliance<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
        replies: &'scope Replies<W>,
        request: ApplianceRequest,
    ) -> Result<(), ProtocolError> {
        if let Some(reply) = self.appliance.answer_at_once(&request) {
            return replies.send(&reply);
        }
        if self.is_busy() {
            return replies.send(&refusal("something else is running"));
        }
        if self.appliance.begins_to_watch(&request) {
            let desk = self.appliance.clone();
            scope.spawn(move || desk.watch(|reply| drop(replies.send(&reply))));
        }
        let desk = self.appliance.clone();
        self.in_background(scope, replies, 1, move |control| {
            desk.act(request, &|| control.is_stopped(), |reply| drop(replies.send(&reply)))
        });
        Ok(())
    }

    /// A path is measured on a thread of its own.
    fn network<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
        replies: &'scope Replies<W>,
        request: NetworkRequest,
    ) -> Result<(), ProtocolError> {
        if let Some(reply) = network::answer_at_once(&request) {
            return replies.send(&reply);
        }
        if self.is_busy() {
            return replies.send(&refusal("something else is running"));
        }
        self.in_background(scope, replies, 1, move |control| {
            let measuring = || drop(replies.send(&Reply::Measuring { clock_ns: monotonic_ns() }));
            network::measure(&request, &|| control.is_stopped(), measuring)
        });
        Ok(())
    }

    /// Does something on a thread of its own, which can be stopped, and sends what comes of it.
    fn in_background<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
        replies: &'scope Replies<W>,
        workers: u32,
        act: impl FnOnce(&Control) -> Reply + Send + 'scope,
    ) {
        let control = Arc::new(Control::new(workers));
        let over = Arc::new(AtomicBool::new(false));
        scope.spawn({
            let (control, over) = (Arc::clone(&control), Arc::clone(&over));
            move || {
                let reply = act(&control);
                // The host may give the next job as soon as it has read this.
                over.store(true, Ordering::Release);
                // A host that is gone cannot be told.
                let _ = replies.send(&reply);
            }
        });
        self.running = Some(Running { control, over });
    }
}

fn sample(accounts: Accounts) -> Option<CpuSample> {
    (accounts == Accounts::Agent).then(CpuSample::take)?.ok()
}

fn used_since(begin: Option<CpuSample>) -> Option<HostUse> {
    Some(begin?.until(&CpuSample::take().ok()?))
}

fn refusal(message: &str) -> Reply {
    Reply::Failed { kind: FailureKind::Request, message: message.to_owned() }
}

fn describe(name_prefix: &str) -> Reply {
    match wait_for_disk(name_prefix) {
        Ok(name) => Reply::Device(device_facts(&name)),
        Err(message) => Reply::Failed { kind: FailureKind::Target, message },
    }
}

/// The answer to a host that speaks this version of the protocol.
pub(crate) fn hello(version: u32) -> Reply {
    if version == VERSION {
        return Reply::Hello(greeting());
    }
    let message =
        format!("the host speaks protocol version {version}, the agent {VERSION}: they are not of one build");
    Reply::Failed { kind: FailureKind::Request, message }
}

/// What this machine is, as its own kernel says. What cannot be read is empty.
#[must_use]
pub fn greeting() -> Greeting {
    Greeting {
        version: VERSION,
        kernel: kernel_release(),
        processors: available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        clock_source: clock_source(),
        crossing: crossing_cost(),
    }
}

/// How often the silence is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Whether the controller was heard since somebody looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<AtomicBool>);

impl Heard {
    /// Ends the agent by `end` once the controller has been silent for [`SILENCE_LIMIT`]. Looks are counted, not time: a
    /// guest that was made to wait, or a clock that was set, is no silence.
    pub(crate) fn watch(&self, end: impl FnOnce(&str) + Send + 'static) {
        let heard = self.clone();
        thread::spawn(move || {
            let (mut silent, limit) = (Duration::ZERO, SILENCE_LIMIT);
            while silent <= limit {
                thread::sleep(LOOK_INTERVAL);
                let was_heard = heard.0.swap(false, Ordering::Relaxed);
                silent = if was_heard { Duration::ZERO } else { silent + LOOK_INTERVAL };
            }
            end(&format!("nothing was heard of the controller for {limit:?}"));
        });
    }
}

/// A reader that notes when something came.
pub(crate) struct Watched<R> {
    pub(crate) reader: R,
    pub(crate) heard: Heard,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.heard.0.store(true, Ordering::Relaxed);
        Ok(count)
    }
}
