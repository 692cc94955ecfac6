//! A fence in a folder of its own, and its daemon as a process.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;

use tempfile::TempDir;

use super::{Finished, finish, folder, run, signal, virtbench, wait_for};

/// A configuration in a folder, with its devices.
pub struct Fence {
    folder: TempDir,
}

/// A daemon. Dropping it kills it.
pub struct Daemon {
    child: Option<Child>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Daemon {
    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn stop(mut self) -> Finished {
        let child = self.child.take().unwrap();
        signal(&child, "TERM");
        finish(child)
    }
}

pub const CACHED: &str = r#"
[slow]
device = "file:SLOW"
[fast]
device = "file:FAST"
[cache]
free_target = 300
[scheduler]
name = "Hybrid/Partitioned"
[limits]
max_request = "256 KiB"
[[disk]]
name = "a"
size = "16 MiB"
cache = "4 MiB"
socket = "A"
[[disk]]
name = "b"
size = "16 MiB"
cache = "4 MiB"
socket = "B"
"#;

pub const PLAIN: &str = r#"
[slow]
device = "file:SLOW"
[scheduler]
name = "pass-through"
[[disk]]
name = "a"
size = "16 MiB"
socket = "A"
"#;

/// Which file has this name: its inode, which is soon another file's once it is free, and when that was last changed.
pub fn made(path: &Path) -> Option<(u64, i64, i64)> {
    fs::metadata(path).map(|facts| (facts.ino(), facts.ctime(), facts.ctime_nsec())).ok()
}

impl Fence {
    pub fn new(config: &str) -> Self {
        Self::new_in(folder(), config)
    }

    pub fn new_in(folder: TempDir, config: &str) -> Self {
        let fence = Self { folder };
        for device in ["SLOW", "FAST"] {
            File::create(fence.path(device)).unwrap().set_len(64 << 20).unwrap();
        }
        fence.configure(config);
        fence
    }

    pub fn formatted(config: &str) -> Self {
        let fence = Self::new(config);
        let format = fence.command("format", &[]);
        assert_eq!(format.code(), 0, "{format:?}");
        fence
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn configure(&self, config: &str) {
        let place = |text: String, name: &str, with: &str| {
            text.replace(&format!("{with}{name}\""), &format!("{with}{}\"", self.path(name).display()))
        };
        let mut text = config.to_owned();
        for (name, with) in [("SLOW", "file:"), ("FAST", "file:"), ("A", "socket = \""), ("B", "socket = \"")]
        {
            text = place(text, name, with);
        }
        // What daemons leave that are killed goes with the folder.
        let memory = format!("[cache]\nmemory = {:?}\n", self.folder.path());
        text = text.replace("[cache]\n", &memory);
        fs::write(self.path("fence.toml"), text).unwrap();
    }

    pub fn command(&self, what: &str, more: &[&str]) -> Finished {
        run(&[&["fence", what, self.path("fence.toml").to_str().unwrap()], more].concat())
    }

    /// No daemon, to stand in for one.
    pub fn none(&self) -> Daemon {
        Daemon { child: None }
    }

    /// A daemon whose sockets are there.
    pub fn serve(&self) -> Daemon {
        self.try_serve().unwrap_or_else(|ended| panic!("it does not serve: {ended:?}"))
    }

    /// The same, or how the daemon ended that did not come to serve.
    pub fn try_serve(&self) -> Result<Daemon, Finished> {
        self.try_serve_disk("A")
    }

    /// A daemon whose socket of one disk is there.
    pub fn serve_disk(&self, disk: &str) -> Daemon {
        self.try_serve_disk(disk).unwrap_or_else(|ended| panic!("it does not serve: {ended:?}"))
    }

    fn try_serve_disk(&self, disk: &str) -> Result<Daemon, Finished> {
        let config = self.path("fence.toml");
        // The socket of a daemon that was killed answers until the kernel is done with it.
        let before = made(&self.path(disk));
        let child = virtbench().args(["fence", "serve", config.to_str().unwrap()]).spawn().unwrap();
        let mut daemon = Daemon { child: Some(child) };
        wait_for("the socket of the disk", || {
            if daemon.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                return Some(Err(finish(daemon.child.take().unwrap())));
            }
            let now = made(&self.path(disk));
            (now.is_some() && now != before && UnixStream::connect(self.path(disk)).is_ok()).then_some(Ok(()))
        })
        .map(|()| daemon)
    }

    pub fn load(&self, disk: &str, more: &[&str]) -> Finished {
        finish(self.begin_load(disk, more))
    }

    pub fn begin_load(&self, disk: &str, more: &[&str]) -> Child {
        let target = format!("vhost-user:{}", self.path(disk).display());
        let ledger = self.path(&format!("{disk}.ledger"));
        virtbench()
            .args(["load", "--target", &target, "--json", "--allow-overwrite"])
            .args(if more.contains(&"--seed") { &[][..] } else { &["--seed", "7"] })
            .args(if more.contains(&"--size") { &[][..] } else { &["--size", "16MiB"] })
            .args(["--ramp", "0s", "--ledger", ledger.to_str().unwrap()])
            .args(more)
            .spawn()
            .unwrap()
    }
}

pub fn refused(finished: &Finished, code: i32, says: &str) {
    assert_eq!(finished.code(), code, "{finished:?}");
    assert!(finished.stderr.contains(says), "{finished:?}");
}
