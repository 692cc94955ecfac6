//! The agents that can be sent, one for each kind of processor.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;

/// A packed program.
struct Packed {
    /// As `uname -m` names the processor.
    machine: &'static str,
    /// SHA-256 of what is sent, in hexadecimal digits.
    digest: &'static str,
    /// What is sent, in whole blocks.
    blocks: usize,
    bytes: &'static [u8],
}

/// Every program that this build carries, with its digest, which the build knows.
const PACKED: &[Packed] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// What is read and written at once over there, in bytes: an agent is sent in whole blocks.
pub(super) const BLOCK_BYTES: usize = include!(concat!(env!("OUT_DIR"), "/block_bytes.rs"));

/// A program to be sent.
pub(super) struct SentAgent {
    packed: &'static Packed,
    unpacked: OnceLock<Option<Vec<u8>>>,
}

impl SentAgent {
    /// As `uname -m` names the processor.
    pub(super) fn machine(&self) -> &'static str {
        self.packed.machine
    }

    /// SHA-256 of what is sent, in hexadecimal digits.
    pub(super) fn digest(&self) -> &'static str {
        self.packed.digest
    }

    /// Blocks that are sent.
    pub(super) fn blocks(&self) -> usize {
        self.packed.blocks
    }

    /// What is sent: the program and zeros up to a whole block, which do not matter to it. It is unpacked when it is asked
    /// for first.
    pub(super) fn bytes(&self) -> &[u8] {
        let unpacked = self.unpacked.get_or_init(|| {
            let mut bytes = Vec::new();
            DeflateDecoder::new(self.packed.bytes).read_to_end(&mut bytes).ok()?;
            bytes.resize(self.packed.blocks * BLOCK_BYTES, 0);
            Some(bytes)
        });
        // What the build packed can be unpacked; the far side would refuse anything else by its digest.
        unpacked.as_deref().unwrap_or_default()
    }
}

/// Every agent that this build carries.
pub(super) fn agents() -> &'static [SentAgent] {
    static AGENTS: OnceLock<Vec<SentAgent>> = OnceLock::new();
    AGENTS
        .get_or_init(|| PACKED.iter().map(|packed| SentAgent { packed, unpacked: OnceLock::new() }).collect())
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn a_program_of_its_kind_is_sent_in_whole_blocks() {
        // The machine in an ELF header. Tests are built with every agent.
        let kinds = agents().iter().map(|agent| (agent.machine(), agent.bytes()[18])).collect::<Vec<_>>();
        assert_eq!(kinds, [("x86_64", 62), ("aarch64", 183)]);
        for agent in agents() {
            assert_eq!(agent.bytes().len(), agent.blocks() * BLOCK_BYTES);
            assert!(agent.bytes().starts_with(b"\x7fELF"));
            let digest: String =
                Sha256::digest(agent.bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(agent.digest(), digest);
        }
    }

    #[test]
    fn an_agent_is_unpacked_when_it_is_asked_for() {
        let agent = |packed| SentAgent { packed, unpacked: OnceLock::new() };
        let [asked, other] = [&PACKED[0], &PACKED[1]].map(agent);
        assert!(asked.digest() != other.digest() && asked.unpacked.get().is_none());
        assert!(
            !asked.bytes().is_empty() && asked.unpacked.get().is_some() && other.unpacked.get().is_none()
        );
    }
}
