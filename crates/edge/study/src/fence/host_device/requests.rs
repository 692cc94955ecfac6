//! Requests to the export, many at once over one connection, each answered when its reply comes.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use virtbench_engine::nbd::{Connection, NbdAddress, NbdError};
use virtbench_nbd::client::{Event, ReplyStream};
use virtbench_nbd::{Command, encode_request};

use super::waiting::Waiting;

/// Requests in flight at most.
pub(super) const SLOTS: u32 = 256;
/// Received at once, in bytes.
const STAGING_BYTES: usize = 128 << 10;

/// What waits for replies.
struct UnderWay {
    replies: ReplyStream,
    /// Who waits, and what was read for it.
    waiting: Vec<Option<(Waiting, Vec<u8>)>>,
    free: Vec<u32>,
    is_broken: bool,
}

struct Shared {
    connection: Connection,
    under_way: Mutex<UnderWay>,
    /// Nothing is sent between a request's header and its data.
    sending: Mutex<()>,
    is_over: AtomicBool,
}

/// A connection to an export. Dropping it ends the thread that receives, and fails what is in flight.
pub(super) struct Requests {
    shared: Arc<Shared>,
}

impl Requests {
    /// Connects.
    pub(super) fn open(address: &NbdAddress) -> Result<Self, NbdError> {
        let under_way = UnderWay {
            replies: ReplyStream::new(SLOTS),
            waiting: (0..SLOTS).map(|_| None).collect(),
            free: (0..SLOTS).collect(),
            is_broken: false,
        };
        let shared = Arc::new(Shared {
            connection: Connection::open(address)?,
            under_way: Mutex::new(under_way),
            sending: Mutex::new(()),
            is_over: AtomicBool::new(false),
        });
        let received = Arc::clone(&shared);
        thread::Builder::new().name("fuse-nbd".into()).spawn(move || {
            received.receive();
            received.give_up();
        })?;
        Ok(Self { shared })
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.shared.connection.export.size_bytes
    }

    pub(super) fn can_flush(&self) -> bool {
        self.shared.connection.export.can_flush()
    }

    /// Sends a request; `waiting` is answered when its reply comes, or at once if it cannot be sent.
    pub(super) fn submit(&self, command: Command, offset: u64, len: u32, data: &[u8], waiting: Waiting) {
        let reads = command == Command::Read;
        let mut under_way = self.shared.lock();
        let Some(slot) = under_way.free.pop().filter(|_| !under_way.is_broken) else {
            return waiting.answer(&[], Err(Errno::IO.raw_os_error()));
        };
        let cookie = under_way.replies.expect(slot, len, reads);
        let room = if reads { vec![0; len as usize] } else { Vec::new() };
        under_way.waiting[slot as usize] = Some((waiting, room));
        drop(under_way);
        let header = encode_request(command, cookie, offset, len);
        let whole = self.shared.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.shared.send(&header).and_then(|()| self.shared.send(data));
        drop(whole);
        if sent.is_err() {
            self.shared.give_up();
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let _ = shutdown(&self.shared.connection, Shutdown::Both);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends all; the socket has a limit of its own for a server that takes nothing.
    fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(self.connection.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes replies until the connection ends.
    fn receive(&self) {
        let mut staging = vec![0; STAGING_BYTES];
        while !self.is_over.load(Ordering::Relaxed) {
            let count = match recv(self.connection.as_fd(), &mut staging[..], RecvFlags::empty()) {
                Ok((0, _)) => return,
                Ok((count, _)) => count,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                Err(_) => return,
            };
            let mut under_way = self.lock();
            let UnderWay { replies, waiting, free, .. } = &mut *under_way;
            let fed = replies.feed(&staging[..count], &mut |event| match event {
                Event::Data { slot, at, bytes } => {
                    if let Some((_, room)) = &mut waiting[slot as usize] {
                        room[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                }
                Event::Done { slot, result } => {
                    free.push(slot);
                    if let Some((waiting, data)) = waiting[slot as usize].take() {
                        waiting.answer(&data, u32::try_from(result).map_err(|_| -result));
                    }
                }
            });
            if fed.is_err() {
                return;
            }
        }
    }

    /// Fails what is in flight, and what comes after it.
    fn give_up(&self) {
        let mut under_way = self.lock();
        under_way.is_broken = true;
        let waiting: Vec<_> = under_way.waiting.iter_mut().filter_map(Option::take).collect();
        drop(under_way);
        for (waiting, _) in waiting {
            waiting.answer(&[], Err(Errno::IO.raw_os_error()));
        }
    }
}
