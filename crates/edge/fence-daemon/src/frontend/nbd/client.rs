//! One connection: a socket, what is said on it, and the buffers of its requests.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use virtbench_fence::{DiskId, IoError, Time};
use virtbench_nbd::server::{Connection, Event, Op, Request, ServerConfig};
use virtbench_nbd::{ErrorCode, Piece};

use super::budget;
use super::budget::{Budget, Shared};
use super::stream::Stream;
use crate::frontend::{self, Action, Done, Host, Memory};
use crate::memory::Buffer;
use crate::ring::{Interest, WatchId};

/// Calls that receive in one turn: the others have a turn too.
const MOST_CALLS: usize = 4;
/// Pieces handed to the kernel at once.
const BATCH: usize = 64;

/// The connection is over and must be closed.
#[derive(Debug)]
pub(super) struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<virtbench_nbd::server::Violation> for Gone {
    fn from(_: virtbench_nbd::server::Violation) -> Self {
        Self
    }
}

/// What a slot of the connection has.
#[derive(Debug, Default)]
struct Slot {
    buffer: Option<Buffer>,
    /// A flush must follow before the request is complete.
    then_flush: bool,
}

/// A request without memory.
#[derive(Debug, Clone, Copy)]
struct Roomless {
    slot: u32,
    len_bytes: u32,
    /// A read, which can be handed in then. The payload of a write is still to come.
    read: Option<Request>,
}

/// Whether requests are taken from a client that has chosen its export.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    /// Not looked at yet.
    Asked,
    /// When these connections are over, and all that they asked for is done.
    After(Vec<u64>),
    Granted,
}

#[derive(Debug)]
pub(super) struct Client {
    stream: Stream,
    watch: WatchId,
    connection: Connection,
    /// Place of its export in the list.
    export: Option<usize>,
    admission: Admission,
    slots: Vec<Slot>,
    /// Received, but not taken while replies had to leave first.
    unread: Vec<u8>,
    /// Requests for which the disk had no room. They have their memory.
    waiting: VecDeque<Request>,
    /// What must have memory before anything else is taken.
    roomless: Option<Roomless>,
    /// Requests handed in and not completed.
    in_flight: usize,
    /// More may have come than one turn takes.
    has_more: bool,
}

impl Client {
    pub(super) fn new(stream: Stream, watch: WatchId, config: &ServerConfig, now: Time) -> Self {
        Self {
            stream,
            watch,
            connection: Connection::new(config, now.ns()),
            export: None,
            admission: Admission::Granted,
            slots: (0..config.limits.max_requests).map(|_| Slot::default()).collect(),
            unread: Vec::new(),
            waiting: VecDeque::new(),
            roomless: None,
            in_flight: 0,
            has_more: false,
        }
    }

    /// Takes what has come.
    pub(super) fn receive(
        &mut self,
        base: u64,
        shared: &mut Shared,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        self.has_more = false;
        for _ in 0..MOST_CALLS {
            if !self.may_receive() {
                // What TLS holds by then, no socket tells of.
                self.has_more = self.stream.has_buffered();
                return Ok(());
            }
            let Self { stream, slots, connection, .. } = self;
            let direct = match connection.wanted() {
                Some((slot, at, left)) => {
                    buffer_of(slots, slot).map_or(&mut [][..], |b| &mut b[at..at + left])
                }
                None => &mut [],
            };
            let direct_len = direct.len();
            let Some(count) = stream.receive(direct, &mut shared.staging)? else { return Ok(()) };
            if count == 0 {
                return Err(Gone);
            }
            connection.received(host.now().ns(), count.min(direct_len));
            let staged = count.saturating_sub(direct_len);
            self.take(staged, base, shared, host)?;
            if count < direct_len + shared.staging.len() && !self.stream.has_buffered() {
                return Ok(());
            }
        }
        self.has_more = true;
        Ok(())
    }

    /// Takes so many bytes of the staging area; keeps what must wait.
    fn take(
        &mut self,
        staged: usize,
        base: u64,
        shared: &mut Shared,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        let staging = std::mem::take(&mut shared.staging);
        let mut input = &staging[..staged];
        let result = self.take_events(&mut input, base, shared, host);
        self.unread.extend_from_slice(input);
        shared.staging = staging;
        result
    }

