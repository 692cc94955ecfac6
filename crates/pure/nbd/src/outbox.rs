//! Bytes on their way to the other side, in order, with payload that stays where it is.

use std::collections::VecDeque;

/// Bytes of headers kept before those already sent are thrown out, for a socket that is never empty.
const COMPACT_BYTES: usize = 256 << 10;

/// A piece of what is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a, D> {
    /// These bytes.
    Header(&'a [u8]),
    /// Payload.
    Data {
        /// What the caller named the payload by.
        of: D,
        /// Where in it the rest begins, in bytes.
        at: usize,
        /// How much is left, in bytes.
        len: usize,
    },
}

#[derive(Debug)]
enum Queued<D> {
    Headers { from: usize, to: usize },
    Data { of: D, at: usize, len: usize },
}

/// Bytes to be sent, in order. `D` names payload. Holds what was pushed and not sent, and at most as much again.
#[derive(Debug)]
pub struct Outbox<D> {
    headers: Vec<u8>,
    pieces: VecDeque<Queued<D>>,
}

impl<D> Default for Outbox<D> {
    fn default() -> Self {
        Self { headers: Vec::new(), pieces: VecDeque::new() }
    }
}

impl<D: Copy> Outbox<D> {
    /// Whether everything has been sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Forgets what was not sent.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.headers.clear();
    }

    /// Adds bytes. Those that follow one another become one piece.
    pub fn push_header(&mut self, header: &[u8]) {
        if self.headers.len() > COMPACT_BYTES {
            self.compact();
        }
        let from = self.headers.len();
        self.headers.extend_from_slice(header);
        let to = self.headers.len();
        match self.pieces.back_mut() {
            Some(Queued::Headers { to: end, .. }) => *end = to,
            _ if from == to => {}
            _ => self.pieces.push_back(Queued::Headers { from, to }),
        }
    }

    #[cold]
    fn compact(&mut self) {
        let unsent = self.pieces.iter().find_map(|piece| match piece {
            Queued::Headers { from, .. } => Some(*from),
            Queued::Data { .. } => None,
        });
        let gone = unsent.unwrap_or(self.headers.len());
        self.headers.drain(..gone);
        for piece in &mut self.pieces {
            if let Queued::Headers { from, to } = piece {
                (*from, *to) = (*from - gone, *to - gone);
            }
        }
    }

    /// Adds the first `len` bytes of a payload.
    pub fn push_data(&mut self, of: D, len: usize) {
        if len > 0 {
            self.pieces.push_back(Queued::Data { of, at: 0, len });
        }
    }

    /// What is to be sent next.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_, D>> {
        self.pieces.iter().map(|piece| match *piece {
            Queued::Headers { from, to } => Piece::Header(&self.headers[from..to]),
            Queued::Data { of, at, len } => Piece::Data { of, at, len },
        })
    }

    /// Drops the first `count` bytes.
    pub fn sent(&mut self, mut count: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let (at, left) = match piece {
                Queued::Headers { from, to } => {
                    let left = *to - *from;
                    (from, left)
                }
                Queued::Data { at, len, .. } => {
                    let left = *len;
                    *len = left.saturating_sub(count);
                    (at, left)
                }
            };
            if count < left {
                *at += count;
                return;
            }
            count -= left;
            self.pieces.pop_front();
        }
        self.headers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_stays_bounded_when_the_socket_never_empties() {
        let mut outbox = Outbox::<()>::default();
        let mut sent = 0;
        for n in 0..100_000u32 {
            outbox.push_header(&[n.to_le_bytes(); 7].concat());
            outbox.sent(if n == 0 { 0 } else { 28 });
            sent += u32::from(n > 0);
            assert!(outbox.headers.len() < 2 * COMPACT_BYTES);
        }
        let left: Vec<_> = outbox.pieces().collect();
        assert_eq!(left, [Piece::Header(&[sent.to_le_bytes(); 7].concat())]);
    }

    proptest! {
        #[test]
        fn everything_leaves_once_and_in_order(
            pushed in prop::collection::vec((0usize..40, any::<bool>()), 0..30),
            steps in prop::collection::vec(1usize..100, 1..40),
        ) {
            let payload: Vec<u8> = (0..200).collect();
            let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
            for (n, (len, data)) in (0u8..).zip(&pushed) {
                if *data {
                    outbox.push_data(usize::from(n), *len);
                    expected.extend(&payload[usize::from(n)..][..*len]);
                } else {
                    outbox.push_header(&vec![n; *len]);
                    expected.extend(vec![n; *len]);
                }
            }
            let mut received = Vec::new();
            for step in steps.iter().cycle() {
                let now: Vec<u8> = outbox.pieces().flat_map(|piece| match piece {
                    Piece::Header(bytes) => bytes.to_vec(),
                    Piece::Data { of, at, len } => payload[of + at..][..len].to_vec(),
                }).take(*step).collect();
                if now.is_empty() {
                    break;
                }
                outbox.sent(now.len());
                received.extend(now);
            }
            prop_assert!(outbox.is_empty());
            prop_assert_eq!(received, expected);
        }
    }
}
