//! A web server or a store of one's own, for tests and `make bench`: on a free port of loopback, gone with its value.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::geteuid;
use tempfile::TempDir;

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalKind {
    /// nginx with one worker: `/` is a short page, `/16k`, `/256k` and `/1m` are files, `/moved` leads elsewhere, `/broken` is
    /// status 500.
    Nginx,
    /// Redis, which keeps nothing on disk.
    Redis,
}

/// A server that runs.
#[derive(Debug)]
pub struct LocalService {
    port: u16,
    process: Child,
    folder: TempDir,
}

impl LocalService {
    /// Starts one and waits until it listens.
    ///
    /// # Errors
    /// A program that is missing, with how to get it; what the server said that did not start.
    pub fn start(kind: LocalKind) -> io::Result<Self> {
        let (folder, port) = (ordinary_folder()?, free_port()?);
        let mut command = match kind {
            LocalKind::Nginx => {
                let configuration = folder.path().join("nginx.conf");
                fs::write(&configuration, nginx(folder.path(), port)?)?;
                let mut command = ordinary_command(&program("nginx", "nginx")?);
                command.arg("-c").arg(configuration).arg("-e").arg("stderr");
                command
            }
            LocalKind::Redis => {
                let mut command = ordinary_command(&program("redis-server", "redis-server")?);
                command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
                command.arg(port.to_string()).arg("--dir").arg(folder.path());
                command
            }
        };
        let log = fs::File::create(folder.path().join("log"))?;
        let process = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut service = Self { port, process, folder };
        service.wait_until_ready()?;
        Ok(service)
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it as a crash would.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn crash(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        until_it_listens(&mut self.process, self.port).map_err(|error| {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            io::Error::other(format!("{error}: {log}"))
        })
    }
}

impl Drop for LocalService {
    fn drop(&mut self) {
        // Both are one process that keeps nothing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The configuration of nginx, which writes nothing outside `folder`; makes its files.
fn nginx(folder: &Path, port: u16) -> io::Result<String> {
    let pages = folder.join("www");
    fs::create_dir(&pages)?;
    fs::write(pages.join("index.html"), "<!doctype html><title>virtbench</title><p>It works.\n")?;
    for (name, bytes) in [("16k", 16 << 10), ("256k", 256 << 10), ("1m", 1 << 20)] {
        fs::write(pages.join(name), "x".repeat(bytes))?;
    }
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("  {name}_temp_path {folder}/{name};\n")).concat();
    Ok(format!(
        "daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n{temporary}  server {{\n    listen 127.0.0.1:{port};\n    root {folder}/www;\n    \
         location = /moved {{ return 302 /; }}\n    location = /broken {{ return 500; }}\n  }}\n}}\n"
    ))
}

/// Where a program of a server's is.
fn program(name: &str, package: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| io::Error::other(format!("there is no {name}: install Debian's package {package}")))
}

/// The longest that a start may take.
const LIMIT: Duration = Duration::from_secs(30);

/// As whom servers run that refuse to be root.
const NOBODY: u32 = 65_534;

/// A folder that a process of [`ordinary_command`] may write to.
///
/// # Errors
/// It cannot be made.
pub fn ordinary_folder() -> io::Result<TempDir> {
    let folder = TempDir::new()?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    if geteuid().is_root() {
        chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
    }
    Ok(folder)
}

/// A command as an ordinary user, which ends when this process does, however that ends.
#[must_use]
pub fn ordinary_command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]).current_dir("/");
    if geteuid().is_root() {
        let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
        command.args([user.as_str(), group.as_str(), "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command
}

/// A port of loopback that nobody listens on.
///
/// # Errors
/// There is none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until a process listens on this port of loopback.
///
/// # Errors
/// It has ended, or does not listen within half a minute.
pub fn until_it_listens(process: &mut Child, port: u16) -> io::Result<()> {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = process.try_wait()?;
        if ended.is_some() || begun.elapsed() > LIMIT {
            return Err(io::Error::other(format!("the server does not listen ({ended:?})")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
