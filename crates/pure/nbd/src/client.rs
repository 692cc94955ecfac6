//! The client's side.
//!
//! What a client needs is small: one handshake, then requests and simple replies. Structured replies are not asked for:
//! a simple reply is 12 bytes shorter for a read, and a server may then not cut a read into chunks.

use thiserror::Error;
use virtbench_units::format_bytes;

use crate::protocol::{
    DEFAULT_MAX_PAYLOAD_BYTES, ErrorCode, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, GREETING, MAX_STRING_BYTES,
    OPTION, OPTION_REPLY, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC, Short, Wire, flag, info, opt, rep,
};

/// What a client finds wrong with a server.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ClientError {
    /// The server closed the connection.
    #[error("the server closed the connection {during}")]
    Closed { during: &'static str },
    /// The server does not speak this protocol.
    #[error("the server does not speak fixed-newstyle NBD: {0}")]
    Protocol(String),
    /// The server has no such export.
    #[error("the server has no export named {name:?}{said}: `nbdinfo` lists what it has")]
    NoExport {
        /// The name asked for.
        name: String,
        /// What the server said, in brackets.
        said: String,
    },
    /// The server refuses.
    #[error("the server refuses ({reason}){said}")]
    Refused {
        /// The protocol's name of the reason.
        reason: String,
        /// What the server said, in brackets.
        said: String,
    },
    /// More bytes than the protocol or common sense allows.
    #[error("the server announces {what} of {}, more than the {} allowed", format_bytes(*bytes), format_bytes(*most))]
    TooLong {
        what: &'static str,
        /// How many bytes.
        bytes: u64,
        /// The limit, in bytes.
        most: u64,
    },
}

impl From<Short> for ClientError {
    fn from(short: Short) -> Self {
        Self::Protocol(short.to_string())
    }
}

const OLD_STYLE: u64 = 0x0000_4202_8186_1253;

/// The longest option reply that is read, in bytes: an information item or a message.
const MAX_OPTION_REPLY_BYTES: u32 = 8192;

/// Information items accepted before the server must come to an end.
const MAX_OPTION_REPLIES: u32 = 64;

const OPTION_REPLY_HEADER_BYTES: usize = 20;

/// What the server said about the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// Requests must be multiples of this, in bytes.
    pub min_block_bytes: u32,
    /// The longest request, in bytes.
    pub max_payload_bytes: u32,
    flags: u16,
}

impl Export {
    fn new(size_bytes: u64, flags: u16) -> Result<Self, ClientError> {
        if flags & flag::HAS_FLAGS == 0 {
            return Err(ClientError::Protocol("the transmission flags say they are no flags".into()));
        }
        // Offsets are signed in every system that would have to seek there.
        if i64::try_from(size_bytes).is_err() {
            return Err(ClientError::TooLong { what: "an export", bytes: size_bytes, most: i64::MAX as u64 });
        }
        Ok(Self { size_bytes, min_block_bytes: 1, max_payload_bytes: DEFAULT_MAX_PAYLOAD_BYTES, flags })
    }

    /// Whether writes are refused.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.flags & flag::READ_ONLY != 0
    }

    /// Whether it can be flushed.
    #[must_use]
    pub fn can_flush(&self) -> bool {
        self.flags & flag::SEND_FLUSH != 0
    }

    /// Whether it can be trimmed.
    #[must_use]
    pub fn can_trim(&self) -> bool {
        self.flags & flag::SEND_TRIM != 0
    }

    /// Whether writes of several connections may be mixed: a flush on one then covers all.
    #[must_use]
    pub fn can_multi_conn(&self) -> bool {
        self.flags & flag::CAN_MULTI_CONN != 0
    }
}

/// What to do after a step.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send these bytes, if any, and go on with [`Handshake::wants`].
    Send(Vec<u8>),
    /// Requests may be sent.
    Done(Export),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    ReplyHeader,
    Reply { kind: u32, len: usize },
    OldExport { len: usize },
}

