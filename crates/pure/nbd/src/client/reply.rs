//! The stream of replies: which operation each belongs to, and where its data goes.

use super::ClientError;
use crate::protocol::{ErrorCode, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC};
use crate::wire::Wire;

/// What a server's bytes mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// These bytes of the data that this slot reads, `at` bytes from its beginning.
    Data {
        /// The slot that reads.
        slot: u32,
        /// Offset within the slot's buffer, in bytes.
        at: usize,
        /// The data; never reaches beyond the length asked for.
        bytes: &'a [u8],
    },
    /// The operation of this slot is over.
    Done {
        /// The slot, free from now on.
        slot: u32,
        /// Bytes moved, or a negated error number.
        result: i32,
    },
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Expected {
    cookie: u64,
    len: u32,
    payload: bool,
}

/// Data being received.
#[derive(Debug, Clone, Copy)]
struct Payload {
    slot: u32,
    len: usize,
    received: usize,
}

/// Cuts a server's bytes into replies. Pure; each byte is looked at once, and only replies to requests
/// in flight are accepted.
#[derive(Debug)]
pub struct ReplyStream {
    expected: Vec<Option<Expected>>,
    under_way: usize,
    sequence: u32,
    header: [u8; SIMPLE_REPLY_BYTES],
    header_len: usize,
    payload: Option<Payload>,
}

impl ReplyStream {
    /// For requests in slots 0 to `slots` - 1.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        Self {
            expected: vec![None; slots as usize],
            under_way: 0,
            sequence: 0,
            header: [0; SIMPLE_REPLY_BYTES],
            header_len: 0,
            payload: None,
        }
    }

    /// Notes a request in `slot` that moves `len` bytes (none for trim and flush), which its reply
    /// carries if `payload`. Returns its cookie, which names the slot and is not used again within 2^32
    /// requests.
    pub fn expect(&mut self, slot: u32, len: u32, payload: bool) -> u64 {
        self.sequence = self.sequence.wrapping_add(1);
        let cookie = u64::from(self.sequence) << 32 | u64::from(slot);
        if let Some(entry) = self.expected.get_mut(slot as usize) {
            self.under_way += usize::from(entry.is_none());
            *entry = Some(Expected { cookie, len, payload });
        }
        cookie
    }

    /// How many requests are in flight.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Gives up everything in flight: the slots, which the server may still know.
    pub fn abandon(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.under_way = 0;
        self.payload = None;
        (0u32..).zip(&mut self.expected).filter_map(|(slot, entry)| entry.take().map(|_| slot))
    }

    /// Where the next bytes belong if they are data: slot, offset in its buffer, how many.
    #[must_use]
    pub fn wanted(&self) -> Option<(u32, usize, usize)> {
        self.payload.map(|payload| (payload.slot, payload.received, payload.len - payload.received))
    }

    /// Notes that `count` bytes, at most as many as [`ReplyStream::wanted`] said, were put there directly.
    pub fn received(&mut self, count: usize, on_event: &mut impl FnMut(Event<'_>)) {
        if let Some(payload) = &mut self.payload {
            payload.received = payload.len.min(payload.received + count);
            if payload.received == payload.len {
                let slot = payload.slot;
                self.payload = None;
                self.done(slot, 0, on_event);
            }
        }
    }

    /// Takes bytes as they came, and says what they mean.
    ///
    /// # Errors
    /// The bytes are no reply to any request in flight. The stream cannot be used further.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        on_event: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ClientError> {
        while !bytes.is_empty() {
            if let Some((slot, at, left)) = self.wanted() {
                let (data, rest) = bytes.split_at(left.min(bytes.len()));
                on_event(Event::Data { slot, at, bytes: data });
                self.received(data.len(), on_event);
                bytes = rest;
                continue;
            }
            let (part, rest) = bytes.split_at((SIMPLE_REPLY_BYTES - self.header_len).min(bytes.len()));
            self.header[self.header_len..self.header_len + part.len()].copy_from_slice(part);
            self.header_len += part.len();
            bytes = rest;
            if self.header_len == SIMPLE_REPLY_BYTES {
                self.header_len = 0;
                self.begin(on_event)?;
            }
        }
        Ok(())
    }

    /// A whole header is there.
    #[allow(clippy::cast_possible_truncation)]
    fn begin(&mut self, on_event: &mut impl FnMut(Event<'_>)) -> Result<(), ClientError> {
        let mut wire = Wire(&self.header);
        let (magic, error, cookie) = (wire.u32()?, wire.u32()?, wire.u64()?);
        if magic != SIMPLE_REPLY_MAGIC {
            return Err(ClientError::Protocol(format!("a reply begins with {magic:#010x}")));
        }
        let slot = cookie as u32;
        let entry = self.expected.get(slot as usize).copied().flatten();
        let Some(expected) = entry.filter(|expected| expected.cookie == cookie) else {
            return Err(ClientError::Protocol(format!(
                "a reply to request {cookie:#x}, which is not in flight"
            )));
        };
        if error == 0 && expected.payload && expected.len > 0 {
            self.payload = Some(Payload { slot, len: expected.len as usize, received: 0 });
        } else {
            self.done(slot, error, on_event);
        }
        Ok(())
    }

    fn done(&mut self, slot: u32, error: u32, on_event: &mut impl FnMut(Event<'_>)) {
        if let Some(expected) = self.expected.get_mut(slot as usize).and_then(Option::take) {
            self.under_way -= 1;
            let moved = i32::try_from(expected.len).unwrap_or(i32::MAX);
            on_event(Event::Done {
                slot,
                result: ErrorCode::from_wire(error).map_or(moved, |code| -code.errno()),
            });
        }
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
