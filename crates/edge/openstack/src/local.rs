//! A fake OpenStack of one's own, for tests: `tests/openstack/fake.py`, gone with its value.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use virtbench_https::{Ask, HttpsServer, Trust, make_loopback_certificate};

/// Of each of its users.
const PASSWORD: &str = "test-only-secret";
/// How long it may take to be told how to behave.
const LIMIT: Duration = Duration::from_secs(60);

/// A fake that runs.
#[derive(Debug)]
pub struct LocalOpenStack {
    process: Child,
    folder: TempDir,
    port: u16,
    scheme: &'static str,
}

impl LocalOpenStack {
    /// Starts one, with a clouds.yaml that calls it `fake` and a secure.yaml beside it. `seconds` is how long each task takes.
    ///
    /// # Errors
    /// It does not start, with what is missing.
    pub fn start(seconds: f64) -> io::Result<Self> {
        Self::launch(TempDir::new()?, "http", &[], seconds)
    }

    /// The same, which speaks TLS with a [certificate](Self::certificate) that nobody has signed.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_with_tls(seconds: f64) -> io::Result<Self> {
        let folder = TempDir::new()?;
        make_loopback_certificate(folder.path())?;
        Self::launch(folder, "https", &["certificate.pem", "key.pem"], seconds)
    }

    fn launch(folder: TempDir, scheme: &'static str, pair: &[&str], seconds: f64) -> io::Result<Self> {
        let mut process = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/openstack/fake.py"))
            .args(pair.iter().map(|file| folder.path().join(file)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                io::Error::other(format!("no fake OpenStack without python3 (apt install python3): {error}"))
            })?;
        let mut line = String::new();
        if let Some(told) = process.stdout.take() {
            BufReader::new(told).read_line(&mut line)?;
        }
        let port = line
            .trim()
            .parse()
            .map_err(|_| io::Error::other(format!("the fake OpenStack does not start: {line:?}")))?;
        let (mut clouds, mut secrets) = ("clouds:\n".to_owned(), "clouds:\n".to_owned());
        for (cloud, user) in [("fake", "admin"), ("member", "member"), ("reader", "reader")] {
            clouds += &format!(
                "  {cloud}:\n    auth: {{auth_url: '{scheme}://127.0.0.1:{port}', username: {user}, project_name: bench}}\n"
            );
            secrets += &format!("  {cloud}: {{auth: {{password: {PASSWORD}}}}}\n");
        }
        fs::write(folder.path().join("clouds.yaml"), clouds)?;
        fs::write(folder.path().join("secure.yaml"), secrets)?;
        let local = Self { process, folder, port, scheme };
        local.control(&serde_json::json!({ "seconds": seconds }))?;
        Ok(local)
    }

    /// Changes how it behaves; `fake.py` says what there is.
    ///
    /// # Errors
    /// It does not answer.
    pub fn control(&self, change: &Value) -> io::Result<()> {
        self.told(change).map(drop)
    }

    /// Whether the call has come that it was to hold.
    ///
    /// # Errors
    /// It does not answer.
    pub fn holds(&self) -> io::Result<bool> {
        Ok(self.told(&serde_json::json!({}))?["has_come"] == true)
    }

    fn told(&self, change: &Value) -> io::Result<Value> {
        let server = HttpsServer::new("the fake", &Trust::Anybody).map_err(io::Error::other)?;
        let (url, body) = (format!("{}://127.0.0.1:{}/control", self.scheme, self.port), change.to_string());
        let ask = Ask { method: "POST", url: &url, headers: &[], body: body.as_bytes() };
        let answer = server.ask(&ask, LIMIT).map_err(io::Error::other)?;
        serde_json::from_slice(&answer.body).map_err(io::Error::other)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Its clouds.yaml.
    #[must_use]
    pub fn clouds(&self) -> PathBuf {
        self.folder.path().join("clouds.yaml")
    }

    /// The file with its certificate, where it speaks TLS.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    /// Its address, for a command line; without what servers are made of.
    #[must_use]
    pub fn argument(&self) -> String {
        self.argument_of("fake")
    }

    /// The same as one of the users `member` and `reader`, who may do less.
    #[must_use]
    pub fn argument_of(&self, user: &str) -> String {
        format!("openstack:{user}?clouds={}", self.clouds().display())
    }
}

impl Drop for LocalOpenStack {
    fn drop(&mut self) {
        self.kill();
    }
}
