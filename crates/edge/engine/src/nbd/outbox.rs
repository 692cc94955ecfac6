//! Requests on their way to the socket: several go out with one system call.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

/// Pieces handed to the kernel at once.
const BATCH: usize = 64;
/// Bytes of headers kept before those already sent are thrown out, for a socket that is never empty.
const COMPACT_BYTES: usize = 256 << 10;

/// A piece of what is to be sent.
#[derive(Debug)]
enum Piece {
    /// These bytes of the headers.
    Headers { from: usize, to: usize },
    /// A write's data, which stays where it is.
    Data { at: *const u8, len: usize },
}

/// Bytes to be sent, in order. Memory is bounded by the number of slots.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    headers: Vec<u8>,
    pieces: VecDeque<Piece>,
}

impl Outbox {
    /// Whether everything has been sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Forgets what was not sent.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.headers.clear();
    }

    /// Adds a request's header. Headers that follow one another become one piece.
    pub(crate) fn push_header(&mut self, header: &[u8]) {
        if self.headers.len() > COMPACT_BYTES {
            self.compact();
        }
        let from = self.headers.len();
        self.headers.extend_from_slice(header);
        let to = self.headers.len();
        match self.pieces.back_mut() {
            Some(Piece::Headers { to: end, .. }) => *end = to,
            _ => self.pieces.push_back(Piece::Headers { from, to }),
        }
    }

    #[cold]
    fn compact(&mut self) {
        let unsent = self.pieces.iter().find_map(|piece| match piece {
            Piece::Headers { from, .. } => Some(*from),
            Piece::Data { .. } => None,
        });
        let gone = unsent.unwrap_or(self.headers.len());
        self.headers.drain(..gone);
        for piece in &mut self.pieces {
            if let Piece::Headers { from, to } = piece {
                (*from, *to) = (*from - gone, *to - gone);
            }
        }
    }

    /// Adds a write's data.
    ///
    /// # Safety
    /// `at` must stay readable for `len` bytes until the outbox is empty or cleared.
    pub(crate) unsafe fn push_data(&mut self, at: *const u8, len: usize) {
        self.pieces.push_back(Piece::Data { at, len });
    }

    /// Sends as much as the socket takes without waiting.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        while !self.pieces.is_empty() {
            let headers = &self.headers;
            let mut slices = [IoSlice::new(&[]); BATCH];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(match *piece {
                    Piece::Headers { from, to } => &headers[from..to],
                    // SAFETY: `push_data`'s caller keeps it readable while the piece is here.
                    Piece::Data { at, len } => unsafe { std::slice::from_raw_parts(at, len) },
                });
                count += 1;
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = sendmsg(socket, &slices[..count], &mut SendAncillaryBuffer::default(), flags);
            match sent {
                Ok(sent) => self.sent(sent),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        self.headers.clear();
        Ok(())
    }

    /// Drops the first `count` bytes.
    fn sent(&mut self, mut count: usize) {
        while count > 0 {
            let Some(piece) = self.pieces.front_mut() else { return };
            let len = match piece {
                Piece::Headers { from, to } => *to - *from,
                Piece::Data { len, .. } => *len,
            };
            if count >= len {
                count -= len;
                self.pieces.pop_front();
                continue;
            }
            match piece {
                Piece::Headers { from, .. } => *from += count,
                Piece::Data { at, len } => {
                    // SAFETY: `count` is less than `len`, so the pointer stays within the data.
                    *at = unsafe { at.add(count) };
                    *len -= count;
                }
            }
            count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

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
    fn memory_stays_bounded_when_the_socket_never_empties() {
        let mut outbox = Outbox::default();
        let mut sent = 0;
        for n in 0..100_000u32 {
            outbox.push_header(&[n.to_le_bytes(); 7].concat());
            outbox.sent(if n == 0 { 0 } else { 28 });
            sent += u32::from(n > 0);
            assert!(outbox.headers.len() < 2 * COMPACT_BYTES);
        }
        let Some(Piece::Headers { from, to }) = outbox.pieces.front() else { panic!("nothing left") };
        assert_eq!(outbox.headers[*from..*to], [sent.to_le_bytes(); 7].concat());
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