/// The client's side of the handshake: NBD_OPT_GO, or NBD_OPT_EXPORT_NAME with a server that does not
/// know that. Pure; ends after a bounded number of bounded steps whatever it is fed.
#[derive(Debug)]
pub struct Handshake {
    name: String,
    state: State,
    no_zeroes: bool,
    replies: u32,
    export: Option<Export>,
    block_bytes: Option<(u32, u32)>,
}

impl Handshake {
    /// For the export of this name.
    ///
    /// # Errors
    /// The name is longer than the protocol allows.
    pub fn new(name: &str) -> Result<Self, ClientError> {
        if name.len() > MAX_STRING_BYTES {
            let (bytes, most) = (name.len() as u64, MAX_STRING_BYTES as u64);
            return Err(ClientError::TooLong { what: "an export name", bytes, most });
        }
        Ok(Self {
            name: name.to_owned(),
            state: State::Greeting,
            no_zeroes: false,
            replies: 0,
            export: None,
            block_bytes: None,
        })
    }

    /// How many bytes of the server [`Handshake::take`] needs next.
    #[must_use]
    pub fn wants(&self) -> usize {
        match self.state {
            State::Greeting => 18,
            State::ReplyHeader => OPTION_REPLY_HEADER_BYTES,
            State::Reply { len, .. } | State::OldExport { len } => len,
        }
    }

    /// What it means when the server closes the connection now.
    #[must_use]
    pub fn closed(&self) -> ClientError {
        match self.state {
            // The old way to say that there is no such export.
            State::OldExport { .. } => ClientError::NoExport { name: self.name.clone(), said: String::new() },
            _ => ClientError::Closed { during: "during the handshake" },
        }
    }

