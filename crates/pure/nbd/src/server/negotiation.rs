//! The negotiation: cuts a client's bytes into options, within bounds.

use super::options::{Answer, Chosen, Options};
use super::{Export, ServerConfig, Violation};
use crate::Outbox;
use crate::protocol::{FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, GREETING, OPTION, Short, Wire, opt};

/// The longest option that is read, in bytes: a name and some hundred questions. Of a longer one the client is told so,
/// and its bytes are thrown away as they come.
const MAX_OPTION_BYTES: u32 = 16 << 10;
/// Options a client may send.
const MAX_OPTIONS: u32 = 64;
const OPTION_HEADER_BYTES: usize = 16;

/// Where the negotiation stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More bytes are needed.
    Hungry,
    /// Something was answered.
    Answered,
    /// TLS begins.
    StartTls,
    /// The transmission begins.
    Chosen(Chosen),
    /// The client has said goodbye.
    Goodbye,
}

#[derive(Debug, Clone, Copy)]
enum State {
    ClientFlags,
    Option,
    Data { option: u32, len: usize },
    Skip { option: u32, left: u32 },
}

/// The server's side of the negotiation.
#[derive(Debug)]
pub(super) struct Negotiation {
    state: State,
    held: Vec<u8>,
    count: u32,
    fixed: bool,
    options: Options,
}

impl Negotiation {
    /// Greets.
    pub(super) fn new(config: &ServerConfig, outbox: &mut Outbox<u32>) -> Self {
        outbox.push_header(&GREETING.to_be_bytes());
        outbox.push_header(&OPTION.to_be_bytes());
        outbox.push_header(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
        Self {
            state: State::ClientFlags,
            held: Vec::new(),
            count: 0,
            fixed: false,
            options: Options::new(config),
        }
    }

    /// From now on options are answered by NBD_REP_ERR_SHUTDOWN.
    pub(super) fn shut_down(&mut self) {
        self.options.shut_down();
    }

    /// Takes bytes up to the end of an option, if there are so many.
    pub(super) fn step(
        &mut self,
        exports: &[Export],
        input: &mut &[u8],
        outbox: &mut Outbox<u32>,
    ) -> Result<Progress, Violation> {
        let wanted = match self.state {
            State::ClientFlags => 4,
            State::Option => OPTION_HEADER_BYTES,
            State::Data { len, .. } => len,
            State::Skip { option, left } => return Ok(self.skip(option, left, input, outbox)),
        };
        let (part, rest) = input.split_at((wanted - self.held.len()).min(input.len()));
        *input = rest;
        self.held.extend_from_slice(part);
        if self.held.len() < wanted {
            return Ok(Progress::Hungry);
        }
        let held = std::mem::take(&mut self.held);
        let step = self.whole(&held, exports, outbox);
        self.held = held;
        self.held.clear();
        step
    }

    /// As many bytes as the state wanted are there.
    fn whole(
        &mut self,
        bytes: &[u8],
        exports: &[Export],
        outbox: &mut Outbox<u32>,
    ) -> Result<Progress, Violation> {
        let ended = |_: Short| Violation::Protocol("an option ends too soon");
        let mut wire = Wire(bytes);
        match self.state {
            State::ClientFlags => {
                self.client_flags(wire.u32().map_err(ended)?)?;
                Ok(Progress::Answered)
            }
            State::Option => {
                let (magic, option, len) =
                    (wire.u64().map_err(ended)?, wire.u32().map_err(ended)?, wire.u32().map_err(ended)?);
                self.option(magic, option, len)?;
                match self.state {
                    State::Data { option, len: 0 } => self.answer(option, &[], exports, outbox),
                    _ => Ok(Progress::Answered),
                }
            }
            State::Data { option, .. } => self.answer(option, bytes, exports, outbox),
            State::Skip { .. } => Ok(Progress::Hungry),
        }
    }

    fn client_flags(&mut self, flags: u32) -> Result<(), Violation> {
        if flags & !u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES) != 0 {
            return Err(Violation::Protocol("it sets flags that do not exist"));
        }
        self.fixed = flags & u32::from(FLAG_FIXED_NEWSTYLE) != 0;
        self.options.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
        self.state = State::Option;
        Ok(())
    }

    fn option(&mut self, magic: u64, option: u32, len: u32) -> Result<(), Violation> {
        if magic != OPTION {
            return Err(Violation::Protocol("an option does not begin as one"));
        }
        if !self.fixed && option != opt::EXPORT_NAME {
            return Err(Violation::Protocol("it is not fixed, and asks for more than an export"));
        }
        self.count += 1;
        if self.count > MAX_OPTIONS {
            return Err(Violation::TooManyOptions(MAX_OPTIONS));
        }
        self.state = if len > MAX_OPTION_BYTES {
            // It has no reply by which it could be refused.
            if option == opt::EXPORT_NAME {
                return Err(Violation::NoExport);
            }
            State::Skip { option, left: len }
        } else {
            State::Data { option, len: len as usize }
        };
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation)] // no more than `left`
    fn skip(&mut self, option: u32, left: u32, input: &mut &[u8], outbox: &mut Outbox<u32>) -> Progress {
        let gone = input.len().min(left as usize);
        *input = &input[gone..];
        let left = left - gone as u32;
        if left > 0 {
            self.state = State::Skip { option, left };
            return Progress::Hungry;
        }
        Options::too_big(option, outbox);
        self.state = State::Option;
        Progress::Answered
    }

    fn answer(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &[Export],
        outbox: &mut Outbox<u32>,
    ) -> Result<Progress, Violation> {
        self.state = State::Option;
        Ok(match self.options.answer(option, data, exports, outbox)? {
            Answer::Replied => Progress::Answered,
            Answer::StartTls => Progress::StartTls,
            Answer::Chosen(chosen) => Progress::Chosen(chosen),
            Answer::Goodbye => Progress::Goodbye,
        })
    }
}
