//! The agent's static programs, one for each kind of processor. The host's own runs natively and is init in guests; each can be
//! sent to another machine.
//!
//! A build with the feature `carried` holds them: the build script builds each. Any other build finds the host's own in a file
//! beside its executable, where one `cargo build` of both packages leaves it.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// What is read and written at once on another machine, in bytes: an agent is sent in whole blocks.
pub const BLOCK_BYTES: usize = include!(concat!(env!("OUT_DIR"), "/block_bytes.rs"));

/// The name of an agent's file beside the command.
const FILE: &str = "virtbench-agent";
/// That of the agent for Windows.
const WINDOWS_FILE: &str = "virtbench-agent.exe";
/// What the agent for Windows is of.
const WINDOWS_MACHINE: &str = "x86_64 Windows";

/// Why there is no agent.
#[derive(Debug, Clone, Error)]
pub enum AgentError {
    /// This build carries none, and there is none beside it.
    #[error("the agent {} cannot be read ({error}); `make build` puts it there, and the command of `make install` carries it", .path.display())]
    Beside {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system says.
        error: Arc<io::Error>,
    },
    /// This build carries none for Windows, and there is none beside it.
    #[error(
        "this build has no agent for Windows: the command of `make install` carries one, and {} is not there",
        .path.display()
    )]
    NotForWindows {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// This build carries agents, and none for this machine.
    #[error(
        "this build carries no agent for {machine}: build it with rustup's target {machine}-unknown-linux-musl"
    )]
    NotCarried {
        /// As `uname -m` names the processor.
        machine: &'static str,
    },
}

/// A program that this build carries.
#[derive(Debug)]
struct Carried {
    machine: &'static str,
    /// The size of the program, in bytes, without what fills up its last block.
    length: usize,
    bytes: &'static [u8],
}

const CARRIED: &[Carried] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));
const CARRIED_WINDOWS: &[Carried] = include!(concat!(env!("OUT_DIR"), "/windows.rs"));

#[derive(Debug)]
enum Source {
    Carried(&'static Carried),
    Beside(PathBuf),
    BesideForWindows(PathBuf),
}

/// A program in whole blocks.
#[derive(Debug)]
struct Loaded {
    bytes: Cow<'static, [u8]>,
    length: usize,
}

/// An agent for one kind of processor.
#[derive(Debug)]
pub struct Agent {
    source: Source,
    loaded: OnceLock<Result<Loaded, AgentError>>,
    digest: OnceLock<String>,
}

impl Agent {
    fn new(source: Source) -> Self {
        Self { source, loaded: OnceLock::new(), digest: OnceLock::new() }
    }

    /// As `uname -m` names the processor.
    pub fn machine(&self) -> &'static str {
        match self.source {
            Source::Carried(carried) => carried.machine,
            Source::Beside(_) => std::env::consts::ARCH,
            Source::BesideForWindows(_) => WINDOWS_MACHINE,
        }
    }

    /// The program.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn program(&self) -> Result<&[u8], AgentError> {
        let loaded = self.loaded()?;
        Ok(loaded.bytes.get(..loaded.length).unwrap_or_default())
    }

    /// What is sent: the program and zeros up to a whole block, which do not matter to it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn blocks(&self) -> Result<&[u8], AgentError> {
        Ok(&self.loaded()?.bytes)
    }

    /// SHA-256 of what is sent, in hexadecimal digits.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn digest(&self) -> Result<&str, AgentError> {
        let blocks = self.blocks()?;
        let digest = || Sha256::digest(blocks).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(self.digest.get_or_init(digest))
    }

    fn loaded(&self) -> Result<&Loaded, AgentError> {
        self.loaded.get_or_init(|| self.source.load()).as_ref().map_err(Clone::clone)
    }
}

