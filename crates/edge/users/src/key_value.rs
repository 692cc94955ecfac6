//! Keys and values of a store, over Redis's protocol.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use redis_protocol::resp2::decode::decode_bytes_mut;
use redis_protocol::resp2::encode::extend_encode;
use redis_protocol::resp2::types::BytesFrame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use virtbench_units::Random;

use crate::address::Address;
use crate::draws::{Stream, Weighted, stream};
use crate::service::{Fault, FaultKind, Service, ServiceUser, within};

/// How the keys begin: no others are touched.
const PREFIX: &str = "virtbench:";
/// Keys that are set in one exchange when they are made.
const SET_AT_ONCE: u64 = 100;
/// Room for an answer, in bytes; it grows with the answer.
const ROOM: usize = 16 << 10;

/// Keys and values of a store. Kinds of operation: `get` and `set`.
#[derive(Debug, Clone)]
pub struct KeyValue {
    address: Address,
    password: Option<String>,
    keys: u64,
    value: Bytes,
    weights: Weighted,
}

impl KeyValue {
    /// Keys `virtbench:0` to `keys - 1` of the store at `address`, with values of so many bytes; `gets` and `sets` are the
    /// weights of both operations.
    ///
    /// # Errors
    /// No keys, or neither operation.
    pub fn new(
        address: Address,
        password: Option<String>,
        (keys, value_bytes): (u64, usize),
        (gets, sets): (u32, u32),
    ) -> Result<Self, String> {
        if keys == 0 || u64::from(gets) + u64::from(sets) == 0 {
            return Err("there must be a key, and a share of gets or sets".into());
        }
        // Incompressible enough that no store saves memory or time.
        let mut random = Random::new(0x76_616c_7565);
        let bytes = std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(value_bytes);
        let weights = Weighted::new([gets, sets]);
        Ok(Self { address, password, keys, value: bytes.collect(), weights })
    }

    fn key(number: u64) -> BytesFrame {
        BytesFrame::BulkString(format!("{PREFIX}{number}").into())
    }

    async fn open(&self) -> Result<Open, Fault> {
        let stream = self.address.connect().await?;
        let mut open = Open { stream, buffer: BytesMut::with_capacity(ROOM) };
        if let Some(password) = &self.password {
            let said = open.ask([word("AUTH"), word(password)]).await?;
            if let BytesFrame::Error(words) = said {
                return Err(Fault::new(FaultKind::Login, words.to_string()));
            }
        }
        Ok(open)
    }
}

fn word(text: &str) -> BytesFrame {
    BytesFrame::BulkString(Bytes::copy_from_slice(text.as_bytes()))
}

impl Service for KeyValue {
    type User = KeyValueUser;

    fn kinds(&self) -> Vec<String> {
        ["get", "set"].map(str::to_owned).into()
    }

    async fn prepare(&self, limit: Duration) -> Result<Option<String>, Fault> {
        let mut open = within(limit, self.open()).await?;
        let info = succeeded(within(limit, open.ask([word("INFO"), word("server")])).await?)?;
        for first in (0..self.keys).step_by(usize::try_from(SET_AT_ONCE).unwrap_or(1)) {
            let numbers = first..(first + SET_AT_ONCE).min(self.keys);
            let pairs =
                numbers.flat_map(|number| [Self::key(number), BytesFrame::BulkString(self.value.clone())]);
            let set = open.ask(std::iter::once(word("MSET")).chain(pairs));
            succeeded(within(limit, set).await?)?;
        }
        let text = match &info {
            BytesFrame::BulkString(text) => String::from_utf8_lossy(text),
            _ => "".into(),
        };
        let version = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
        Ok(version.map(|version| format!("Redis {}", version.trim())))
    }

    fn login(&self) -> &'static str {
        "give the password in REDISCLI_AUTH"
    }

    fn user(&self, number: u32, seed: u64) -> KeyValueUser {
        KeyValueUser { store: self.clone(), random: stream(seed, number, Stream::Choice), open: None }
    }
}

/// A connection, with what has come of the next answer.
struct Open {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Open {
    /// Sends a command and gives its answer.
    async fn ask(&mut self, words: impl IntoIterator<Item = BytesFrame>) -> Result<BytesFrame, Fault> {
        let mut request = BytesMut::new();
        let wrong =
            |error| Fault::new(FaultKind::Protocol, format!("no answer of Redis's protocol: {error}"));
        extend_encode(&mut request, &BytesFrame::Array(words.into_iter().collect()), false).map_err(wrong)?;
        self.stream.write_all(&request).await.map_err(Fault::gone)?;
        loop {
            if let Some((frame, _, _)) = decode_bytes_mut(&mut self.buffer).map_err(wrong)? {
                return Ok(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.map_err(Fault::gone)? == 0 {
                return Err(Fault::gone("the server closed it"));
            }
        }
    }
}

/// An answer that is no error.
fn succeeded(answer: BytesFrame) -> Result<BytesFrame, Fault> {
    match answer {
        BytesFrame::Error(words) => {
            let is_login = ["NOAUTH", "WRONGPASS", "NOPERM"].iter().any(|code| words.starts_with(code));
            let kind = if is_login { FaultKind::Login } else { FaultKind::Refused };
            Err(Fault::new(kind, words.to_string()))
        }
        answer => Ok(answer),
    }
}

/// A user of a store.
pub struct KeyValueUser {
    store: KeyValue,
    random: Random,
    /// Nothing while an answer is awaited, so that a user who stops waiting has no connection.
    open: Option<Open>,
}

impl ServiceUser for KeyValueUser {
    async fn connect(&mut self) -> Result<(), Fault> {
        self.open = Some(self.store.open().await?);
        Ok(())
    }

    fn choose(&mut self) -> usize {
        self.store.weights.choose(&mut self.random)
    }

    async fn perform(&mut self, kind: usize) -> Result<(), Fault> {
        let key = KeyValue::key(self.random.below(self.store.keys));
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.store.open().await?,
        };
        let answer = match kind {
            0 => open.ask([word("GET"), key]).await?,
            _ => open.ask([word("SET"), key, BytesFrame::BulkString(self.store.value.clone())]).await?,
        };
        self.open = Some(open);
        match succeeded(answer)? {
            BytesFrame::Null => Err(Fault::new(FaultKind::Refused, "a key that was set is gone")),
            _ => Ok(()),
        }
    }
}
