//! The daemon's side: the scheduler's thread accepts and carries out, a thread beside it reads, checks and writes to devices.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use virtbench_fence::{DiskId, SchedulerConfig};

use super::client::Visitor;
use super::{Answer, MOST_QUESTION_BYTES, Question, Refusal};
use crate::admin::{Handed, Live, ResizeError, Serving};
use crate::frontend::listen::Listener;
use crate::frontend::{Done, FrontEnd, Host};
use crate::journal::Journal;
use crate::questions::{self, Bounds, Desk};
use crate::requests::core::{Asked, Change, HAS_CLIENT, Wish};
use crate::ring::Interest;

const LISTENER: u64 = 0;
const ORDERS: u64 = 1;
/// Clients that have been accepted while a question is dealt with; one too many is sent away.
const MOST_WAITING: usize = 64;
/// Of those that have not asked yet.
const BOUNDS: Bounds =
    Bounds { clients: 64, question_bytes: MOST_QUESTION_BYTES, time: Duration::from_secs(5) };
/// How long a client may take to read figures.
const READ_LIMIT: Duration = Duration::from_secs(2);
/// How long the scheduler's thread may take; it is never busy for long.
const ORDER_LIMIT: Duration = Duration::from_secs(30);

/// How long it may take to rest; longer than it gives itself.
const REST_LIMIT: Duration = Duration::from_secs(40);

/// How often, and how long from one time to the next, it is asked about a disk that has a client.
const CLIENT_TRIES: usize = 10;
const CLIENT_PAUSE: Duration = Duration::from_millis(100);

/// What the scheduler's thread is to do.
enum What {
    Grow(DiskId, u64),
    Reschedule(SchedulerConfig),
    /// What is of the whole loop.
    Wish(Wish),
}

struct Order {
    what: What,
    answer: SyncSender<Result<(), String>>,
}

/// The control socket, in the scheduler's thread.
pub struct Control {
    listener: Listener,
    clients: SyncSender<UnixStream>,
    /// Tells the other thread of clients, and of the end by being closed.
    arrivals: UnixStream,
    orders: Receiver<Order>,
    bell: Arc<OwnedFd>,
    journal: Journal,
}

impl Control {
    /// Starts the thread that deals with clients, which ends when this is dropped.
    ///
    /// # Errors
    /// No thread or descriptor is left.
    pub fn start(listener: Listener, live: Live) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (clients, waiting) = sync_channel(MOST_WAITING);
        let (send, orders) = sync_channel(1);
        let scheduler = Scheduler { orders: send, bell: Arc::clone(&bell) };
        let (arrivals, arrived) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        arrived.set_nonblocking(true)?;
        let work = move || work(&waiting, &arrived, live, &scheduler);
        thread::Builder::new().name("control".into()).spawn(work)?;
        Ok(Self { listener, clients, arrivals, orders, bell, journal: Journal::new("control".into()) })
    }

    fn accept(&self) {
        match self.listener.accept() {
            Ok(None) => {}
            Ok(Some(client)) => {
                // One too many finds the connection closed.
                let _ = self.clients.try_send(client);
                // A byte that has no room is one of many that are there.
                let _ = (&self.arrivals).write(&[1]);
            }
            Err(error) => self.journal.note(format_args!("a client cannot be accepted: {error}")),
        }
    }

    fn carry_out(&self, host: &mut Host<'_>) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&*self.bell, &mut count);
        while let Ok(Order { what, answer }) = self.orders.try_recv() {
            let done = match what {
                What::Grow(disk, size_bytes) => host.grow_disk(disk, size_bytes),
                What::Reschedule(scheduler) => host.reschedule(&scheduler),
                What::Wish(wish) => {
                    host.ask(Asked { wish, answer });
                    continue;
                }
            };
            let _ = answer.try_send(done.map_err(|error| error.to_string()));
        }
    }
}

impl FrontEnd for Control {
    fn start(&mut self, host: &mut Host<'_>) {
        host.watch(self.listener.socket().as_fd(), Interest::READ, LISTENER);
        host.watch(self.bell.as_fd(), Interest::READ, ORDERS);
    }

    fn ready(&mut self, token: u64, host: &mut Host<'_>) {
        match token {
            LISTENER => self.accept(),
            _ => self.carry_out(host),
        }
    }