    /// Takes exactly as many bytes as wanted.
    ///
    /// # Errors
    /// The server refuses, or speaks something else.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Progress, ClientError> {
        let mut wire = Wire(bytes);
        match self.state {
            State::Greeting => self.greeting(&mut wire).map(Progress::Send),
            State::ReplyHeader => self.reply_header(&mut wire),
            State::Reply { kind, .. } => self.reply(kind, &mut wire),
            State::OldExport { .. } => Export::new(wire.u64()?, wire.u16()?).map(Progress::Done),
        }
    }

    fn greeting(&mut self, wire: &mut Wire<'_>) -> Result<Vec<u8>, ClientError> {
        if wire.u64()? != GREETING {
            return Err(ClientError::Protocol("it greets with something else".into()));
        }
        match wire.u64()? {
            OPTION => {}
            OLD_STYLE => return Err(ClientError::Protocol("it speaks oldstyle, which died in 2011".into())),
            _ => return Err(ClientError::Protocol("its greeting goes on with something else".into())),
        }
        let flags = wire.u16()?;
        self.no_zeroes = flags & FLAG_NO_ZEROES != 0;
        let mut out = u32::from(flags & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES)).to_be_bytes().to_vec();
        if flags & FLAG_FIXED_NEWSTYLE == 0 {
            out.extend(self.ask_by_name());
            return Ok(out);
        }
        let mut data = length(self.name.len()).to_be_bytes().to_vec();
        data.extend(self.name.as_bytes());
        data.extend(1u16.to_be_bytes());
        data.extend(info::BLOCK_SIZE.to_be_bytes());
        out.extend(option(opt::GO, &data));
        self.state = State::ReplyHeader;
        Ok(out)
    }

    fn ask_by_name(&mut self) -> Vec<u8> {
        self.state = State::OldExport { len: if self.no_zeroes { 10 } else { 10 + 124 } };
        option(opt::EXPORT_NAME, self.name.as_bytes())
    }

    fn reply_header(&mut self, wire: &mut Wire<'_>) -> Result<Progress, ClientError> {
        let (magic, to, kind, len) = (wire.u64()?, wire.u32()?, wire.u32()?, wire.u32()?);
        if magic != OPTION_REPLY || to != opt::GO {
            return Err(ClientError::Protocol("its answer to NBD_OPT_GO is none".into()));
        }
        if len > MAX_OPTION_REPLY_BYTES {
            let (bytes, most) = (len.into(), MAX_OPTION_REPLY_BYTES.into());
            return Err(ClientError::TooLong { what: "an option reply", bytes, most });
        }
        self.replies += 1;
        if self.replies > MAX_OPTION_REPLIES {
            return Err(ClientError::Protocol("its answer to NBD_OPT_GO does not end".into()));
        }
        if len == 0 {
            return self.reply(kind, &mut Wire(&[]));
        }
        self.state = State::Reply { kind, len: len as usize };
        Ok(Progress::Send(Vec::new()))
    }

    fn reply(&mut self, kind: u32, wire: &mut Wire<'_>) -> Result<Progress, ClientError> {
        self.state = State::ReplyHeader;
        match kind {
            rep::ACK => self.finish(),
            rep::INFO => self.information(wire).map(|()| Progress::Send(Vec::new())),
            // NBD_REP_ERR_UNSUP: the server knows only the old way.
            rep::ERR_UNSUP => Ok(Progress::Send(self.ask_by_name())),
            kind if kind & rep::ERROR != 0 => Err(self.refusal(kind, wire.0)),
            kind => Err(ClientError::Protocol(format!("it answers NBD_OPT_GO with a reply of type {kind}"))),
        }
    }

    fn information(&mut self, wire: &mut Wire<'_>) -> Result<(), ClientError> {
        match wire.u16()? {
            info::EXPORT => self.export = Some(Export::new(wire.u64()?, wire.u16()?)?),
            info::BLOCK_SIZE => {
                let (least, _preferred, most) = (wire.u32()?, wire.u32()?, wire.u32()?);
                if !least.is_power_of_two() || least > 65536 || most < least {
                    return Err(ClientError::Protocol(format!(
                        "it allows requests of {least} to {most} bytes"
                    )));
                }
                self.block_bytes = Some((least, most));
            }
            // Names and descriptions.
            _ => {}
        }
        Ok(())
    }

    fn finish(&self) -> Result<Progress, ClientError> {
        let Some(mut export) = self.export else {
            return Err(ClientError::Protocol("it does not say how large the export is".into()));
        };
        if let Some((least, most)) = self.block_bytes {
            export.min_block_bytes = least;
            export.max_payload_bytes = most;
        }
        Ok(Progress::Done(export))
    }

    fn refusal(&self, reason: u32, message: &[u8]) -> ClientError {
        let message = &message[..message.len().min(MAX_STRING_BYTES)];
        let text: String = String::from_utf8_lossy(message).chars().filter(|c| !c.is_control()).collect();
        let said = if text.is_empty() { text } else { format!(" ({text})") };
        let reason = match reason {
            rep::ERR_UNKNOWN => return ClientError::NoExport { name: self.name.clone(), said },
            rep::ERR_POLICY => "its policy".to_owned(),
            rep::ERR_INVALID => "invalid request".to_owned(),
            rep::ERR_PLATFORM => "not on its platform".to_owned(),
            rep::ERR_TLS_REQD => "it wants TLS, which virtbench does not speak".to_owned(),
            rep::ERR_SHUTDOWN => "it is shutting down".to_owned(),
            rep::ERR_BLOCK_SIZE_REQD => "it wants block sizes to be observed".to_owned(),
            other => format!("error {}", other & !rep::ERROR),
        };
        ClientError::Refused { reason, said }
    }
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(length(data.len()).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A length that [`Handshake::new`] has bounded.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

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
#[path = "client_handshake_tests.rs"]
mod handshake_tests;

#[cfg(test)]
#[path = "client_reply_tests.rs"]
mod reply_tests;
