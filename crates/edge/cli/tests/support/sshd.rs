//! A machine that exists: an OpenSSH server on loopback with keys, configuration and port of its own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{folder, wait_for};
use tempfile::TempDir;

/// The server's program, which is not on everybody's path.
const SERVER: &str = "/usr/sbin/sshd";
/// Where the server of a system's administrator wants an empty folder, which a started system has.
const SEPARATION: &str = "/run/sshd";

/// The server. Dropping it ends it and every session.
pub struct Sshd {
    child: Child,
    folder: TempDir,
    port: u16,
}

impl Sshd {
    pub fn start() -> Self {
        Self::with("", "")
    }

    /// With more lines of configuration, started after `before` in a mount namespace of its own.
    pub fn with(configuration: &str, before: &str) -> Self {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        for (name, comment) in [("host", "host"), ("key", "user"), ("stranger", "stranger")] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"]).arg(path(name));
            assert!(keygen.status().unwrap().success());
        }
        fs::copy(path("key.pub"), path("authorized")).unwrap();
        if rustix::process::geteuid().is_root() && !Path::new(SEPARATION).exists() {
            let _ = fs::create_dir(SEPARATION);
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = |name: &str| path(name).display().to_string();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nMaxStartups 200\n{configuration}\n",
            file("host"),
            file("authorized")
        );
        fs::write(path("sshd_config"), text).unwrap();
        let key = fs::read_to_string(path("host.pub")).unwrap();
        fs::write(path("known"), format!("[127.0.0.1]:{port} {key}")).unwrap();
        let serve = format!("{before}\nexec {SERVER} -D -e -f {}", file("sshd_config"));
        let mut command = Command::new(if before.is_empty() { "sh" } else { "unshare" });
        if !before.is_empty() {
            command.args(["-m", "sh"]);
        }
        let log = fs::File::create(path("log")).unwrap();
        command.args(["-ec", &serve]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().unwrap();
        wait_for("the ssh server", || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{SERVER} ended: {}", fs::read_to_string(path("log")).unwrap());
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Self { child, folder, port }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file of this machine's.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The client's configuration, with this key, for this port.
    fn client(&self, name: &str, key: &str, port: u16) -> PathBuf {
        let path = self.path(name);
        let text = format!(
            "Host *\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\n\
             StrictHostKeyChecking yes\n",
            self.path(key).display(),
            self.path("known").display()
        );
        fs::write(&path, text).unwrap();
        path
    }

    /// The address of a folder on it.
    pub fn address(&self, folder: &str) -> String {
        self.address_with(folder, "key", self.port)
    }

    /// The same with another key or port.
    pub fn address_with(&self, folder: &str, key: &str, port: u16) -> String {
        let config = self.client(&format!("config-{key}-{port}"), key, port);
        format!("ssh://metal{}?config={}", self.path(folder).display(), config.display())
    }

    /// Whether nothing is left in a folder on it, or the folder is not there.
    pub fn is_clean(&self, folder: &str) -> bool {
        fs::read_dir(self.path(folder)).map_or(true, |mut entries| entries.next().is_none())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Each session is a child of its own, which ends when its connection does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
