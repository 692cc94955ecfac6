//! The part of the conversation by which a machine of the user's runs appliances natively.
//!
//! ```text
//! host                agent that keeps files, for all      agent of each appliance, which works in a folder of its own
//! CheckBridge ------> Checked
//! Store ------------> Stored, for each piece
//! Enclose -----------------------------------------------> Enclosed; what is said from then on is between the host and an agent
//!                                                          that is alone in namespaces
//! ```

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most bytes of a file that go into one message.
pub const PIECE_BYTES: usize = 1 << 20;

/// What the host says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnclosingRequest {
    /// Whether appliances can be enclosed, and be on this bridge of the machine's.
    CheckBridge {
        /// Its name.
        bridge: String,
    },
    /// Keep a piece of a file.
    Store(Piece),
    /// Enclose an appliance. For an agent that was started for it.
    Enclose(EncloseOrder),
}

/// A piece of a file that the agent keeps in its folder. What no piece has is zeros.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The file's name.
    pub name: String,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// Where in it the piece begins.
    pub offset: u64,
    /// What it has.
    #[serde(serialize_with = "write_base64", deserialize_with = "read_base64")]
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {} of {}", self.bytes.len(), self.offset, self.name)
    }
}

/// What an appliance gets of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncloseOrder {
    /// The name of the agent that keeps the files, in the same folder.
    pub kept_by: String,
    /// The file that is its root, which is only read.
    pub root: String,
    /// The file of whose copy it has its data.
    pub data: Option<String>,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Processors.
    pub vcpus: u32,
    /// Its number: appliances are dealt to processors in turn.
    pub number: usize,
    /// Whether it has an init of its own, which needs a control group.
    pub has_init: bool,
    /// The bridge that it is on.
    pub bridge: String,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnclosingReply {
    /// It can be done.
    Checked,
    /// The piece is kept.
    Stored,
    /// The appliance has what it was to get.
    Enclosed(Enclosed),
}

/// What an appliance has got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosed {
    /// The block device of its root.
    pub root: String,
    /// That of its data.
    pub data: Option<String>,
    /// Its interface on the bridge.
    pub interface: String,
    /// What could not be had, with the reason.
    pub notes: Vec<String>,
}

fn write_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    BASE64.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MAX_FRAME_BYTES, Request, receive, send};

    #[test]
    fn the_largest_piece_travels_in_one_frame() {
        let bytes = (0..=250).cycle().take(PIECE_BYTES).collect();
        let piece = Piece { name: "0".into(), file_bytes: 1 << 40, offset: 1 << 39, bytes };
        let request = Request::Enclosing(EnclosingRequest::Store(piece));
        let mut wire = Vec::new();
        send(&mut wire, &request).unwrap();
        assert!(wire.len() < MAX_FRAME_BYTES as usize / 2);
        assert_eq!(receive::<Request>(&mut wire.as_slice()).unwrap(), request);
    }
}
