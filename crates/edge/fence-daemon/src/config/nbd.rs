//! `[nbd]`: the NBD server.

use std::path::PathBuf;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq as _;
use serde::{Deserialize, Serialize, Serializer};

use super::Size;
use crate::frontend::nbd::{Listen, TlsFiles};

/// `[nbd]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NbdTable {
    /// `unix:PATH`, `tcp:ADDRESS:PORT`, or a list of these; TCP on loopback only, unless TLS is required.
    #[serde(deserialize_with = "one_or_more", serialize_with = "as_texts")]
    pub listen: Vec<Listen>,
    /// Connections at once at most.
    #[serde(default = "default_connections")]
    pub connections: usize,
    /// Requests of a connection in flight at most.
    #[serde(default = "default_requests")]
    pub requests: u32,
    /// Payload of all connections in flight at most.
    #[serde(default = "default_memory")]
    pub memory: Size,
    /// How long a client may take to choose an export, seconds.
    #[serde(default = "default_negotiation_s")]
    pub negotiation_s: u64,
    /// How long a client may stop in the middle of a request or of a reply, seconds.
    #[serde(default = "default_stall_s")]
    pub stall_s: u64,
    /// TLS, if it is to be had.
    pub tls: Option<TlsTable>,
}

/// `[nbd.tls]`: PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    /// The server's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority whose clients are let in; all clients without one.
    pub client_authority: Option<PathBuf>,
    /// Nothing is told or served without TLS.
    #[serde(default = "yes")]
    pub required: bool,
}

impl TlsTable {
    /// The files.
    #[must_use]
    pub fn files(&self) -> TlsFiles {
        let Self { certificate, key, client_authority, .. } = self.clone();
        TlsFiles { certificate, key, client_authority }
    }
}

const fn yes() -> bool {
    true
}

const fn default_connections() -> usize {
    64
}

const fn default_requests() -> u32 {
    128
}

const fn default_memory() -> Size {
    Size(512 << 20)
}

const fn default_negotiation_s() -> u64 {
    10
}

const fn default_stall_s() -> u64 {
    60
}

impl NbdTable {
    /// A server that listens there, otherwise as usual.
    #[must_use]
    pub const fn new(listen: Vec<Listen>) -> Self {
        Self {
            listen,
            connections: default_connections(),
            requests: default_requests(),
            memory: default_memory(),
            negotiation_s: default_negotiation_s(),
            stall_s: default_stall_s(),
            tls: None,
        }
    }

    /// What a parser does not see.
    pub(super) fn check(&self) -> Result<(), String> {
        let tls_required = self.tls.as_ref().is_some_and(|tls| tls.required);
        for listen in &self.listen {
            match listen {
                Listen::Tcp(address) if !address.ip().is_loopback() && !tls_required => {
                    return Err(format!(
                        "nbd.listen {address}: without required TLS, on loopback only: add [nbd.tls] or take 127.0.0.1"
                    ));
                }
                _ => {}
            }
        }
        if self.listen.is_empty() {
            return Err("nbd.listen: give at least one address".into());
        }
        if !(1..=4096).contains(&self.connections) {
            return Err(format!("nbd.connections {}: use 1 to 4096", self.connections));
        }
        if !(1..=4096).contains(&self.requests) {
            return Err(format!("nbd.requests {}: use 1 to 4096", self.requests));
        }
        Ok(())
    }
}

fn as_texts<S: Serializer>(listen: &[Listen], serializer: S) -> Result<S::Ok, S::Error> {
    let mut texts = serializer.serialize_seq(Some(listen.len()))?;
    for listen in listen {
        texts.serialize_element(&listen.to_string())?;
    }
    texts.end()
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Listen>, D::Error> {
    struct Either;
    impl<'de> Visitor<'de> for Either {
        type Value = Vec<Listen>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("unix:/PATH, tcp:ADDRESS:PORT, or a list of these")
        }

        fn visit_str<E: Error>(self, value: &str) -> Result<Vec<Listen>, E> {
            value.parse().map(|listen| vec![listen]).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Vec<Listen>, A::Error> {
            let mut all = Vec::new();
            while let Some(value) = values.next_element::<String>()? {
                all.push(value.parse().map_err(A::Error::custom)?);
            }
            Ok(all)
        }
    }
    deserializer.deserialize_any(Either)
}
