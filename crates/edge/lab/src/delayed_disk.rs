//! A file whose blocks take longer: nbdkit serves it, and waits before each read and write (nbdkit-delay-filter(1)).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, io, thread};

use tempfile::TempDir;

use crate::process::{AgentProcess, MachineError};
use crate::start_folder::start_folder;

const PROGRAM: &str = "nbdkit";
/// How long it may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// The server. Dropping it kills it.
#[derive(Debug)]
pub struct DelayedDisk {
    process: AgentProcess,
    folder: Option<TempDir>,
    socket: PathBuf,
}

impl DelayedDisk {
    /// Serves the raw file at `path`, each read and write of it that much later.
    ///
    /// # Errors
    /// There is no nbdkit, or it does not start.
    pub fn start(path: &Path, delay: Duration) -> Result<Self, MachineError> {
        let missing = |_| MachineError::Lacking {
            why: format!("{PROGRAM} was not found, which disks with a delay need: `apt install nbdkit`"),
        };
        let program = which::which(PROGRAM).map_err(missing)?;
        let failed = |source: io::Error| MachineError::Start { program: PROGRAM.into(), source };
        let folder = start_folder(&env::temp_dir(), PROGRAM).map_err(failed)?;
        let socket = folder.path().join("socket");
        let delay = format!("{}ms", delay.as_millis());
        let mut command = Command::new(program);
        command.args(["--foreground", "--exit-with-parent", "--unix"]).arg(&socket);
        command.args(["--filter=delay", "file"]).arg(path);
        command.args([format!("rdelay={delay}"), format!("wdelay={delay}")]);
        let mut process = AgentProcess::spawn(command, Vec::new(), PROGRAM)?;
        let begun = Instant::now();
        while !socket.exists() {
            process.check()?;
            if begun.elapsed() > START_LIMIT {
                return Err(failed(io::Error::other(format!("it does not listen within {START_LIMIT:?}"))));
            }
            thread::sleep(PAUSE);
        }
        Ok(Self { process, folder: Some(folder), socket })
    }

    /// Where it is reached over NBD, until [`connected`](Self::connected) was said.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Takes the socket away once the guest has connected to it, so that a kill leaves nothing.
    ///
    /// # Errors
    /// The server has ended.
    pub fn connected(&mut self) -> Result<(), MachineError> {
        self.folder = None;
        self.process.check()
    }
}
