//! A machine that exists: an OpenSSH server on loopback.

use std::path::PathBuf;

use tempfile::TempDir;
use virtbench_lab::{LoopbackSshd, Reach};

use super::folder;

/// The server, with its files on the disk of the build.
pub struct Sshd {
    server: LoopbackSshd,
    _folder: TempDir,
}

impl Sshd {
    pub fn start() -> Self {
        Self::with("", "")
    }

    /// With more lines of configuration, started after `before` in a mount namespace of its own.
    pub fn with(configuration: &str, before: &str) -> Self {
        Self::within(&Reach::here(), configuration, before)
    }

    /// The same in another network.
    pub fn within(reach: &Reach, configuration: &str, before: &str) -> Self {
        let folder = folder();
        let server = LoopbackSshd::start_at(folder.path(), configuration, before, reach).unwrap();
        Self { server, _folder: folder }
    }

    pub fn port(&self) -> u16 {
        self.server.port()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.server.path(name)
    }

    pub fn address(&self, folder: &str) -> String {
        self.server.address(folder).unwrap()
    }

    pub fn address_with(&self, folder: &str, key: &str, port: u16) -> String {
        self.server.address_with(folder, key, port).unwrap()
    }

    pub fn is_clean(&self, folder: &str) -> bool {
        self.server.is_clean(folder)
    }
}
