//! The options of the negotiation, each with its answer.

use super::export::{Limits, Tls};
use super::{Export, ServerConfig, Violation};
use crate::Outbox;
use crate::protocol::{
    ErrorCode, MAX_STRING_BYTES, OPTION_REPLY, SIMPLE_REPLY_BYTES, SIMPLE_REPLY_MAGIC, Short, Wire, info,
    opt, rep,
};

/// The one metadata context there is.
const ALLOCATION: &[u8] = b"base:allocation";

/// What a context is called in replies to NBD_CMD_BLOCK_STATUS.
pub(super) const ALLOCATION_ID: u32 = 1;

/// What comes of an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Replied,
    StartTls,
    Chosen(Chosen),
    Goodbye,
}

/// A refusal: the reply's type, and words for the reader of the client's messages.
type Refusal = (u32, &'static str);

const MALFORMED: Refusal = (rep::ERR_INVALID, "the option is not laid out as the protocol says");

const UNKNOWN: Refusal = (rep::ERR_UNKNOWN, "there is no export of this name");

fn malformed(_: Short) -> Refusal {
    MALFORMED
}

/// What has been agreed on so far.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) no_zeroes: bool,
    limits: Limits,
    tls: Tls,
    secured: bool,
    structured: bool,
    /// The export for which `base:allocation` was agreed on.
    allocation: Option<usize>,
    shutting_down: bool,
}

impl Options {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            no_zeroes: false,
            limits: config.limits,
            tls: config.tls,
            secured: false,
            structured: false,
            allocation: None,
            shutting_down: false,
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// The answer to an option whose data was not read.
    pub(super) fn too_big(option: u32, outbox: &mut Outbox<u32>) {
        reply(outbox, option, rep::ERR_TOO_BIG, &[b"the option is longer than 16 KiB"]);
    }

    /// Answers an option.
    pub(super) fn answer(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &[Export],
        outbox: &mut Outbox<u32>,
    ) -> Result<Answer, Violation> {
        if option == opt::EXPORT_NAME {
            return self.export_name(data, exports, outbox);
        }
        let answer = self.allowed(option).and_then(|()| match option {
            opt::ABORT => {
                reply(outbox, option, rep::ACK, &[]);
                Ok(Answer::Goodbye)
            }
            opt::LIST => list(data, exports, outbox),
            opt::STARTTLS => self.start_tls(data, outbox),
            opt::INFO | opt::GO => self.go(option, data, exports, outbox),
            opt::STRUCTURED_REPLY => self.structured_reply(data, outbox),
            opt::LIST_META_CONTEXT | opt::SET_META_CONTEXT => self.contexts(option, data, exports, outbox),
            _ => Err((rep::ERR_UNSUP, "this server does not know the option")),
        });
        Ok(answer.unwrap_or_else(|(kind, words)| {
            reply(outbox, option, kind, &[words.as_bytes()]);
            Answer::Replied
        }))
    }

    fn allowed(&self, option: u32) -> Result<(), Refusal> {
        let needs_tls = !matches!(option, opt::ABORT | opt::STARTTLS);
        if self.shutting_down && option != opt::ABORT {
            return Err((rep::ERR_SHUTDOWN, "the server is going down"));
        }
        if self.tls == Tls::Required && !self.secured && needs_tls {
            return Err((rep::ERR_TLS_REQD, "this server wants TLS"));
        }
        Ok(())
    }

    fn export_name(
        &self,
        name: &[u8],
        exports: &[Export],
        outbox: &mut Outbox<u32>,
    ) -> Result<Answer, Violation> {
        self.allowed(opt::EXPORT_NAME).map_err(|_| Violation::NoExport)?;
        let export = find(name, exports).map_err(|_| Violation::NoExport)?;
        outbox.push_header(&exports[export].size_bytes.to_be_bytes());
        outbox.push_header(&exports[export].flags(self.structured).to_be_bytes());
        if !self.no_zeroes {
            outbox.push_header(&[0; 124]);
        }
        Ok(self.chosen(export))
    }

