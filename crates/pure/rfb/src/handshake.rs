//! From the server's version to the size of the picture.

use des::Des;
use des::cipher::{Array, BlockCipherEncrypt, KeyInit};

use crate::protocol::{Limits, PIXEL_FORMAT, RfbError, SECURITY_NONE, SECURITY_VNC, Wire, clean};

/// What the server has said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Version,
    /// Version 3.3: the server decides.
    Decision,
    Count,
    Types(u8),
    Challenge,
    /// Whether a password was asked for.
    Result {
        password: bool,
    },
    ReasonLength {
        password: bool,
    },
    Reason {
        password: bool,
        bytes: usize,
    },
    Init,
    Name {
        width: u16,
        height: u16,
        bytes: usize,
    },
}

/// The beginning of a connection; wants exactly as many bytes as it says.
#[derive(Debug)]
pub(crate) struct Handshake {
    state: State,
    password: Option<String>,
    minor: u8,
    text_bytes: u32,
}

impl Handshake {
    pub(crate) fn new(password: Option<String>, limits: &Limits) -> Self {
        Self { state: State::Version, password, minor: 8, text_bytes: limits.text_bytes }
    }

    pub(crate) fn wants(&self) -> usize {
        match self.state {
            State::Version => 12,
            State::Decision | State::Result { .. } | State::ReasonLength { .. } => 4,
            State::Count => 1,
            State::Types(count) => count.into(),
            State::Challenge => 16,
            State::Init => 4 + PIXEL_FORMAT.len() + 4,
            State::Reason { bytes, .. } | State::Name { bytes, .. } => bytes,
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<Greeting>, RfbError> {
        let mut wire = Wire(bytes);
        match self.state {
            State::Version => self.version(bytes, out)?,
            State::Decision => match wire.u32()? {
                0 => self.state = State::ReasonLength { password: false },
                kind => {
                    let kind = u8::try_from(kind).unwrap_or(u8::MAX);
                    self.choose(&[kind], out)?;
                }
            },
            State::Count => match wire.u8()? {
                0 => self.state = State::ReasonLength { password: false },
                count => self.state = State::Types(count),
            },
            State::Types(_) => self.choose(bytes, out)?,
            State::Challenge => {
                let challenge = std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0));
                out.extend(answer(self.password.as_deref().ok_or(RfbError::NoPassword)?, challenge));
                self.state = State::Result { password: true };
            }
            State::Result { password } => self.result(wire.u32()?, password, out)?,
            State::ReasonLength { password } => {
                self.state = State::Reason { password, bytes: self.text("a reason", wire.u32()?)? };
            }
            State::Reason { password: true, .. } => return Err(RfbError::Password { reason: clean(bytes) }),
            State::Reason { .. } => return Err(RfbError::Refused { reason: clean(bytes) }),
            State::Init => {
                let (width, height) = (wire.u16()?, wire.u16()?);
                wire.bytes(PIXEL_FORMAT.len())?;
                self.state = State::Name { width, height, bytes: self.text("a name", wire.u32()?)? };
            }
            State::Name { width, height, .. } => {
                return Ok(Some(Greeting { width, height, name: clean(bytes) }));
            }
        }
        Ok(None)
    }

    fn version(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), RfbError> {
        let no = || RfbError::Protocol(format!("it begins with {:?}: is it a VNC server?", clean(bytes)));
        let text = std::str::from_utf8(bytes).map_err(|_| no())?;
        let (major, minor) = text
            .strip_prefix("RFB ")
            .and_then(|rest| rest.strip_suffix('\n'))
            .and_then(|numbers| numbers.split_once('.'))
            .ok_or_else(no)?;
        let number = |text: &str| text.parse::<u16>().map_err(|_| no());
        self.minor = match (number(major)?, number(minor)?) {
            (3, 7) => 7,
            (3, minor) if minor >= 8 => 8,
            (major, _) if major > 3 => 8,
            (3, minor) if minor >= 3 => 3,
            _ => return Err(no()),
        };
        out.extend(format!("RFB 003.00{}\n", self.minor).bytes());
        self.state = if self.minor == 3 { State::Decision } else { State::Count };
        Ok(())
    }

    fn choose(&mut self, offered: &[u8], out: &mut Vec<u8>) -> Result<(), RfbError> {
        let has = |kind| offered.contains(&kind);
        let kind = match (has(SECURITY_NONE), has(SECURITY_VNC)) {
            (true, _) => SECURITY_NONE,
            (false, true) if self.password.is_none() => return Err(RfbError::NoPassword),
            (false, true) => SECURITY_VNC,
            (false, false) => return Err(RfbError::Security { offered: offered.to_vec() }),
        };
        if self.minor > 3 {
            out.push(kind);
        }
        match (kind, self.minor) {
            (SECURITY_VNC, _) => self.state = State::Challenge,
            (_, 8) => self.state = State::Result { password: false },
            _ => self.let_in(out),
        }
        Ok(())
    }

    fn result(&mut self, result: u32, password: bool, out: &mut Vec<u8>) -> Result<(), RfbError> {
        match (result, self.minor) {
            (0, _) => self.let_in(out),
            (_, 8) => self.state = State::ReasonLength { password },
            _ => return Err(RfbError::Password { reason: "it gives no reason".into() }),
        }
        Ok(())
    }

    /// Asks that those who are there already may stay.
    fn let_in(&mut self, out: &mut Vec<u8>) {
        out.push(1);
        self.state = State::Init;
    }

    fn text(&self, what: &'static str, bytes: u32) -> Result<usize, RfbError> {
        if bytes > self.text_bytes {
            return Err(RfbError::too_large(what, format!("{bytes} bytes"), self.text_bytes.into()));
        }
        Ok(bytes as usize)
    }
}

/// How much of a password counts, in bytes.
pub const PASSWORD_BYTES: usize = 8;

/// The answer to a challenge: DES of it in two blocks, with the password's bytes, each with its bits reversed, as the key.
#[must_use]
pub fn answer(password: &str, challenge: [u8; 16]) -> [u8; 16] {
    let mut key = [0; PASSWORD_BYTES];
    for (place, byte) in key.iter_mut().zip(password.bytes()) {
        *place = byte.reverse_bits();
    }
    let cipher = Des::new(&Array::from(key));
    let mut answer = challenge;
    for half in answer.chunks_exact_mut(8) {
        let mut block = Array::from([0; 8]);
        block.copy_from_slice(half);
        cipher.encrypt_block(&mut block);
        half.copy_from_slice(&block);
    }
    answer
}
