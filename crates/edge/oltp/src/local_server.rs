//! A database server of one's own, for tests and `make bench`: in a folder of its own, without a network unless its settings
//! say otherwise, gone with its value.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use virtbench_record::DatabaseKind;
use virtbench_users::{free_port, ordinary_command, ordinary_folder};

use crate::address::{Address, Connect, Endpoint, Manner};
use crate::error::OltpError;
use crate::session::{connected, wait};

/// The longest that a start, or an end, may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The name of the database.
const DATABASE: &str = "bench";

/// A server that runs.
#[derive(Debug)]
pub struct LocalServer {
    kind: DatabaseKind,
    port: u16,
    process: Child,
    folder: TempDir,
}

impl LocalServer {
    /// Makes a database and starts its server with these settings beside those it needs, such as `max_connections=20`.
    ///
    /// # Errors
    /// A program that is missing, with how to get it; what the server said that did not start.
    pub fn start(kind: DatabaseKind, settings: &[&str]) -> io::Result<Self> {
        let folder = ordinary_folder()?;
        let data = folder.path().join("data");
        let made = match kind {
            DatabaseKind::PostgreSql => {
                let words = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
                finished(ordinary_command(&program(kind, "initdb")?).args(words).arg(&data))
            }
            DatabaseKind::MariaDb => finished(
                ordinary_command(&program(kind, "mariadb-install-db")?)
                    .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
                    .arg(joined("--datadir=", &data))
                    // Another server that starts removes what it takes for its own from a folder that both share.
                    .env("TMPDIR", folder.path()),
            ),
        };
        made?;
        let mut server = Self::launch(kind, folder, settings)?;
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Starts one with a copy of what another has left by [`keep`](Self::keep).
    ///
    /// # Errors
    /// A copy that cannot be made; what the server said that did not start.
    pub fn start_from(kind: DatabaseKind, settings: &[&str], kept: &Path) -> io::Result<Self> {
        let folder = ordinary_folder()?;
        copied(kept, &folder.path().join("data"))?;
        let mut server = Self::launch(kind, folder, settings)?;
        server.wait_until(|server| server.query(&["SELECT 1"]))?;
        Ok(server)
    }

    /// Ends it in good order, and keeps its data in a folder that is not there yet.
    ///
    /// # Errors
    /// They cannot be copied.
    pub fn keep(mut self, kept: &Path) -> io::Result<()> {
        self.end();
        copied(&self.folder.path().join("data"), kept)
    }

    fn launch(kind: DatabaseKind, folder: TempDir, settings: &[&str]) -> io::Result<Self> {
        let port = free_port()?;
        let process = launched(kind, (folder.path(), port), &folder.path().join("data"), settings)?;
        Ok(Self { kind, port, process, folder })
    }

    /// How it is reached, by a user who may do everything.
    #[must_use]
    pub fn connect(&self) -> Connect {
        Connect { address: self.address(DATABASE), password: None }
    }

    /// Its port on loopback, where its settings let it listen there.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder in which the server lives.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Runs statements, each for itself; returns the rows of the last one as text.
    ///
    /// # Errors
    /// The server's fault.
    pub fn query(&self, statements: &[&str]) -> Result<Vec<Vec<String>>, OltpError> {
        self.query_in(&self.address(DATABASE), statements)
    }

    fn query_in(&self, address: &Address, statements: &[&str]) -> Result<Vec<Vec<String>>, OltpError> {
        let connect = Connect { address: address.clone(), password: None };
        wait(async {
            let mut session = connected(&connect, Manner::default()).await?;
            let mut rows = Vec::new();
            for statement in statements {
                rows = session.query(statement).await.map_err(OltpError::server(*statement))?;
            }
            Ok(rows.iter().map(|row| row.iter().map(|value| value.words()).collect()).collect())
        })
    }

    /// Kills the server as a crash would.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn crash(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    /// Ends a server of PostgreSQL in good order and starts it as a standby that waits for its primary.
    ///
    /// # Errors
    /// It does not end, or does not start.
    pub fn restart_as_standby(&mut self) -> io::Result<()> {
        self.end();
        let data = self.folder.path().join("data");
        fs::write(data.join("standby.signal"), "")?;
        self.process = launched(self.kind, (self.folder.path(), self.port), &data, &[])?;
        self.wait_until(|server| server.query(&["SELECT 1"]))
    }

    fn address(&self, database: &str) -> Address {
        let (path, user) = match self.kind {
            DatabaseKind::PostgreSql => (self.folder.path().to_owned(), "postgres"),
            DatabaseKind::MariaDb => (self.folder.path().join("socket"), "root"),
        };
        Address::new(self.kind, Endpoint::Unix(path, self.port), user, database)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let first = self.address(if self.kind == DatabaseKind::PostgreSql { "postgres" } else { "mysql" });
        let make = format!("CREATE DATABASE {DATABASE}");
        self.wait_until(|server| server.query_in(&first, &[&make]))
    }

    fn wait_until(&mut self, ask: impl Fn(&Self) -> Result<Vec<Vec<String>>, OltpError>) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            let Err(error) = ask(self) else { return Ok(()) };
            if let Some(status) = self.process.try_wait()? {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("the server ended with {status}: {log}")));
            }
            if begun.elapsed() > LIMIT {
                return Err(io::Error::other(format!("the server is not ready: {error}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it in good order, or at once where that takes too long.
    fn end(&mut self) {
        // PostgreSQL ends its sessions on this one; MariaDB ends them on any.
        let signal = if self.kind == DatabaseKind::PostgreSql { Signal::INT } else { Signal::TERM };
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        let begun = Instant::now();
        if let Some(pid) = pid.filter(|_| matches!(self.process.try_wait(), Ok(None))) {
            let _ = kill_process(pid, signal);
        }
        while matches!(self.process.try_wait(), Ok(None)) {
            if begun.elapsed() > LIMIT {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn launched(
    kind: DatabaseKind,
    (folder, port): (&Path, u16),
    data: &Path,
    settings: &[&str],
) -> io::Result<Child> {
    let log = fs::File::create(folder.join("log"))?;
    let mut command = match kind {
        DatabaseKind::PostgreSql => {
            let mut command = ordinary_command(&program(kind, "postgres")?);
            command.arg("-D").arg(data).arg("-k").arg(folder);
            command.args(["-c", "listen_addresses="]).args(["-c", &format!("port={port}")]);
            settings.iter().for_each(|setting| {
                command.args(["-c", setting]);
            });
            command
        }
        DatabaseKind::MariaDb => {
            let mut command = ordinary_command(&program(kind, "mariadbd")?);
            command.args(["--no-defaults", "--skip-networking", "--skip-log-bin"]);
            command
                .env("TMPDIR", folder)
                .arg(joined("--datadir=", data))
                .arg(joined("--socket=", &folder.join("socket")));
            command.arg(joined("--pid-file=", &folder.join("pid"))).arg(format!("--port={port}"));
            command.args(settings.iter().map(|setting| format!("--{setting}")));
            command
        }
    };
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// Copies a folder with the owners of its files.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    finished(Command::new("cp").args(["-a", "--reflink=auto"]).arg(from).arg(to))
}

fn joined(option: &str, path: &Path) -> OsString {
    [OsStr::new(option), path.as_os_str()].into_iter().collect()
}

/// Where a program of a server's is: Debian keeps those of PostgreSQL in a folder for each version.
fn program(kind: DatabaseKind, name: &str) -> io::Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort_by_key(|folder| {
        let version =
            folder.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        std::cmp::Reverse(version.and_then(|version| version.parse::<u32>().ok()))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    folders.push("/usr/sbin".into());
    let package = match kind {
        DatabaseKind::PostgreSql => "postgresql",
        DatabaseKind::MariaDb => "mariadb-server-core (and mariadb-client-core)",
    };
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| io::Error::other(format!("there is no {name}: install Debian's package {package}")))
}

fn finished(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(io::Error::other(format!("a database cannot be made: {}", String::from_utf8_lossy(&said))))
}

/// An authority, and a server's certificate of it for `localhost`, in a folder that is gone with the value.
#[derive(Debug)]
pub struct LocalCertificates {
    folder: TempDir,
}

impl LocalCertificates {
    /// Makes both, valid for two days.
    ///
    /// # Errors
    /// There is no `openssl`, or it refuses.
    pub fn make() -> io::Result<Self> {
        let folder = ordinary_folder()?;
        let openssl = |words: &[&str]| made(folder.path(), words);
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let authority = ["req", "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(&[&authority[..], &curve].concat())?;
        let server = ["req", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request"];
        openssl(&[&server[..], &curve[..5]].concat())?;
        fs::write(folder.path().join("names"), "subjectAltName=DNS:localhost\n")?;
        let sign = ["x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2"];
        openssl(&[&sign[..], &["-extfile", "names", "-out", "certificate.pem"]].concat())?;
        let owner = fs::metadata(folder.path())?;
        for name in ["key.pem", "certificate.pem", "ca.pem"] {
            let path = folder.path().join(name);
            chown(&path, Some(owner.uid()), Some(owner.gid()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        }
        Ok(Self { folder })
    }

    /// The authority's certificate (PEM).
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Settings with which a [`LocalServer`](crate::LocalServer) takes encrypted connections alone from the network.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn settings(&self, kind: DatabaseKind) -> io::Result<Vec<String>> {
        let of = |option: &str, name: &str| format!("{option}={}", self.folder.path().join(name).display());
        Ok(match kind {
            DatabaseKind::PostgreSql => {
                let rules = self.folder.path().join("hba");
                fs::write(&rules, "local all all trust\nhostssl all all 127.0.0.1/32 trust\n")?;
                vec![
                    "fsync=off".to_owned(),
                    "listen_addresses=127.0.0.1".to_owned(),
                    "ssl=on".to_owned(),
                    of("ssl_cert_file", "certificate.pem"),
                    of("ssl_key_file", "key.pem"),
                    format!("hba_file={}", rules.display()),
                ]
            }
            DatabaseKind::MariaDb => vec![
                "innodb-flush-log-at-trx-commit=0".to_owned(),
                "skip-networking=0".to_owned(),
                "bind-address=127.0.0.1".to_owned(),
                "require-secure-transport=ON".to_owned(),
                of("ssl-cert", "certificate.pem"),
                of("ssl-key", "key.pem"),
                of("ssl-ca", "ca.pem"),
            ],
        })
    }
}

fn made(folder: &Path, words: &[&str]) -> io::Result<()> {
    let done = Command::new("openssl").args(words).current_dir(folder).output();
    let done = done.map_err(|error| {
        io::Error::other(format!("openssl does not start ({error}): install Debian's package openssl"))
    })?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("openssl: {}", String::from_utf8_lossy(&done.stderr).trim_end())))
}
