//! vhost-user-blk: a guest's rings in shared memory, a virtual disk for each socket.
//!
//! One client at a time. It may go and come back, and finds what it had asked for done again if this server has
//! changed meanwhile. What it sends is distrusted: a ring that says what cannot be is stopped, a connection that makes no
//! sense is closed, and nobody else notices.

mod backend_channel;
mod blk;
mod chain;
mod inflight;
mod memory;
mod session;
mod split;
mod vring;
mod wire;

use std::os::fd::AsFd;
use std::rc::Rc;

use virtbench_fence::{DiskId, Time};

use self::backend_channel::News;
use self::blk::{Device, Parsed, Status, What};
use self::chain::{Chain, Violation};
use self::memory::Mapped;
use self::session::{After, Session};
use self::vring::indirect;
use self::wire::WireError;
use super::listen::Listener;
pub use super::served::Served;
use super::{Done, FrontEnd, Host, Memory, Request};
use crate::journal::Journal;
use crate::ring::{Interest, WatchId};

const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
/// The first of the rings' kicks.
const KICKS: u64 = 2;
/// Messages taken in one turn at most.
const MOST_MESSAGES: usize = 16;
/// Heads taken from a ring in one turn at most.
const MOST_HEADS: usize = 128;
/// A client that says nothing for so long after it has connected is sent away.
const SILENCE_NS: u64 = 10_000_000_000;

/// A request of the client's that is in flight.
struct Taken {
    /// Of which connection.
    connection: u64,
    ring: u16,
    head: u16,
    status: *mut u8,
    written: u32,
    /// What `status` is in.
    _map: Rc<Mapped>,
}

/// One virtual disk, served at one socket.
pub struct VhostUserBlk {
    disk: DiskId,
    device: Device,
    listener: Listener,
    listening: Option<WatchId>,
    session: Option<Session>,
    /// Number of the present connection, or the last.
    connection: u64,
    /// When the client is sent away unless it says something.
    silent_until: Option<Time>,
    /// Of the configuration, for the client.
    news: News,
    taken: Vec<Option<Taken>>,
    free: Vec<u32>,
    /// Requests in flight of closed connections. Until they are done no other client is let in: they could
    /// overtake what comes next.
    orphans: usize,
    /// Clients were asked to tell us of new requests.
    listens: bool,
    stopping: bool,
    chain: Chain,
    heads: Vec<u16>,
    journal: Journal,
}

impl VhostUserBlk {
    /// Serves a disk at a socket.
    #[must_use]
    pub fn new(listener: Listener, served: Served) -> Self {
        let Served { disk, name, size_bytes, block_bytes, queues, read_only, .. } = served;
        Self {
            disk,
            journal: Journal::new(format!("disk {name}")),
            device: Device { size_bytes, block_bytes, queues, read_only, id: name },
            listener,
            listening: None,
            session: None,
            connection: 0,
            silent_until: None,
            news: News::default(),
            taken: Vec::new(),
            free: Vec::new(),
            orphans: 0,
            listens: false,
            stopping: false,
            chain: Chain::default(),
            heads: Vec::new(),
        }
    }

    fn accept(&mut self, host: &mut Host<'_>) {
        // The one before may have gone without our having heard of it.
        if let Err(why) = self.converse(host) {
            self.close(host, &why);
        }
        if self.orphans > 0 {
            return;
        }
        let client = match self.listener.accept() {
            Ok(None) => return,
            Ok(Some(client)) => client,
            Err(error) => return self.journal.note(format_args!("a client cannot be accepted: {error}")),
        };
        if self.session.is_some() {
            return self.journal.note("a second client was sent away: there is one already");
        }
        self.connection += 1;
        let watch = host.watch(client.as_fd(), Interest::READ, CONNECTION);
        self.session = Some(Session::new(client, watch, self.device.queues));
        self.silent_until = Some(host.now().after(SILENCE_NS));
        tracing::info!(
            disk = self.device.id,
            connection = self.connection,
            "a vhost-user client has connected"
        );
    }

    fn close(&mut self, host: &mut Host<'_>, why: &WireError) {
        let Some(session) = self.session.take() else { return };
        tracing::info!(disk = self.device.id, connection = self.connection, %why, "a vhost-user client has gone");
        self.silent_until = None;
        self.news = News::default();
        host.forget(session.watch);
        for watch in session.rings.iter().filter_map(|ring| ring.kick.as_ref().and_then(|kick| kick.1)) {
            host.forget(watch);
        }
        self.orphans = self.taken.len() - self.free.len();
        if self.orphans > 0 {
            self.listen_for(host, Interest::NONE);
        }
        if !matches!(why, WireError::Closed) {
            self.journal.note(format_args!("the connection was closed: {why}"));
        }
    }

    fn listen_for(&self, host: &mut Host<'_>, interest: Interest) {
        if let Some(watch) = self.listening {
            host.set_interest(watch, interest);
        }
    }

