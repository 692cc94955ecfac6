//! Keys and configuration of an OpenSSH server that is reached on loopback, and of its clients. For tests and benchmarks.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cache::write_atomically;

/// The names of the keys' files: the server's, the user's, and one that the server does not know.
const KEYS: [&str; 3] = ["host", "key", "stranger"];

/// A folder with the keys of a server and its user, and a port of loopback for it.
#[derive(Debug)]
pub struct LoopbackKeys {
    folder: TempDir,
    port: u16,
}

impl LoopbackKeys {
    /// Makes them in a new folder in `parent`.
    ///
    /// # Errors
    /// OpenSSH is missing, or the folder cannot be written.
    pub fn make(parent: &Path) -> io::Result<Self> {
        let folder = TempDir::new_in(parent)?;
        let path = |name: &str| folder.path().join(name);
        for name in KEYS {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(path(name));
            if !keygen.status()?.success() {
                return Err(io::Error::other("ssh-keygen made no key"));
            }
        }
        fs::copy(path("key.pub"), path("authorized"))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let key = fs::read_to_string(path("host.pub"))?;
        fs::write(path("known"), format!("[127.0.0.1]:{port} {key}"))?;
        Ok(Self { folder, port })
    }

    /// The port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file or folder in the keys' folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the server is told: to listen at `address` (`ADDRESS:PORT`) with the keys in `folder`, and `more`, of which what
    /// stands first counts.
    #[must_use]
    pub fn server_configuration(folder: &Path, address: &str, more: &str) -> String {
        format!(
            "ListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nUseDNS no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n{more}\n",
            folder.join("host").display(),
            folder.join("authorized").display()
        )
    }

    /// Writes a client's configuration with one of the keys (`host`, `key`, `stranger`) for a port.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn client_configuration(&self, key: &str, port: u16) -> io::Result<PathBuf> {
        let config = self.path(&format!("config-{key}-{port}"));
        let text = format!(
            "Host *\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\n\
             StrictHostKeyChecking yes\n",
            self.path(key).display(),
            self.path("known").display()
        );
        // Whole at any moment: others may be logging in with it.
        write_atomically(&config, |file| file.write_all(text.as_bytes()))?;
        Ok(config)
    }
}
