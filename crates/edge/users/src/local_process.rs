//! Servers of one's own, for tests and `make bench`: as an ordinary user, in a folder of their own.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tempfile::TempDir;

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