    /// Does what messages say. An error ends the connection.
    fn converse(&mut self, host: &mut Host<'_>) -> Result<(), WireError> {
        for _ in 0..MOST_MESSAGES {
            let Some(session) = &mut self.session else { return Ok(()) };
            if session.stopping.is_some() {
                return Ok(());
            }
            let Some(message) = session.receive()? else { return Ok(()) };
            self.silent_until = None;
            self.news.heard(host.now());
            tracing::debug!(disk = self.device.id, code = message.code, "a vhost-user message");
            match session.handle(message, &self.device)? {
                After::Nothing => {}
                // What it knows may be older than this daemon.
                After::Listens => self.news.owe(host.now()),
                After::Kick(number) => {
                    tracing::info!(disk = self.device.id, ring = number, "a vhost-user ring is agreed on");
                    let ring = &mut session.rings[usize::from(number)];
                    if let Some((kick, watch)) = &mut ring.kick {
                        *watch = Some(host.watch(kick.as_fd(), Interest::READ, KICKS + u64::from(number)));
                    }
                }
                After::Stopping(number) => {
                    let ring = &mut session.rings[usize::from(number)];
                    if let Some((_, Some(watch))) = ring.kick.take() {
                        host.forget(watch);
                    }
                    ring.enable(false);
                    host.set_interest(session.watch, Interest::NONE);
                }
            }
        }
        Ok(())
    }

    /// Answers a client that waits for a ring to have nothing in flight.
    fn finish_stopping(&mut self, host: &mut Host<'_>) -> Result<(), WireError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        if let Some(number) = session.stopping
            && session.rings[usize::from(number)].taken == 0
        {
            session.stopped_at(number)?;
            host.set_interest(session.watch, Interest::READ);
        }
        Ok(())
    }

    /// Takes requests from one ring. Gives how many.
    #[inline]
    fn serve(&mut self, number: usize, host: &mut Host<'_>) -> usize {
        let Some(session) = &mut self.session else { return 0 };
        if !session.rings[number].is_running() {
            return 0;
        }
        let map = Rc::clone(session.memory.map());
        let most = host.room(self.disk).min(MOST_HEADS);
        let mut heads = std::mem::take(&mut self.heads);
        heads.clear();
        let inflight = session.inflight.as_ref();
        let mut done = 0;
        let ring = &mut session.rings[number];
        let mut found = ring.take(inflight, most, &mut heads);
        if found.is_ok() {
            if let Some(table) = ring.table() {
                heads.iter().for_each(|head| table.fetch(*head));
                heads.iter().for_each(|head| table.fetch_behind(&map, *head));
            }
            for &head in &heads {
                if let Err(violation) = self.begin(number, head, &map, host) {
                    found = Err(violation);
                    break;
                }
                done += 1;
            }
        }
        let lost = heads.len() - done;
        self.heads = heads;
        if let Err(violation) = found {
            self.fail(number, lost, violation);
        }
        done
    }

    fn fail(&mut self, number: usize, lost: usize, violation: Violation) {
        if let Some(ring) = self.session.as_mut().and_then(|session| session.rings.get_mut(number)) {
            let told = !ring.is_sound();
            ring.fail(lost);
            if told {
                return;
            }
            self.journal.note(format_args!("ring {number} was stopped: {violation}"));
        }
    }

    /// Takes one request in hand.
    #[inline]
    fn begin(
        &mut self,
        number: usize,
        head: u16,
        map: &Rc<Mapped>,
        host: &mut Host<'_>,
    ) -> Result<(), Violation> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let Some(table) = session.rings[number].table() else { return Ok(()) };
        self.chain.walk(map, table, head, indirect(session.features))?;
        let mut segments = host.segments();
        let Parsed { what, status, written } =
            self.device.parse(&self.chain, session.features, &mut segments)?;
        let ring = u16::try_from(number).unwrap_or(u16::MAX);
        let taken = Taken { connection: self.connection, ring, head, status, written, _map: Rc::clone(map) };
        let (action, offset_bytes, len_bytes) = match what {
            What::Do { action, offset_bytes, len_bytes } => (action, offset_bytes, len_bytes),
            What::Answer(status) => {
                self.answer(&taken, status);
                return Ok(());
            }
        };
        let memory = if segments.is_empty() {
            Memory::None
        } else {
            Memory::Shared { segments, keep: Rc::clone(map) as Rc<dyn std::any::Any> }
        };
        let tag = self.keep(taken);
        let request = Request { tag: tag.into(), disk: self.disk, action, offset_bytes, len_bytes };
        if host.submit(request, memory).is_err()
            && let Some(taken) = self.release(tag)
        {
            self.answer(&taken, Status::IoError);
        }
        Ok(())
    }

    /// Gives a request back to its ring.
    #[inline]
    fn answer(&mut self, taken: &Taken, status: Status) {
        let Some(session) = &mut self.session else { return };
        // SAFETY: a byte of the memory that `_map` keeps mapped.
        unsafe { taken.status.write_volatile(status as u8) };
        let written = if status == Status::Ok { taken.written } else { 1 };
        // The ring lies where it does now, which need not be where the request was found.
        session.rings[usize::from(taken.ring)].give(session.inflight.as_ref(), taken.head, written);
    }

    #[allow(clippy::cast_possible_truncation)] // bounded by the requests of a disk
    fn keep(&mut self, taken: Taken) -> u32 {
        if let Some(place) = self.free.pop() {
            self.taken[place as usize] = Some(taken);
            return place;
        }
        self.taken.push(Some(taken));
        self.taken.len() as u32 - 1
    }

    fn release(&mut self, tag: u32) -> Option<Taken> {
        let taken = self.taken.get_mut(tag as usize)?.take()?;
        self.free.push(tag);
        Some(taken)
    }

    /// Its rings that are in use and have said nothing that cannot be.
    fn sound_rings(&mut self) -> impl Iterator<Item = &mut vring::Vring> {
        let rings = self.session.as_mut().map(|session| session.rings.iter_mut());
        rings.into_iter().flatten().filter(|ring| ring.is_sound())
    }
}

