//! A simulated vCenter of one's own, for tests and `make bench`: govmomi's simulator, gone with its value.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use virtbench_https::Secret;

use crate::address::Address;

/// The longest that a start may take; 10,000 VMs are made one after the other.
const LIMIT: Duration = Duration::from_secs(600);
/// As whom to log in.
const USER: &str = "user";
const PASSWORD: &str = "test-only-secret";

/// A simulator that runs.
#[derive(Debug)]
pub struct LocalVcenter {
    process: Child,
    arguments: Vec<String>,
    url: String,
    folder: TempDir,
}

impl LocalVcenter {
    /// Starts one with these arguments, such as `--hosts 4`; see `tests/vsphere/README.md`.
    ///
    /// # Errors
    /// It is not built, with how to; it does not start.
    pub fn start(arguments: &[&str]) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        fs::write(folder.path().join("password"), PASSWORD)?;
        let (process, url) = launch(folder.path(), &arguments)?;
        Ok(Self { process, arguments, url, folder })
    }

    /// Kills it and starts it again on the same port: what it knew is lost.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> io::Result<()> {
        self.kill();
        let host = self.host().to_owned();
        let mut arguments = self.arguments.clone();
        arguments.extend(["--listen".to_owned(), host]);
        (self.process, self.url) = launch(self.folder.path(), &arguments)?;
        Ok(())
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Its name and port.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.split('/').nth(2).unwrap_or("")
    }

    /// The file with its certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Its address with these options in place of the certificate's, such as `verify=no`.
    ///
    /// # Errors
    /// The options make no sense.
    pub fn address(&self, options: &str) -> io::Result<Address> {
        Address::parse(&format!("vsphere+https://{USER}@{}/sdk?{options}", self.host()))
            .map_err(io::Error::other)
    }

    /// Its address as an argument of the command: with the files of its certificate and of the password.
    #[must_use]
    pub fn argument(&self) -> String {
        let folder = self.folder.path().display();
        format!(
            "vsphere+https://{USER}@{}/sdk?ca={folder}/certificate.pem&password-file={folder}/password",
            self.host()
        )
    }

    /// Its user's password.
    #[must_use]
    pub fn password(&self) -> Secret {
        Secret::new(PASSWORD.to_owned())
    }

    /// Its URL for govmomi's client, with the password.
    #[must_use]
    pub fn url_with_password(&self) -> String {
        format!("https://{USER}:{PASSWORD}@{}/sdk", self.host())
    }

    /// The program that simulates, which is also govmomi's client.
    ///
    /// # Errors
    /// It is not built, with how to.
    pub fn program() -> io::Result<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("VIRTBENCH_CACHE")
            .or_else(|| Some(set("XDG_CACHE_HOME")?.join("virtbench")))
            .or_else(|| Some(set("HOME")?.join(".cache/virtbench")))
            .unwrap_or_default();
        let program = cache.join("vsphere/virtbench-vsphere");
        if program.exists() {
            return Ok(program);
        }
        Err(io::Error::other(format!("{} is missing: scripts/setup.sh test builds it", program.display())))
    }
}

impl Drop for LocalVcenter {
    fn drop(&mut self) {
        self.kill();
    }
}

/// It ends with its stdin, so also when this process is killed.
fn launch(folder: &Path, arguments: &[String]) -> io::Result<(Child, String)> {
    let ready = folder.join("ready");
    let _ = fs::remove_file(&ready);
    let mut process = Command::new(LocalVcenter::program()?)
        .args(["simulate", "--user", USER, "--password", PASSWORD])
        .args(arguments)
        .arg("--ready")
        .arg(&ready)
        .env("TMPDIR", folder)
        .stdin(Stdio::piped())
        .spawn()?;
    let begun = Instant::now();
    let text = loop {
        match fs::read_to_string(&ready) {
            Ok(text) => break text,
            Err(_) if begun.elapsed() > LIMIT => {
                let _ = process.kill();
                let _ = process.wait();
                return Err(io::Error::other("the simulator does not start"));
            }
            Err(_) => {}
        }
        if let Some(status) = process.try_wait()? {
            return Err(io::Error::other(format!("the simulator ended: {status}")));
        }
        sleep(Duration::from_millis(10));
    };
    let told: Value = serde_json::from_str(&text)?;
    let word = |name: &str| told[name].as_str().unwrap_or("").to_owned();
    fs::write(folder.join("certificate.pem"), word("certificate"))?;
    Ok((process, word("url")))
}
