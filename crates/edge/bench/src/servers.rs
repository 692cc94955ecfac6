//! Servers that are loaded: others' programs, started here and ended here.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Size of what is served, in bytes: that of every load.
const SIZE_BYTES: u64 = 1 << 30;

/// A server that ends with this value.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// nbdkit's memory plugin at a unix socket.
pub fn nbdkit_memory(socket: &Path) -> Result<Server> {
    let mut command = Command::new("nbdkit");
    command.args(["--foreground", "--unix"]).arg(socket).arg("memory").arg(SIZE_BYTES.to_string());
    start(&mut command, socket)
}

/// QEMU's vhost-user-blk server over nothing, at a unix socket.
pub fn vhost_user_null(socket: &Path) -> Result<Server> {
    storage_daemon(socket, &format!("null-co,node-name=disk,size={SIZE_BYTES},read-zeroes=on"))
}

/// QEMU's vhost-user-blk server over a block node called `disk`.
pub fn storage_daemon(socket: &Path, blockdev: &str) -> Result<Server> {
    let mut command = Command::new("qemu-storage-daemon");
    command.arg("--blockdev").arg(blockdev);
    let address = format!("addr.type=unix,addr.path={}", socket.display());
    command.arg("--export").arg(format!("vhost-user-blk,id=export,node-name=disk,{address}"));
    start(&mut command, socket)
}

/// The fence's daemon.
pub fn fence(config: &Path, socket: &Path) -> Result<Server> {
    let mut command = Command::new(crate::tools::virtbench());
    command.args(["fence", "serve"]).arg(config).stderr(Stdio::null());
    start(&mut command, socket)
}

/// nbdkit's file plugin at a unix socket. It reads through the page cache.
pub fn nbdkit_file(socket: &Path, file: &Path) -> Result<Server> {
    let mut command = Command::new("nbdkit");
    command.args(["--foreground", "--unix"]).arg(socket).arg("file").arg(file);
    start(&mut command, socket)
}

/// QEMU's NBD server over a file, past the page cache and on io_uring as ours, at a unix socket.
pub fn storage_daemon_nbd(socket: &Path, file: &Path) -> Result<Server> {
    let mut command = Command::new("qemu-storage-daemon");
    let file = format!("driver=file,node-name=disk,filename={},cache.direct=on,aio=io_uring", file.display());
    command.arg("--blockdev").arg(file);
    command.arg("--nbd-server").arg(format!("addr.type=unix,addr.path={}", socket.display()));
    command.args(["--export", "nbd,id=export,node-name=disk,name=disk"]);
    start(&mut command, socket)
}

/// The URI of the default export at a unix socket, as virtbench and fio understand it.
pub fn uri(socket: &Path) -> String {
    uri_of(socket, "")
}

/// The URI of an export at a unix socket.
pub fn uri_of(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

fn start(command: &mut Command, socket: &Path) -> Result<Server> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("{program}: run `make bench`, which installs it"))?;
    let server = Server(child);
    let limit = Instant::now() + Duration::from_secs(10);
    while !virtbench_lab::listens_at(socket) {
        ensure!(Instant::now() < limit, "{program} does not listen at {}", socket.display());
        thread::sleep(Duration::from_millis(10));
    }
    Ok(server)
}