impl Source {
    fn load(&self) -> Result<Loaded, AgentError> {
        match self {
            Self::Carried(carried) => {
                Ok(Loaded { bytes: Cow::Borrowed(carried.bytes), length: carried.length })
            }
            Self::Beside(path) | Self::BesideForWindows(path) => {
                let failed = |error| match self {
                    Self::BesideForWindows(_) => AgentError::NotForWindows { path: path.clone() },
                    _ => AgentError::Beside { path: path.clone(), error: Arc::new(error) },
                };
                let mut bytes = std::fs::read(path).map_err(failed)?;
                let length = bytes.len();
                bytes.resize(length.next_multiple_of(BLOCK_BYTES), 0);
                Ok(Loaded { bytes: Cow::Owned(bytes), length })
            }
        }
    }
}

/// Every agent of this build: one for each kind of processor if it carries them, else one for the host's.
pub fn agents() -> &'static [Agent] {
    static AGENTS: OnceLock<Vec<Agent>> = OnceLock::new();
    AGENTS.get_or_init(|| match CARRIED {
        [] => vec![Agent::new(Source::Beside(beside_the_command(FILE)))],
        carried => carried.iter().map(|carried| Agent::new(Source::Carried(carried))).collect(),
    })
}

/// The agent for machines with Windows, of x86-64 alone.
pub fn windows_agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| match CARRIED_WINDOWS {
        [carried, ..] => Agent::new(Source::Carried(carried)),
        [] => Agent::new(Source::BesideForWindows(beside_the_command(WINDOWS_FILE))),
    })
}

/// The program for this machine's kind of processor.
///
/// # Errors
/// This build has none.
pub fn own_agent() -> Result<&'static [u8], AgentError> {
    let machine = std::env::consts::ARCH;
    let own = agents().iter().find(|agent| agent.machine() == machine);
    own.ok_or(AgentError::NotCarried { machine })?.program()
}

fn beside_the_command(file: &str) -> PathBuf {
    let command = std::env::current_exe().unwrap_or_default();
    command.parent().unwrap_or(Path::new("")).join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(folder: &Path) -> Agent {
        Agent::new(Source::Beside(folder.join(FILE)))
    }

    #[test]
    fn a_file_beside_the_command_is_sent_in_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), [7; BLOCK_BYTES + 1]).unwrap();
        let agent = beside(folder.path());
        assert_eq!(agent.machine(), std::env::consts::ARCH);
        assert_eq!(agent.program().unwrap(), [7; BLOCK_BYTES + 1]);
        assert_eq!(agent.blocks().unwrap().len(), 2 * BLOCK_BYTES);
        assert_eq!(agent.digest().unwrap().len(), 64);
    }

    #[test]
    fn an_agent_that_is_not_there_is_named_with_what_builds_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = beside(folder.path()).program().unwrap_err().to_string();
        assert!(error.contains("/virtbench-agent") && error.contains("make build"), "{error}");
    }

    #[cfg(feature = "carried")]
    #[test]
    fn a_small_static_program_for_each_kind_is_carried() {
        // The machine in an ELF header.
        let kinds = agents().iter().map(|agent| (agent.machine(), agent.blocks().unwrap()[18]));
        assert_eq!(kinds.collect::<Vec<_>>(), [("x86_64", 62), ("aarch64", 183)]);
        let (program, blocks) = (windows_agent().program().unwrap(), windows_agent().blocks().unwrap());
        assert!(program.starts_with(b"MZ") && program.len() <= 12 << 20, "{} bytes", program.len());
        assert!(blocks.starts_with(program) && blocks.len().is_multiple_of(BLOCK_BYTES));
        for agent in agents() {
            let (program, blocks) = (agent.program().unwrap(), agent.blocks().unwrap());
            assert!(program.starts_with(b"\x7fELF") && program.len() <= 7 << 20, "{} bytes", program.len());
            assert!(blocks.starts_with(program) && blocks.len().is_multiple_of(BLOCK_BYTES));
        }
    }
}