    fn take_events(
        &mut self,
        input: &mut &[u8],
        base: u64,
        shared: &mut Shared,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        while !self.is_paused()
            && let Some(event) = self.connection.take(host.now().ns(), &shared.exports, input)?
        {
            match event {
                Event::Room { slot, len_bytes } => {
                    self.roomless = Some(Roomless { slot, len_bytes, read: None });
                    self.make_room(base, shared, host)?;
                }
                Event::Data { slot, at_bytes, bytes } => {
                    let buffer = buffer_of(&mut self.slots, slot).ok_or(Gone)?;
                    buffer[at_bytes..at_bytes + bytes.len()].copy_from_slice(bytes);
                }
                Event::Request(request) if request.op == Op::Read => {
                    let Request { slot, len_bytes, .. } = request;
                    self.roomless = Some(Roomless { slot, len_bytes, read: Some(request) });
                    self.make_room(base, shared, host)?;
                }
                Event::Request(request) => {
                    self.waiting.push_back(request);
                    self.hand_in_waiting(base, shared, host)?;
                }
                Event::Attached { export } => {
                    tracing::info!(
                        disk = shared.exports.get(export).map(|export| export.name.as_str()),
                        "an NBD client has shaken hands"
                    );
                    self.export = Some(export);
                    self.admission = Admission::Asked;
                }
                Event::StartTls => {
                    // The last words in the open.
                    self.send(&mut shared.memory, host)?;
                    let tls = shared.tls.as_ref().ok_or(Gone)?;
                    if self.connection.has_output() {
                        return Err(Gone);
                    }
                    self.stream.start_tls(tls)?;
                }
                Event::Goodbye => {}
            }
        }
        Ok(())
    }

    /// Whether nothing is taken from the client for now.
    fn is_paused(&self) -> bool {
        self.roomless.is_some() || self.admission != Admission::Granted
    }

    fn may_receive(&self) -> bool {
        self.unread.is_empty() && !self.connection.is_full() && !self.is_paused()
    }

    /// Finds memory for what has none, if there is some.
    fn make_room(&mut self, base: u64, shared: &mut Shared, host: &mut Host<'_>) -> Result<(), Gone> {
        let Some(Roomless { slot, len_bytes, read }) = self.roomless else { return Ok(()) };
        let export = self.export.ok_or(Gone)?;
        let Some(buffer) = shared.memory.take(base, export, len_bytes, host) else { return Ok(()) };
        self.slots.get_mut(slot as usize).ok_or(Gone)?.buffer = Some(buffer);
        self.roomless = None;
        self.waiting.extend(read);
        self.hand_in_waiting(base, shared, host)
    }

    fn hand_in(
        &mut self,
        disk: DiskId,
        request: Request,
        base: u64,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        let slot = self.slots.get_mut(request.slot as usize).ok_or(Gone)?;
        let (action, memory) = match request.op {
            Op::Read => (Action::Read, Memory::Owned(slot.buffer.take().ok_or(Gone)?)),
            Op::Write => {
                let buffer = slot.buffer.take().ok_or(Gone)?;
                (Action::Write { fua: request.fua }, Memory::Owned(buffer))
            }
            Op::Flush => (Action::Flush, Memory::None),
            Op::Trim => (Action::Discard, Memory::None),
            Op::WriteZeroes { .. } => (Action::WriteZeroes { fua: request.fua }, Memory::None),
        };
        slot.then_flush = request.op == Op::Trim && request.fua;
        let tag = base | u64::from(request.slot);
        let (offset_bytes, len_bytes) = (request.offset_bytes, u64::from(request.len_bytes));
        let request = frontend::Request { tag, disk, action, offset_bytes, len_bytes };
        host.submit(request, memory).map_err(|_| Gone)?;
        self.in_flight += 1;
        Ok(())
    }

    /// A request is done.
    pub(super) fn completed(
        &mut self,
        slot: u32,
        base: u64,
        done: Done,
        shared: &Shared,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        self.in_flight -= 1;
        let entry = self.slots.get_mut(slot as usize).ok_or(Gone)?;
        entry.buffer = done.buffer;
        if std::mem::take(&mut entry.then_flush) && done.result.is_ok() {
            let flush = Request { slot, op: Op::Flush, offset_bytes: 0, len_bytes: 0, fua: false };
            // In front: it has waited already.
            self.waiting.push_front(flush);
            return self.hand_in_waiting(base, shared, host);
        }
        self.connection.complete(host.now().ns(), slot, done.result.map_err(code_of));
        Ok(())
    }

    /// Hands in what waits, as far as the disk has room.
    fn hand_in_waiting(&mut self, base: u64, shared: &Shared, host: &mut Host<'_>) -> Result<(), Gone> {
        while let Some(disk) = self.export.and_then(|export| shared.disks.get(export).copied())
            && host.room(disk) > 0
            && let Some(request) = self.waiting.pop_front()
        {
            self.hand_in(disk, request, base, host)?;
        }
        Ok(())
    }

    /// Whether its requests are taken, or it has chosen no export yet.
    pub(super) fn is_admitted(&self) -> bool {
        self.admission == Admission::Granted
    }

    /// The place of its export, once it has chosen one.
    pub(super) const fn export(&self) -> Option<usize> {
        self.export
    }

    /// Its export, if others have to be asked about it before its requests are taken.
    pub(super) fn asks_for(&self) -> Option<usize> {
        self.export.filter(|_| self.admission == Admission::Asked)
    }