    fn chosen(&self, export: usize) -> Answer {
        // Contexts hold for the export for which they were set, and for no other.
        let allocation = self.structured && self.allocation == Some(export);
        Answer::Chosen(Chosen { export, structured: self.structured, allocation })
    }

    fn start_tls(&mut self, data: &[u8], outbox: &mut Outbox<u32>) -> Result<Answer, Refusal> {
        if !data.is_empty() {
            return Err(MALFORMED);
        }
        match (self.tls, self.secured) {
            (_, true) => return Err((rep::ERR_INVALID, "TLS is spoken already")),
            (Tls::Off, _) => return Err((rep::ERR_POLICY, "this server is not configured for TLS")),
            (Tls::Offered | Tls::Required, false) => {}
        }
        reply(outbox, opt::STARTTLS, rep::ACK, &[]);
        // What was agreed on in the open does not count.
        (self.secured, self.structured, self.allocation) = (true, false, None);
        Ok(Answer::StartTls)
    }

    fn structured_reply(&mut self, data: &[u8], outbox: &mut Outbox<u32>) -> Result<Answer, Refusal> {
        if !data.is_empty() {
            return Err(MALFORMED);
        }
        self.structured = true;
        reply(outbox, opt::STRUCTURED_REPLY, rep::ACK, &[]);
        Ok(Answer::Replied)
    }

    fn go(
        &self,
        option: u32,
        data: &[u8],
        exports: &[Export],
        outbox: &mut Outbox<u32>,
    ) -> Result<Answer, Refusal> {
        let mut wire = Wire(data);
        let name = wire.string().map_err(malformed)?;
        let count = wire.u16().map_err(malformed)?;
        let wanted = wire.bytes(2 * usize::from(count)).map_err(malformed)?;
        if !wire.0.is_empty() {
            return Err(MALFORMED);
        }
        let wants = |kind: u16| wanted.chunks_exact(2).any(|asked| asked == kind.to_be_bytes());
        let place = find(name, exports)?;
        let export = &exports[place];
        let [size, flags] =
            [&export.size_bytes.to_be_bytes()[..], &export.flags(self.structured).to_be_bytes()];
        reply(outbox, option, rep::INFO, &[&info::EXPORT.to_be_bytes(), size, flags]);
        if wants(info::NAME) {
            reply(outbox, option, rep::INFO, &[&info::NAME.to_be_bytes(), export.name.as_bytes()]);
        }
        if wants(info::BLOCK_SIZE) {
            let sizes = [export.min_block_bytes, export.preferred_block_bytes, self.limits.max_payload_bytes];
            let sizes = sizes.map(u32::to_be_bytes);
            reply(outbox, option, rep::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), sizes.as_flattened()]);
        }
        reply(outbox, option, rep::ACK, &[]);
        Ok(if option == opt::GO { self.chosen(place) } else { Answer::Replied })
    }

    fn contexts(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &[Export],
        outbox: &mut Outbox<u32>,
    ) -> Result<Answer, Refusal> {
        let sets = option == opt::SET_META_CONTEXT;
        if sets {
            self.allocation = None;
        }
        let mut wire = Wire(data);
        let name = wire.string().map_err(malformed)?;
        let count = wire.u32().map_err(malformed)?;
        let mut asked = count == 0 && !sets;
        for _ in 0..count {
            let query = wire.string().map_err(malformed)?;
            asked |= query == ALLOCATION || (!sets && query == b"base:");
        }
        if !wire.0.is_empty() {
            return Err(MALFORMED);
        }
        if !self.structured {
            return Err((rep::ERR_INVALID, "contexts need structured replies"));
        }
        let export = find(name, exports)?;
        if asked {
            let id = if sets { ALLOCATION_ID } else { 0 };
            reply(outbox, option, rep::META_CONTEXT, &[&id.to_be_bytes(), ALLOCATION]);
        }
        if sets && asked {
            self.allocation = Some(export);
        }
        reply(outbox, option, rep::ACK, &[]);
        Ok(Answer::Replied)
    }
}

