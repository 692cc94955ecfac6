//! A machine that exists, on this host: an OpenSSH server on loopback with keys, configuration and port of its own. For
//! tests and benchmarks.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use tempfile::TempDir;

use crate::appliance::Reach;
use crate::cache::write_atomically;
use crate::child::BoundChild;

/// The server's program, which is not on everybody's path.
const SERVER: &str = "/usr/sbin/sshd";

/// Where the server of a system's administrator wants an empty folder, which a started system has.
const SEPARATION: &str = "/run/sshd";

/// How long the server may take to listen.
const LIMIT: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(20);

/// The server. Dropping it ends it.
#[derive(Debug)]
pub struct LoopbackSshd {
    child: BoundChild,
    keys: LoopbackKeys,
}

impl LoopbackSshd {
    /// Starts it with its files in a new folder in `parent`, and more lines of configuration; after the shell commands
    /// `before`, if there are any, in a mount namespace of its own.
    ///
    /// # Errors
    /// OpenSSH is missing, or the server does not listen.
    pub fn start(parent: &Path, configuration: &str, before: &str) -> io::Result<Self> {
        Self::start_at(parent, configuration, before, &Reach::here())
    }

    /// The same in another network, on the loopback there.
    ///
    /// # Errors
    /// As for [`start`](Self::start), or root is needed.
    pub fn start_at(parent: &Path, configuration: &str, before: &str, reach: &Reach) -> io::Result<Self> {
        let keys = LoopbackKeys::make(parent)?;
        if rustix::process::geteuid().is_root() && !Path::new(SEPARATION).exists() {
            fs::create_dir_all(SEPARATION)?;
        }
        let address = format!("127.0.0.1:{}", keys.port());
        let text = LoopbackKeys::server_configuration(&keys.path(""), &address, configuration);
        fs::write(keys.path("sshd_config"), text)?;
        let mut command = serve(&keys, before)?;
        reach.run_there(&mut command);
        let mut child = BoundChild::spawn(command, Vec::new())?;
        let until = Instant::now() + LIMIT;
        while reach.within(|| TcpStream::connect(("127.0.0.1", keys.port())))?.is_err() {
            if child.wait_within(PAUSE)?.is_some() || Instant::now() > until {
                let log = fs::read_to_string(keys.path("log")).unwrap_or_default();
                return Err(io::Error::other(format!("{SERVER} does not listen: {log}")));
            }
        }
        Ok(Self { child, keys })
    }

    /// Its process, whose children are the sessions.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.keys.port()
    }

    /// A file or folder of this machine's.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.keys.path(name)
    }

    /// The address of a folder on it.
    ///
    /// # Errors
    /// The client's configuration cannot be written.
    pub fn address(&self, folder: &str) -> io::Result<String> {
        self.address_with(folder, "key", self.port())
    }

    /// The same with another of its keys (`host`, `key`, `stranger`) or another port.
    ///
    /// # Errors
    /// The client's configuration cannot be written.
    pub fn address_with(&self, folder: &str, key: &str, port: u16) -> io::Result<String> {
        let config = self.keys.client_configuration(key, port)?;
        Ok(format!("ssh://metal{}?config={}", self.path(folder).display(), config.display()))
    }

    /// Whether nothing is left in a folder on it, or the folder is not there.
    #[must_use]
    pub fn is_clean(&self, folder: &str) -> bool {
        fs::read_dir(self.path(folder)).map_or(true, |mut entries| entries.next().is_none())
    }
}

/// The command that serves in the foreground, logging into a file.
fn serve(keys: &LoopbackKeys, before: &str) -> io::Result<Command> {
    let serve = format!("{before}\nexec {SERVER} -D -e -f {}", keys.path("sshd_config").display());
    let mut command = Command::new(if before.is_empty() { "sh" } else { "unshare" });
    if !before.is_empty() {
        command.args(["-m", "sh"]);
    }
    let log = fs::File::create(keys.path("log"))?;
    command.args(["-ec", &serve]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Ok(command)
}

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