    /// Its requests are taken when these connections are over, and all that they asked for is done.
    pub(super) fn admit_after(&mut self, others: Vec<u64>) {
        self.admission = Admission::After(others);
    }

    /// Says which of those connections it waits for are still there.
    pub(super) fn wait_for(&mut self, is_there: impl Fn(u64) -> bool) {
        if let Admission::After(others) = &mut self.admission {
            others.retain(|name| is_there(*name));
            if others.is_empty() {
                self.admission = Admission::Granted;
            }
        }
    }

    /// Whether it is a client of this export that has gone, though not all it said has been received.
    pub(super) fn has_hung_up(&self, export: usize) -> bool {
        self.export == Some(export) && self.stream.has_hung_up()
    }

    /// Sends what is ready, takes up what had to wait, and says what the socket is watched for.
    pub(super) fn settle(&mut self, base: u64, shared: &mut Shared, host: &mut Host<'_>) -> Result<(), Gone> {
        self.make_room(base, shared, host)?;
        self.hand_in_waiting(base, shared, host)?;
        self.send(&mut shared.memory, host)?;
        if !self.unread.is_empty() && !self.connection.is_full() && !self.is_paused() {
            let unread = std::mem::take(&mut self.unread);
            let mut input = &unread[..];
            self.take_events(&mut input, base, shared, host)?;
            self.unread = input.to_vec();
            self.send(&mut shared.memory, host)?;
        }
        if self.connection.is_over() {
            return Err(Gone);
        }
        self.connection.hold(host.now().ns(), self.is_paused());
        let read = self.may_receive();
        let write = self.connection.has_output() || self.stream.wants_write();
        host.set_interest(self.watch, Interest { read, write });
        Ok(())
    }

    fn send(&mut self, memory: &mut Budget, host: &mut Host<'_>) -> Result<(), Gone> {
        let Self { stream, slots, connection, export, .. } = self;
        stream.push()?;
        while connection.has_output() {
            let mut slices = [IoSlice::new(&[]); BATCH];
            let (mut count, mut offered) = (0, 0);
            for (slice, piece) in slices.iter_mut().zip(connection.pieces()) {
                let bytes = match piece {
                    Piece::Header(bytes) => bytes,
                    Piece::Data { of, at, len } => {
                        let buffer = slots.get(of as usize).and_then(|slot| slot.buffer.as_ref());
                        buffer.and_then(|buffer| buffer.get(at..at + len)).ok_or(Gone)?
                    }
                };
                *slice = IoSlice::new(bytes);
                (count, offered) = (count + 1, offered + bytes.len());
            }
            let Some(sent) = stream.send(&slices[..count])? else { return Ok(()) };
            connection.sent(host.now().ns(), sent, |slot| {
                let buffer = slots.get_mut(slot as usize).and_then(|slot| slot.buffer.take());
                if let (Some(buffer), Some(export)) = (buffer, *export) {
                    memory.give(export, buffer, host);
                }
            });
            if sent < offered {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether there may be more to receive though the socket does not say so.
    pub(super) fn has_more(&self) -> bool {
        self.has_more && self.may_receive()
    }

    /// Whether it waits for something that others have.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_paused() || !self.waiting.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.connection.next_deadline().map(Time::from_ns)
    }

    pub(super) fn on_timer(&self, now: Time) -> Result<(), Gone> {
        Ok(self.connection.on_timer(now.ns())?)
    }

    pub(super) fn shut_down(&mut self) {
        self.connection.shut_down();
    }

    /// The end. What is in flight comes back later, and finds nobody: of a client that has not said goodbye, what no device
    /// has yet is dropped.
    pub(super) fn close(mut self, base: u64, shared: &mut Shared, host: &mut Host<'_>) {
        host.forget(self.watch);
        self.stream.goodbye();
        shared.memory.leave(base);
        let Some(export) = self.export else { return };
        for buffer in self.slots.into_iter().filter_map(|slot| slot.buffer) {
            shared.memory.give(export, buffer, host);
        }
        shared.departed.add(base, export, self.in_flight);
        if self.in_flight > 0 && !self.connection.is_leaving() {
            host.abandon(|tag| budget::name(tag) == base);
        }
    }
}

fn buffer_of(slots: &mut [Slot], slot: u32) -> Option<&mut Buffer> {
    slots.get_mut(slot as usize)?.buffer.as_mut()
}

/// What the client is told.
fn code_of(error: IoError) -> ErrorCode {
    match error {
        IoError::Device(libc::ENOSPC) => ErrorCode::NoSpc,
        IoError::Device(libc::ENOMEM) => ErrorCode::NoMem,
        IoError::Device(libc::EPERM | libc::EROFS) => ErrorCode::Perm,
        IoError::Device(libc::EOPNOTSUPP) => ErrorCode::NotSup,
        IoError::Device(_) | IoError::Corrupt => ErrorCode::Io,
        IoError::OutOfRange | IoError::TooLong => ErrorCode::Inval,
    }
}
