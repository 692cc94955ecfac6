//! An export that a load is applied to, and the connections to it.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use virtbench_nbd::Piece;
use virtbench_nbd::client::{ClientError, Export};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::{Connection, NbdAddress, NbdError};

/// An export. Connections are kept between loads: a server that serves one client and then ends, as
/// qemu-nbd does, must not lose its only one between opening the target and loading it.
#[derive(Debug)]
pub(crate) struct NbdSource {
    address: NbdAddress,
    export: Export,
    idle: Mutex<Vec<Connection>>,
}

impl NbdSource {
    /// Connects for the first time.
    pub(crate) fn open(address: NbdAddress) -> Result<Self, NbdError> {
        let connection = Connection::open(&address)?;
        Ok(Self { address, export: connection.export, idle: Mutex::new(vec![connection]) })
    }

    /// What the server said about the export.
    pub(crate) fn export(&self) -> &Export {
        &self.export
    }

    /// A connection of one's own: an idle one, or a new one.
    pub(crate) fn connect(&self) -> Result<Connection, NbdError> {
        let idle = std::iter::from_fn(|| self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop())
            .find(Connection::is_quiet);
        let connection = idle.map_or_else(|| Connection::open(&self.address), Ok)?;
        if connection.export != self.export {
            return Err(ClientError::Protocol(
                "the export is no longer what it was when the target was opened".into(),
            )
            .into());
        }
        Ok(connection)
    }

    /// Takes back a connection on which nothing is in flight.
    pub(crate) fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Checks what the load asks against what the server offers.
    pub(crate) fn check_fit(&self, spec: &LoadSpec) -> Result<(), String> {
        let block_bytes = spec.access.largest_block_bytes();
        if block_bytes > self.export.max_payload_bytes.into() {
            return Err(format!(
                "--bs {block_bytes}: the NBD server takes requests of {} at most",
                format_bytes(self.export.max_payload_bytes.into())
            ));
        }
        if spec.workers > 1 && spec.access.writes() && !self.export.can_multi_conn() {
            return Err(format!(
                "--workers {}: the NBD server does not promise that several connections see one another's \
                 writes (no multi-conn): use --workers 1 with a higher --outstanding",
                spec.workers
            ));
        }
        if spec.flushes() && !self.export.can_flush() {
            return Err("--flush-every: the NBD server offers no flushes; leave it out".into());
        }
        if spec.access.lines.iter().any(|line| line.trim_percent > 0.0) && !self.export.can_trim() {
            return Err("--trim: the NBD server offers no trims; leave it out".into());
        }
        Ok(())
    }
}

/// Pieces handed to the kernel at once.
const BATCH: usize = 64;

/// Bytes to be sent, in order. Memory is bounded by the number of slots.
#[derive(Debug, Default)]
pub(crate) struct Outbox(virtbench_nbd::Outbox<*const u8>);

impl Outbox {
    /// Whether everything has been sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets what was not sent.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a request's header.
    pub(crate) fn push_header(&mut self, header: &[u8]) {
        self.0.push_header(header);
    }

    /// Adds a write's data.
    ///
    /// # Safety
    /// `at` must stay readable for `len` bytes until the outbox is empty or cleared.
    pub(crate) unsafe fn push_data(&mut self, at: *const u8, len: usize) {
        self.0.push_data(at, len);
    }

    /// Sends as much as the socket takes without waiting.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        while !self.0.is_empty() {
            let mut slices = [IoSlice::new(&[]); BATCH];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(self.0.pieces()) {
                *slice = IoSlice::new(match piece {
                    Piece::Header(bytes) => bytes,
                    // SAFETY: `push_data`'s caller keeps it readable while the piece is here, from its beginning
                    // to `at + len`.
                    Piece::Data { of, at, len } => unsafe { std::slice::from_raw_parts(of.add(at), len) },
                });
                count += 1;
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = sendmsg(socket, &slices[..count], &mut SendAncillaryBuffer::default(), flags);
            match sent {
                Ok(sent) => self.0.sent(sent),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn everything_arrives_in_order_through_a_full_socket() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let data: Vec<u8> = (0..1_000_000u32).map(|n| n.to_le_bytes()[1]).collect();
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for n in 0..200u8 {
            outbox.push_header(&[n; 28]);
            expected.extend([n; 28]);
            if n % 3 == 0 {
                let part = &data[usize::from(n) * 1000..][..40_000];
                // SAFETY: `data` outlives the outbox.
                unsafe { outbox.push_data(part.as_ptr(), part.len()) };
                expected.extend(part);
            }
        }
        let mut received: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 10_000];
        while received.len() < expected.len() {
            outbox.send(ours.as_fd()).unwrap();
            let count = theirs.read(&mut buffer).unwrap();
            received.extend(&buffer[..count]);
        }
        assert!(outbox.is_empty());
        assert!(received == expected);
    }

    #[test]
    fn a_closed_socket_is_an_error_and_no_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut outbox = Outbox::default();
        outbox.push_header(&[0; 28]);
        assert_eq!(outbox.send(ours.as_fd()), Err(Errno::PIPE));
    }
}
