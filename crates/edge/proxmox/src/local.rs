//! A fake Proxmox VE of one's own, for tests and `make bench`: fakepve with `tests/proxmox/serve.py`, gone with its value.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use virtbench_https::make_loopback_certificate;

/// How long its start may take.
const LIMIT: Duration = Duration::from_secs(120);
/// As root@pam and of the token `root@pam!bench`.
const PASSWORD: &str = "test-only-secret";

/// A fake that runs.
#[derive(Debug)]
pub struct LocalProxmox {
    process: Child,
    folder: TempDir,
    port: u16,
    seconds: String,
}

impl LocalProxmox {
    /// Starts one with these guests, each an object with `vmid`, `name` and what else fakepve knows. `seconds` is how many a second of
    /// its own takes: 0 has every task end at once.
    ///
    /// # Errors
    /// It is not set up, with how to; it does not start.
    pub fn start(guests: &Value, seconds: f64) -> io::Result<Self> {
        let folder = TempDir::new()?;
        fs::write(folder.path().join("password"), PASSWORD)?;
        fs::write(folder.path().join("guests.json"), json!({ "guests": guests }).to_string())?;
        make_loopback_certificate(folder.path())?;
        let (port, seconds) = (free_port()?, seconds.to_string());
        let process = launch(folder.path(), port, &seconds)?;
        Ok(Self { process, folder, port, seconds })
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Kills it and starts it again on the same port: what it knew is lost.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        self.process = launch(self.folder.path(), self.port, &self.seconds)?;
        Ok(())
    }

    /// Its name and port.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The file with its certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// The file with its password.
    #[must_use]
    pub fn password_file(&self) -> PathBuf {
        self.folder.path().join("password")
    }

    /// Its address, for a command line.
    #[must_use]
    pub fn argument(&self) -> String {
        format!(
            "proxmox:root@pam@{}?ca={}&password-file={}",
            self.host(),
            self.certificate().display(),
            self.password_file().display()
        )
    }

    /// The second client, proxmoxer, that does operations on its VMs (`tests/proxmox/bench.py`).
    ///
    /// # Errors
    /// It is not set up, with how to.
    pub fn proxmoxer(&self) -> io::Result<Command> {
        let mut command = Command::new(python()?);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/proxmox/bench.py"));
        command.args(["--port", &self.port.to_string()]).env("PVE_PASS", PASSWORD).stdin(Stdio::null());
        Ok(command)
    }

    /// The process, to be stopped and let go on.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for LocalProxmox {
    fn drop(&mut self) {
        self.kill();
    }
}

fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let of_user = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    std::env::var_os("VIRTBENCH_CACHE")
        .map(PathBuf::from)
        .or_else(|| of_user().map(|cache| cache.join("virtbench")))
        .unwrap_or_default()
        .join("proxmox")
}

fn python() -> io::Result<PathBuf> {
    let python = cache().join("venv/bin/python");
    if python.exists() {
        return Ok(python);
    }
    let why = format!("there is no fake Proxmox VE ({}): run scripts/setup-proxmox.sh", python.display());
    Err(io::Error::new(io::ErrorKind::NotFound, why))
}

fn launch(folder: &Path, port: u16, seconds: &str) -> io::Result<Child> {
    let mut process = Command::new(python()?)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/proxmox/serve.py"))
        .args(["guests.json", "--cert", "certificate.pem", "--key", "key.pem", "--seconds", seconds])
        .args(["--port", &port.to_string()])
        .current_dir(folder)
        .env("PVE_PASS", PASSWORD)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.join("log"))?)
        .spawn()?;
    let output = process.stdout.take().map(BufReader::new);
    let (sender, receiver) = mpsc::channel();
    // It says when it listens. The thread ends with the process.
    thread::spawn(move || {
        for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    match receiver.recv_timeout(LIMIT) {
        Ok(line) if line.contains("listening") => Ok(process),
        _ => {
            let _ = process.kill();
            let _ = process.wait();
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            Err(io::Error::other(format!("the fake Proxmox VE does not start: {log}")))
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