    fn completed(&mut self, _done: Done, _host: &mut Host<'_>) {}
}

/// The scheduler's thread, as seen from the one beside it.
struct Scheduler {
    orders: SyncSender<Order>,
    bell: Arc<OwnedFd>,
}

impl Scheduler {
    fn order(&self, what: What, limit: Duration) -> Result<(), ResizeError> {
        // Without an answer the daemon is ending.
        let (answer, answered) = sync_channel(1);
        self.orders.send(Order { what, answer }).map_err(|_| ResizeError::Interrupted)?;
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
        let done = answered.recv_timeout(limit).map_err(|_| ResizeError::Interrupted)?;
        done.map_err(ResizeError::Value)
    }
}

impl Serving for Scheduler {
    fn rest(&self, leaves: Option<DiskId>) -> Result<(), ResizeError> {
        let mut tries = 1..CLIENT_TRIES;
        loop {
            match self.order(What::Wish(Wish::Rest { leaves }), REST_LIMIT) {
                // One that has just left may not be seen off yet.
                Err(ResizeError::Value(why)) if why == HAS_CLIENT && tries.next().is_some() => {
                    thread::sleep(CLIENT_PAUSE);
                }
                Err(ResizeError::Value(why)) => return Err(ResizeError::NotNow(why)),
                done => return done,
            }
        }
    }

    fn go_on(&self) {
        let _ = self.order(What::Wish(Wish::GoOn), ORDER_LIMIT);
    }

    fn change(&self, change: Change) -> Result<(), ResizeError> {
        self.order(What::Wish(Wish::Change(Box::new(change))), ORDER_LIMIT)
    }

    fn end(&self) {
        let _ = self.order(What::Wish(Wish::End), ORDER_LIMIT);
    }
}

fn work(clients: &Receiver<UnixStream>, arrived: &UnixStream, mut live: Live, scheduler: &Scheduler) {
    let journal = Journal::new("control".into());
    let mut desk = Desk::new(BOUNDS);
    while wait(&desk, arrived).is_ok() {
        clients.try_iter().for_each(|client| desk.admit(Visitor::new(client)));
        for asked in desk.turn(|question| question.ends_with(b"\n")) {
            let questions::Asked { question, stream: Visitor { mut stream, handed }, .. } = asked;
            let answer = answer(&question, handed, &mut live, scheduler, &mut stream);
            if let Answer::Refused { why, .. } = &answer {
                journal.note(format_args!("refused: {why}"));
            }
            let _ = say(&mut stream, &answer);
        }
    }
}

/// Until there is something to do; an error is the end.
fn wait(desk: &Desk<Visitor>, mut arrived: &UnixStream) -> io::Result<()> {
    if desk.wait(arrived.as_fd())? {
        match arrived.read(&mut [0; MOST_WAITING]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A line. It has room in the socket of a client that reads.
fn say(client: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    client.write_all(&text)
}

fn answer(
    text: &[u8],
    handed: Vec<OwnedFd>,
    live: &mut Live,
    scheduler: &Scheduler,
    client: &mut UnixStream,
) -> Answer {
    let done = match serde_json::from_slice(text) {
        Err(error) => Err(ResizeError::Value(format!("no question of this daemon's: {error}"))),
        Ok(Question::Resize(change)) => live.resize(
            &change,
            // A client that left may ask again; what was begun is finished.
            |step| drop(say(client, &Answer::ResizeStep(step))),
            |disk, size_bytes| scheduler.order(What::Grow(disk, size_bytes), ORDER_LIMIT),
        ),
        Ok(Question::Figures) => {
            // More than a socket has room for: a client that does not read is not waited for.
            let limits =
                client.set_nonblocking(false).and_then(|()| client.set_write_timeout(Some(READ_LIMIT)));
            let figures = live.board().now().text();
            drop(limits.and_then(|()| say(client, &Answer::Figures(figures))));
            Ok(())
        }
        Ok(Question::Add(disk)) => {
            let handed = Handed::of(disk.socket.is_some(), handed);
            live.add(&disk, handed, scheduler, &mut |step| drop(say(client, &Answer::ResizeStep(step))))
        }
        Ok(Question::Remove { disk }) => {
            let handed = Handed::of(false, handed);
            live.remove(&disk, handed, scheduler, &mut |step| drop(say(client, &Answer::ResizeStep(step))))
        }
        Ok(Question::Reslot { disks, rotation }) => {
            live.reslot(&disks, rotation, |slots| scheduler.order(What::Reschedule(slots), ORDER_LIMIT))
        }
    };
    match done {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Refused { kind: kind(&error), why: error.to_string() },
    }
}

const fn kind(error: &ResizeError) -> Refusal {
    match error {
        ResizeError::NoDisk(_) => Refusal::NoDisk,
        ResizeError::Value(_) | ResizeError::Shrinks { .. } => Refusal::Value,
        ResizeError::Damaged { .. } => Refusal::Damaged,
        ResizeError::Serve(crate::ServeError::Config(_) | crate::ServeError::Load(_)) => Refusal::Value,
        _ => Refusal::Target,
    }
}
