//! Operations on an NBD export, pipelined over one connection.

use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
use virtbench_nbd::client::{ClientError, Event, ReplyStream};
use virtbench_nbd::{Command, encode_request};
use virtbench_workload::{Direction, Op};

use super::{Backend, Completion};
use crate::clock::monotonic_ns;
use crate::nbd::{Connection, NbdError, NbdSource, Outbox};

/// Bytes received ahead of knowing what they are. Holds the replies to 31 reads of 4 KiB, so that one
/// system call takes many, and stays in the second-level cache.
const STAGING_BYTES: usize = 128 << 10;
/// The longest wait before the worker looks at its stop flag, in nanoseconds.
const HEARTBEAT_NS: u64 = 50_000_000;

const CLOSED: NbdError = NbdError::Server(ClientError::Closed { during: "while requests were in flight" });

/// One worker's connection.
///
/// All requests that are ready leave with one system call, and one takes what replies there are. Data
/// whose place is known when the call is made goes straight there; what follows behind it goes through
/// the staging area. A connection that breaks fails everything in flight and all that follows.
pub(crate) struct Nbd {
    source: Arc<NbdSource>,
    connection: Option<Connection>,
    outbox: Outbox,
    replies: ReplyStream,
    buffers: Vec<*mut u8>,
    staging: Box<[u8]>,
    /// Completed without having been sent.
    refused: Vec<Completion>,
    errno: i32,
}

impl Nbd {
    /// A connection for `slots` operations.
    pub(crate) fn new(source: &Arc<NbdSource>, slots: u32) -> Result<Self, NbdError> {
        Ok(Self {
            source: Arc::clone(source),
            connection: Some(source.connect()?),
            outbox: Outbox::default(),
            replies: ReplyStream::new(slots),
            buffers: vec![std::ptr::null_mut(); slots as usize],
            staging: vec![0; STAGING_BYTES].into_boxed_slice(),
            refused: Vec::new(),
            errno: 0,
        })
    }

    /// Sends what is ready and takes what has come, waiting for either.
    fn exchange(
        &mut self,
        connection: &Connection,
        until_ns: Option<u64>,
        completions: &mut Vec<Completion>,
    ) -> Result<(), NbdError> {
        match self.outbox.send(connection.as_fd()) {
            Err(Errno::PIPE) => return Err(CLOSED),
            sent => sent.map_err(io::Error::from)?,
        }
        let mut flags = RecvFlags::empty();
        if until_ns.is_some() || !self.outbox.is_empty() || !completions.is_empty() {
            flags = RecvFlags::DONTWAIT;
            let now_ns = monotonic_ns();
            let limit_ns = until_ns.unwrap_or(u64::MAX).min(now_ns + HEARTBEAT_NS);
            let left_ns = if completions.is_empty() { limit_ns.saturating_sub(now_ns) } else { 0 };
            let mut wanted = PollFlags::IN;
            wanted.set(PollFlags::OUT, !self.outbox.is_empty());
            wait(connection, wanted, left_ns)?;
        }
        self.receive(connection, flags, completions)
    }

    fn receive(
        &mut self,
        connection: &Connection,
        flags: RecvFlags,
        completions: &mut Vec<Completion>,
    ) -> Result<(), NbdError> {
        let Self { replies, buffers, staging, .. } = self;
        let direct = match replies.wanted() {
            // SAFETY: `Backend::queue`'s contract: the slot's buffer holds at least the operation's
            // length, beyond which `wanted` never points, and nobody else touches it.
            Some((slot, at, left)) => unsafe {
                std::slice::from_raw_parts_mut(buffers[slot as usize].add(at), left)
            },
            None => &mut [],
        };
        let direct_len = direct.len();
        let mut slices = [IoSliceMut::new(direct), IoSliceMut::new(staging)];
        let slices = if direct_len == 0 { &mut slices[1..] } else { &mut slices[..] };
        let count = match recvmsg(connection, slices, &mut RecvAncillaryBuffer::default(), flags) {
            Ok(received) if received.bytes == 0 => return Err(CLOSED),
            Ok(received) => received.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(io::Error::from(error).into()),
        };
        let mut on_event = |event: Event<'_>| match event {
            Event::Data { slot, at, bytes } => {
                // SAFETY: as above; an event's bytes end where the operation does.
                let place =
                    unsafe { std::slice::from_raw_parts_mut(buffers[slot as usize].add(at), bytes.len()) };
                place.copy_from_slice(bytes);
            }
            Event::Done { slot, result } => completions.push(Completion { slot, result }),
        };
        replies.received(count.min(direct_len), &mut on_event);
        Ok(replies.feed(&staging[..count.saturating_sub(direct_len)], &mut on_event)?)
    }

    /// Fails everything in flight, and from now on whatever is queued.
    #[cold]
    fn give_up(&mut self, error: &NbdError, completions: &mut Vec<Completion>) {
        self.errno = error.errno();
        self.outbox.clear();
        let result = -self.errno;
        completions.extend(self.replies.abandon().map(|slot| Completion { slot, result }));
    }
}

fn command(direction: Direction) -> Command {
    match direction {
        Direction::Read => Command::Read,
        Direction::Write => Command::Write,
        Direction::Trim => Command::Trim,
        Direction::Flush => Command::Flush,
    }
}

/// Waits for the socket, at most so long.
fn wait(connection: &Connection, wanted: PollFlags, at_most_ns: u64) -> Result<(), NbdError> {
    let limit = Timespec::try_from(Duration::from_nanos(at_most_ns)).unwrap_or_default();
    match poll(&mut [PollFd::new(connection, wanted)], Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

impl Backend for Nbd {
    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        if self.errno != 0 {
            self.refused.push(Completion { slot, result: -self.errno });
            return;
        }
        let command = command(op.direction);
        self.buffers[slot as usize] = buffer;
        let moved = if op.direction.moves_data() { op.len } else { 0 };
        let cookie = self.replies.expect(slot, moved, command == Command::Read);
        self.outbox.push_header(&encode_request(command, cookie, op.offset, op.len));
        if command == Command::Write {
            // SAFETY: the buffer is left alone until the completion, and lives as long as the backend,
            // whose outbox this is (`Backend::queue`'s contract).
            unsafe { self.outbox.push_data(buffer, op.len as usize) };
        }
    }

    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        completions.append(&mut self.refused);
        if self.replies.under_way() == 0 {
            return Ok(());
        }
        if let Some(connection) = self.connection.take() {
            match self.exchange(&connection, until_ns, completions) {
                Ok(()) => self.connection = Some(connection),
                Err(error) => self.give_up(&error, completions),
            }
        }
        Ok(())
    }
}

impl Drop for Nbd {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.replies.under_way() == 0
            && self.outbox.is_empty()
        {
            self.source.give_back(connection);
        }
    }
}