impl FrontEnd for VhostUserBlk {
    fn start(&mut self, host: &mut Host<'_>) {
        self.listening = Some(host.watch(self.listener.socket().as_fd(), Interest::READ, LISTENER));
    }

    fn ready(&mut self, token: u64, host: &mut Host<'_>) {
        match token {
            LISTENER => self.accept(host),
            CONNECTION => {
                if let Err(why) = self.converse(host) {
                    self.close(host, &why);
                }
            }
            kick => {
                let number = usize::try_from(kick - KICKS).unwrap_or(usize::MAX);
                let ring = self.session.as_ref().and_then(|session| session.rings.get(number));
                if let Some((kick, _)) = ring.and_then(|ring| ring.kick.as_ref()) {
                    let mut count = [0; 8];
                    let _ = rustix::io::read(kick, &mut count);
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, host: &mut Host<'_>) -> usize {
        if self.stopping {
            return 0;
        }
        if std::mem::take(&mut self.listens) {
            self.sound_rings().for_each(|ring| ring.look());
        }
        let rings = self.session.as_ref().map_or(0, |session| session.rings.len());
        (0..rings).map(|number| self.serve(number, host)).sum()
    }

    #[inline]
    fn completed(&mut self, done: Done, host: &mut Host<'_>) {
        let tag = u32::try_from(done.tag).unwrap_or(u32::MAX);
        let Some(taken) = self.release(tag) else { return };
        if taken.connection != self.connection || self.session.is_none() {
            self.orphans = self.orphans.saturating_sub(1);
            if self.orphans == 0 {
                self.listen_for(host, Interest::READ);
            }
            return;
        }
        let status = if done.result.is_ok() { Status::Ok } else { Status::IoError };
        self.answer(&taken, status);
    }

    #[inline]
    fn settle(&mut self, host: &mut Host<'_>) {
        self.sound_rings().for_each(vring::Vring::tell);
        if self.session.as_mut().is_some_and(Session::has_lost_memory) {
            return self.close(host, &WireError::Malformed("it took memory away that it shares"));
        }
        if let Err(why) = self.finish_stopping(host) {
            self.close(host, &why);
        }
    }

    fn before_sleep(&mut self, host: &mut Host<'_>) -> bool {
        if self.stopping || host.room(self.disk) == 0 {
            return false;
        }
        self.listens = true;
        // Each of them is asked to tell.
        self.sound_rings()
            .fold(false, |more, ring| more | (ring.is_running() && ring.listen() && ring.has_room()))
    }

    fn next_deadline(&self) -> Option<Time> {
        self.silent_until.into_iter().chain(self.news.due()).min()
    }

    fn on_timer(&mut self, host: &mut Host<'_>) {
        if self.silent_until.is_some_and(|until| until <= host.now()) {
            self.close(host, &WireError::Malformed("it said nothing"));
        }
        if self.news.due().is_some_and(|due| due <= host.now())
            && let Some(session) = &mut self.session
        {
            let serves = session.stopping.is_none() && session.rings.iter().any(vring::Vring::is_running);
            if !serves {
                self.news.wait();
            } else if !self.news.told(session.tell_config_changed()) {
                self.journal.note(
                    "the client cannot be told of its disk's new size: it sees it when it connects anew",
                );
            }
        }
    }

    fn resized(&mut self, disk: DiskId, size_bytes: u64, host: &mut Host<'_>) {
        if disk == self.disk {
            self.device.size_bytes = size_bytes;
            if self.session.is_some() {
                self.news.owe(host.now());
            }
        }
    }

    fn serves(&self) -> Option<DiskId> {
        Some(self.disk)
    }

    fn has_client(&self, disk: DiskId) -> bool {
        disk == self.disk && self.session.is_some()
    }

    fn renumber(&mut self, moved: &[Option<DiskId>], _host: &mut Host<'_>) {
        self.disk = moved.get(self.disk.index()).copied().flatten().unwrap_or(self.disk);
    }

    fn leave(&mut self, host: &mut Host<'_>) {
        self.close(host, &WireError::Closed);
        if let Some(watch) = self.listening.take() {
            host.forget(watch);
        }
    }

    fn stop(&mut self, host: &mut Host<'_>) {
        self.stopping = true;
        self.listen_for(host, Interest::NONE);
    }
}
