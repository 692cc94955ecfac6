//! One connection: a socket, what is said on it, and the buffers of its requests.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use virtbench_fence::{DiskId, IoError, Time};
use virtbench_nbd::server::{Connection, Event, Op, Request, ServerConfig};
use virtbench_nbd::{ErrorCode, Piece};

use super::stream::Stream;
use super::{Budget, Shared};
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

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    stream: Stream,
    watch: WatchId,
    connection: Connection,
    disk: Option<DiskId>,
    slots: Vec<Slot>,
    /// Received, but not taken while replies had to leave first.
    unread: Vec<u8>,
    /// Requests for which the disk had no room.
    waiting: VecDeque<Request>,
    /// More may have come than one turn takes.
    has_more: bool,
}

impl Client {
    pub(super) fn new(stream: Stream, watch: WatchId, config: &ServerConfig, now: Time) -> Self {
        Self {
            stream,
            watch,
            connection: Connection::new(config, now.ns()),
            disk: None,
            slots: (0..config.limits.max_requests).map(|_| Slot::default()).collect(),
            unread: Vec::new(),
            waiting: VecDeque::new(),
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
            if !self.unread.is_empty() || self.connection.is_full() {
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
        while let Some(event) = self.connection.take(host.now().ns(), &shared.exports, input)? {
            match event {
                Event::Room { slot, len_bytes } => {
                    let entry = self.slots.get_mut(slot as usize).ok_or(Gone)?;
                    entry.buffer = shared.memory.take(len_bytes, host);
                    if entry.buffer.is_none() {
                        self.connection.complete(host.now().ns(), slot, Err(ErrorCode::NoMem));
                    }
                }
                Event::Data { slot, at_bytes, bytes } => {
                    let buffer = buffer_of(&mut self.slots, slot).ok_or(Gone)?;
                    buffer[at_bytes..at_bytes + bytes.len()].copy_from_slice(bytes);
                }
                Event::Request(request) => self.begin(request, base, &mut shared.memory, host)?,
                Event::Attached { export } => self.disk = shared.disks.get(export).copied(),
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

    /// Hands a request in, or keeps it until there is room.
    fn begin(
        &mut self,
        request: Request,
        base: u64,
        memory: &mut Budget,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        let disk = self.disk.ok_or(Gone)?;
        if !self.waiting.is_empty() || host.room(disk) == 0 {
            self.waiting.push_back(request);
            return Ok(());
        }
        self.hand_in(disk, request, base, memory, host)
    }

    fn hand_in(
        &mut self,
        disk: DiskId,
        request: Request,
        base: u64,
        budget: &mut Budget,
        host: &mut Host<'_>,
    ) -> Result<(), Gone> {
        let slot = self.slots.get_mut(request.slot as usize).ok_or(Gone)?;
        let (action, memory) = match request.op {
            Op::Read => {
                let Some(buffer) = budget.take(request.len_bytes, host) else {
                    self.connection.complete(host.now().ns(), request.slot, Err(ErrorCode::NoMem));
                    return Ok(());
                };
                (Action::Read, Memory::Owned(buffer))
            }
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
        host.submit(request, memory).map_err(|_| Gone)
    }

    /// A request is done.
    pub(super) fn completed(
        &mut self,
        slot: u32,
        base: u64,
        done: Done,
        memory: &mut Budget,
        host: &mut Host<'_>,
    ) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        entry.buffer = done.buffer;
        if std::mem::take(&mut entry.then_flush) && done.result.is_ok() {
            let flush = Request { slot, op: Op::Flush, offset_bytes: 0, len_bytes: 0, fua: false };
            // In front: it has waited already.
            self.waiting.push_front(flush);
            let _ = self.hand_in_waiting(base, memory, host);
            return;
        }
        self.connection.complete(host.now().ns(), slot, done.result.map_err(code_of));
    }

    fn hand_in_waiting(&mut self, base: u64, memory: &mut Budget, host: &mut Host<'_>) -> Result<(), Gone> {
        while let Some(disk) = self.disk
            && host.room(disk) > 0
            && let Some(request) = self.waiting.pop_front()
        {
            self.hand_in(disk, request, base, memory, host)?;
        }
        Ok(())
    }

    /// Sends what is ready, takes up what had to wait, and says what the socket is watched for.
    pub(super) fn settle(&mut self, base: u64, shared: &mut Shared, host: &mut Host<'_>) -> Result<(), Gone> {
        self.hand_in_waiting(base, &mut shared.memory, host)?;
        self.send(&mut shared.memory, host)?;
        if !self.unread.is_empty() && !self.connection.is_full() {
            let unread = std::mem::take(&mut self.unread);
            let mut input = &unread[..];
            self.take_events(&mut input, base, shared, host)?;
            self.unread = input.to_vec();
            self.send(&mut shared.memory, host)?;
        }
        if self.connection.is_over() {
            return Err(Gone);
        }
        let read = self.unread.is_empty() && !self.connection.is_full();
        let write = self.connection.has_output() || self.stream.wants_write();
        host.set_interest(self.watch, Interest { read, write });
        Ok(())
    }

    fn send(&mut self, memory: &mut Budget, host: &mut Host<'_>) -> Result<(), Gone> {
        let Self { stream, slots, connection, .. } = self;
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
                if let Some(buffer) = slots.get_mut(slot as usize).and_then(|slot| slot.buffer.take()) {
                    memory.give(buffer, host);
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
        self.has_more && self.unread.is_empty() && !self.connection.is_full()
    }

    /// Whether requests wait for the disk.
    pub(super) fn is_waiting_for_room(&self) -> bool {
        !self.waiting.is_empty()
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

    /// The end. What is under way comes back later, and finds nobody.
    pub(super) fn close(mut self, memory: &mut Budget, host: &mut Host<'_>) {
        host.forget(self.watch);
        self.stream.goodbye();
        for buffer in self.slots.into_iter().filter_map(|slot| slot.buffer) {
            memory.give(buffer, host);
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
