//! The agents that this build carries, packed, one for each kind of processor: the host's own is run natively and is init in
//! guests, and each can be sent to another machine.

use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;

/// A packed program.
struct Packed {
    /// As `uname -m` names the processor.
    machine: &'static str,
    /// SHA-256 of what is sent, in hexadecimal digits.
    digest: &'static str,
    /// The size of the program, in bytes.
    length: usize,
    bytes: &'static [u8],
}

/// Every program that this build carries, with its digest, which the build knows.
const PACKED: &[Packed] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// What is read and written at once over there, in bytes: an agent is sent in whole blocks.
pub(crate) const BLOCK_BYTES: usize = include!(concat!(env!("OUT_DIR"), "/block_bytes.rs"));

/// A program to be sent.
pub(crate) struct SentAgent {
    packed: &'static Packed,
    unpacked: OnceLock<Option<Vec<u8>>>,
}

impl SentAgent {
    /// As `uname -m` names the processor.
    pub(crate) fn machine(&self) -> &'static str {
        self.packed.machine
    }

    /// SHA-256 of what is sent, in hexadecimal digits.
    pub(crate) fn digest(&self) -> &'static str {
        self.packed.digest
    }

    /// Blocks that are sent.
    pub(crate) fn blocks(&self) -> usize {
        self.packed.length.div_ceil(BLOCK_BYTES)
    }

    fn program(&self) -> &[u8] {
        self.bytes().get(..self.packed.length).unwrap_or_default()
    }

    /// What is sent: the program and zeros up to a whole block, which do not matter to it. It is unpacked when it is asked
    /// for first.
    pub(crate) fn bytes(&self) -> &[u8] {
        let unpacked = self.unpacked.get_or_init(|| {
            let mut bytes = Vec::new();
            DeflateDecoder::new(self.packed.bytes).read_to_end(&mut bytes).ok()?;
            bytes.resize(self.blocks() * BLOCK_BYTES, 0);
            Some(bytes)
        });
        // What the build packed can be unpacked; the far side would refuse anything else by its digest.
        unpacked.as_deref().unwrap_or_default()
    }
}

/// Every agent that this build carries.
pub(crate) fn agents() -> &'static [SentAgent] {
    static AGENTS: OnceLock<Vec<SentAgent>> = OnceLock::new();
    AGENTS
        .get_or_init(|| PACKED.iter().map(|packed| SentAgent { packed, unpacked: OnceLock::new() }).collect())
}

/// The agent of this machine's kind, a static program. It is unpacked when it is first asked for.
pub fn own_agent() -> &'static [u8] {
    let own = agents().iter().find(|agent| agent.machine() == std::env::consts::ARCH);
    own.map_or(&[], SentAgent::program)
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
    fn the_agent_is_a_small_static_program() {
        let agent = own_agent();
        assert!(agent.starts_with(b"\x7fELF"));
        assert!(agent.len() <= 4 << 20, "{} bytes", agent.len());
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
