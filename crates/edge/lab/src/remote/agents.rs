//! The agents that can be sent, one for each kind of processor.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;
use sha2::{Digest, Sha256};

/// Packed programs, each with its kind of processor as `uname -m` names it.
const PACKED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// What is read and written at once over there, in bytes: an agent is sent in whole blocks.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// A program to be sent.
#[derive(Debug, Clone)]
pub(super) struct SentAgent {
    /// As `uname -m` names the processor.
    pub(super) machine: &'static str,
    /// What is sent: the program and zeros up to a whole block, which do not matter to it.
    pub(super) bytes: Vec<u8>,
    /// SHA-256 of what is sent, in hexadecimal digits.
    pub(super) digest: String,
}

impl SentAgent {
    fn unpack(machine: &'static str, packed: &[u8]) -> std::io::Result<Self> {
        let mut bytes = Vec::new();
        DeflateDecoder::new(packed).read_to_end(&mut bytes)?;
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { machine, bytes, digest })
    }

    /// Blocks that are sent.
    pub(super) fn blocks(&self) -> usize {
        self.bytes.len() / BLOCK_BYTES
    }
}

/// Every agent that this build carries.
pub(super) fn agents() -> &'static [SentAgent] {
    static AGENTS: OnceLock<Vec<SentAgent>> = OnceLock::new();
    AGENTS.get_or_init(|| {
        PACKED.iter().filter_map(|(machine, packed)| SentAgent::unpack(machine, packed).ok()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_its_kind_is_sent_in_whole_blocks() {
        // The machine in an ELF header. Tests are built with every agent.
        let kinds = agents().iter().map(|agent| (agent.machine, agent.bytes[18])).collect::<Vec<_>>();
        assert_eq!(kinds, [("x86_64", 62), ("aarch64", 183)]);
        for agent in agents() {
            assert_eq!(agent.bytes.len(), agent.blocks() * BLOCK_BYTES);
            assert!(agent.bytes.starts_with(b"\x7fELF") && agent.digest.len() == 64);
        }
    }
}