fn list(data: &[u8], exports: &[Export], outbox: &mut Outbox<u32>) -> Result<Answer, Refusal> {
    if !data.is_empty() {
        return Err(MALFORMED);
    }
    for export in exports.iter().filter(|export| !export.is_withdrawn) {
        let name = export.name.as_bytes();
        reply(outbox, opt::LIST, rep::SERVER, &[&length(name.len()), name]);
    }
    reply(outbox, opt::LIST, rep::ACK, &[]);
    Ok(Answer::Replied)
}

fn find(name: &[u8], exports: &[Export]) -> Result<usize, Refusal> {
    if name.len() > MAX_STRING_BYTES {
        return Err((rep::ERR_TOO_BIG, "the export's name is longer than 4096 bytes"));
    }
    let is_it = |export: &Export| !export.is_withdrawn && export.name.as_bytes() == name;
    exports.iter().position(is_it).ok_or(UNKNOWN)
}

fn reply(outbox: &mut Outbox<u32>, option: u32, kind: u32, parts: &[&[u8]]) {
    outbox.push_header(&OPTION_REPLY.to_be_bytes());
    outbox.push_header(&option.to_be_bytes());
    outbox.push_header(&kind.to_be_bytes());
    outbox.push_header(&length(parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        outbox.push_header(part);
    }
}

/// The length of a name or of a few numbers.
fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

/// What a client has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The export's place in the list.
    pub export: usize,
    /// Reads are answered by structured replies.
    pub structured: bool,
    /// NBD_CMD_BLOCK_STATUS may be asked.
    pub allocation: bool,
}

/// Begins every chunk of a structured reply.
const STRUCTURED_MAGIC: u32 = 0x668e_33ef;

/// The longest header of a reply, in bytes.
const MAX_BYTES: usize = 32;

/// This chunk is the last.
const DONE: u16 = 1;

const OFFSET_DATA: u16 = 1;

const BLOCK_STATUS: u16 = 5;

const ERROR: u16 = (1 << 15) + 1;

/// A reply but for the data that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    bytes: [u8; MAX_BYTES],
    len: usize,
}

impl Head {
    fn empty() -> Self {
        Self { bytes: [0; MAX_BYTES], len: 0 }
    }

    fn with<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        self.bytes[self.len..self.len + N].copy_from_slice(&bytes);
        self.len += N;
        self
    }

    fn chunk(kind: u16, cookie: u64, len: u32) -> Self {
        Self::empty()
            .with(STRUCTURED_MAGIC.to_be_bytes())
            .with(DONE.to_be_bytes())
            .with(kind.to_be_bytes())
            .with(cookie.to_be_bytes())
            .with(len.to_be_bytes())
    }

    /// A simple reply; the data of a read follows it.
    pub(super) fn simple(cookie: u64, error: Option<ErrorCode>) -> Self {
        let head = Self::empty()
            .with(SIMPLE_REPLY_MAGIC.to_be_bytes())
            .with(error.map_or(0, ErrorCode::number).to_be_bytes())
            .with(cookie.to_be_bytes());
        debug_assert_eq!(head.len, SIMPLE_REPLY_BYTES);
        head
    }

    /// A structured reply that `len_bytes` of data follow, at most 32 MiB.
    pub(super) fn data(cookie: u64, offset_bytes: u64, len_bytes: u32) -> Self {
        Self::chunk(OFFSET_DATA, cookie, len_bytes.saturating_add(8)).with(offset_bytes.to_be_bytes())
    }

    /// A structured reply that says that something failed.
    pub(super) fn error(cookie: u64, code: ErrorCode) -> Self {
        Self::chunk(ERROR, cookie, 6).with(code.number().to_be_bytes()).with([0; 2])
    }

    /// A structured reply that says that the whole range holds data.
    pub(super) fn all_data(cookie: u64, len_bytes: u32) -> Self {
        Self::chunk(BLOCK_STATUS, cookie, 12)
            .with(ALLOCATION_ID.to_be_bytes())
            .with(len_bytes.to_be_bytes())
            .with([0; 4])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
