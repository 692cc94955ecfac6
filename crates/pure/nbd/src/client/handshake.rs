//! The handshake, from greeting to export, as a machine that is fed bytes.

use super::ClientError;
use crate::protocol::{
    DEFAULT_MAX_PAYLOAD_BYTES, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, GREETING, MAX_STRING_BYTES, OPTION,
    OPTION_REPLY, flag, info, opt, rep,
};
use crate::wire::Wire;

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

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
