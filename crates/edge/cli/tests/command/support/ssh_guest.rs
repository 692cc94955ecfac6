//! A guest under software emulation in which Debian's OpenSSH server runs, reached by a port of loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cpio::newc::{Builder, trailer};
use tempfile::TempDir;
use virtbench_lab::{GuestKernel, LoopbackKeys, bootable, cache_directory};

use super::{folder, wait_for};

const INIT: &str = include_str!("../guest/init");
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const SECRET: u32 = 0o100_600;
/// The size of its disk.
const DISK_BYTES: u64 = 256 << 20;

/// What differs between kinds of machines.
pub struct Kind {
    pub architecture: &'static str,
    /// As `uname -m` names it.
    pub machine: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    console: &'static str,
}

pub const AMD64: Kind = Kind {
    architecture: "amd64",
    machine: "x86_64",
    program: "qemu-system-x86_64",
    arguments: &["-machine", "pc", "-cpu", "max,-erms,-fsrm"],
    console: "ttyS0",
};

pub const ARM64: Kind = Kind {
    architecture: "arm64",
    machine: "aarch64",
    program: "qemu-system-aarch64",
    arguments: &["-machine", "virt", "-cpu", "cortex-a57"],
    console: "ttyAMA0",
};

/// The guest. Dropping it ends it, as does the end of the test's thread.
pub struct SshGuest {
    qemu: Child,
    keys: LoopbackKeys,
    folder: TempDir,
}

impl SshGuest {
    /// Boots one with two processors and a disk of its own on /srv, and waits for its ssh server.
    pub fn boot(kind: &Kind) -> Self {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let system = cache_directory().join("systems").join(kind.architecture);
        let made = |name: &str| {
            let path = system.join(name);
            assert!(path.exists(), "{} is missing: scripts/setup.sh test makes it", path.display());
            path
        };
        let keys = LoopbackKeys::make(folder.path()).unwrap();
        let mut initramfs = fs::read(made("initramfs")).unwrap();
        initramfs.resize(initramfs.len().next_multiple_of(4), 0);
        initramfs.extend(own_files(&keys));
        fs::write(path("initramfs"), initramfs).unwrap();
        fs::File::create(path("disk")).unwrap().set_len(DISK_BYTES).unwrap();
        let mut disk = Command::new("mke2fs");
        disk.args(["-q", "-F", "-t", "ext4"]).arg(path("disk")).env("PATH", sbin());
        assert!(disk.status().unwrap().success());
        let image = made("vmlinuz");
        let packed = GuestKernel { image, release: kind.machine.into(), modules: system.clone() };
        let qemu = command(kind, folder.path(), &bootable(&packed).unwrap(), keys.port()).spawn().unwrap();
        let mut guest = Self { qemu, keys, folder };
        guest.wait_for_ssh();
        guest
    }

    /// Waits until its server greets.
    pub fn wait_for_ssh(&mut self) {
        let (port, console) = (self.keys.port(), self.folder.path().join("console"));
        wait_for("the guest's ssh server", || {
            let ended = self.qemu.try_wait().unwrap();
            assert!(ended.is_none(), "QEMU ended: {}", fs::read_to_string(&console).unwrap_or_default());
            greets(port).then_some(())
        });
    }

    /// The address of a folder on it.
    pub fn address(&self, folder: &str) -> String {
        format!("ssh://root@guest{folder}?config={}", self.config().display())
    }

    fn config(&self) -> PathBuf {
        self.keys.client_configuration("key", self.keys.port()).unwrap()
    }

    /// What a command says there.
    pub fn says(&self, command: &str) -> String {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.config()).args(["-o", "BatchMode=yes", "-l", "root", "guest", command]);
        let said = ssh.output().unwrap();
        assert!(said.status.success(), "{command}: {said:?}");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    /// Presses its reset button.
    pub fn reset(&self) {
        let mut monitor = UnixStream::connect(self.folder.path().join("qmp")).unwrap();
        monitor.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut lines = BufReader::new(monitor.try_clone().unwrap()).lines();
        for command in ["qmp_capabilities", "system_reset"] {
            writeln!(monitor, "{{\"execute\": \"{command}\"}}").unwrap();
            lines.find(|line| line.as_ref().unwrap().contains("\"return\"")).unwrap().unwrap();
        }
    }
}

impl Drop for SshGuest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Whether an ssh server introduces itself at this port. QEMU takes connections before the guest does.
fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).is_ok() && greeting == *b"SSH-"
}

/// Programs of administrators are not on everybody's path.
fn sbin() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn command(kind: &Kind, folder: &Path, kernel: &Path, port: u16) -> Command {
    let file = |name: &str| folder.join(name).display().to_string();
    // The kernel ends it with the thread that started it.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", kind.program]).args(kind.arguments);
    command.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "512", "-nodefaults", "-no-user-config"]);
    command.args(["-display", "none", "-serial", &format!("file:{}", file("console"))]);
    command.args(["-kernel", &kernel.display().to_string(), "-initrd", &file("initramfs")]);
    command
        .args(["-append", &format!("console={} quiet panic=-1 mitigations=off rdinit=/init", kind.console)]);
    command.args(["-drive", &format!("if=none,id=disk,format=raw,file={}", file("disk"))]);
    command.args(["-device", "virtio-blk-pci,drive=disk", "-device", "virtio-rng-pci"]);
    command.args(["-device", "virtio-net-pci,netdev=net,romfile="]);
    command.args(["-netdev", &format!("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22")]);
    command.args(["-qmp", &format!("unix:{},server=on,wait=off", file("qmp"))]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Init, and the server's keys and configuration, as an archive that the kernel unpacks over the other one.
fn own_files(keys: &LoopbackKeys) -> Vec<u8> {
    let mut archive = Vec::new();
    let configuration = LoopbackKeys::server_configuration(Path::new("/keys"), "0.0.0.0:22", "");
    let read = |name: &str| fs::read(keys.path(name)).unwrap();
    let files = [
        ("init", PROGRAM, INIT.as_bytes().to_vec()),
        ("keys", FOLDER, Vec::new()),
        ("keys/sshd_config", SECRET, configuration.into_bytes()),
        ("keys/host", SECRET, read("host")),
        ("keys/authorized", SECRET, read("authorized")),
    ];
    for (number, (name, mode, contents)) in files.iter().enumerate() {
        let entry = Builder::new(name).ino(u32::try_from(number).unwrap() + 1).mode(*mode).nlink(1);
        let mut writer = entry.write(&mut archive, u32::try_from(contents.len()).unwrap());
        writer.write_all(contents).unwrap();
        writer.finish().unwrap();
    }
    trailer(&mut archive).unwrap();
    archive
}
