//! A hypervisor that a user runs: libvirtd with folders, configuration and socket of its own, in namespaces of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::bridge::{commands, dhcp_configuration};
use super::{children, folder, is_alive, wait_for};

/// What starts it, for measurements too.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/libvirtd.sh");

/// The server. Dropping it, or killing the test, ends it and every guest of its: they share a process namespace.
pub struct Libvirtd {
    child: Child,
    folder: TempDir,
}

/// TCP ports on which guests arrive, a server's own and below those that Linux gives to connections.
///
/// Servers share the host's network here. Two that choose from the same ports both find one free and then take it.
fn first_port() -> u32 {
    const FIRST: u32 = 10_000;
    const LAST: u32 = 32_767;
    const OF_A_SERVER: u32 = 16;
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let servers = (LAST + 1 - FIRST) / OF_A_SERVER;
    let number = (std::process::id() * 64 + SERVERS.fetch_add(1, Ordering::Relaxed)) % servers;
    FIRST + number * OF_A_SERVER
}

impl Libvirtd {
    /// With a pool `default` and one `asleep` that is not active.
    pub fn start() -> Self {
        Self::with("")
    }

    /// The same after `before` in its mount namespace.
    pub fn with(before: &str) -> Self {
        Self::in_namespaces(&[], "", before)
    }

    /// Two on which VMs can move, since the second has the first one's pool too; its address goes with it.
    pub fn two() -> (Self, Self, String) {
        let one = Self::start();
        let shared = one.path("pool").display().to_string();
        let two = Self::in_namespaces(&["8f07fe28-753f-2729-d76d-bdbd892f949a", &shared], "", "");
        let address = format!("libvirt+{}&pool=shared", two.connection());
        (one, two, address)
    }

    /// The same as one alone in a network of its own, with a bridge on which a DHCP server gives addresses.
    pub fn with_bridge() -> Self {
        let serve = format!(
            "{}printf '%s' '{}' >/run/udhcpd.conf\n: >/run/leases\nbusybox udhcpd -f /run/udhcpd.conf >/run/udhcpd.log 2>&1 &",
            commands(),
            dhcp_configuration("/run")
        );
        Self::in_namespaces(&[], "--net", &serve)
    }

    /// virtbench in the server's network.
    pub fn within(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.server())).arg(env!("CARGO_BIN_EXE_virtbench"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What tells it from another one on this host, with what more to unshare, after `before`.
    fn in_namespaces(other: &[&str], unshare: &str, before: &str) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "libvirtd in namespaces of its own needs root: run it as root"
        );
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        // A pool whose folder is not there is not active.
        fs::create_dir_all(path("etc/storage")).unwrap();
        let target = path("no-folder").display().to_string();
        let asleep =
            format!("<pool type='dir'><name>asleep</name><target><path>{target}</path></target></pool>");
        fs::write(path("etc/storage/asleep.xml"), asleep).unwrap();
        let mut command = Command::new(SCRIPT);
        command.arg(folder.path()).arg(first_port().to_string()).args(other);
        command.env("UNSHARE", unshare).env("BEFORE", before);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(path("said")).unwrap());
        let mut child = command.spawn().unwrap();
        let socket = path("run/libvirt/libvirt-sock");
        wait_for("libvirtd", || {
            let ended = child.try_wait().unwrap();
            let said =
                || ["said", "log/libvirtd"].map(|name| fs::read_to_string(path(name)).unwrap_or_default());
            assert!(ended.is_none(), "{SCRIPT} ended: {:?}", said());
            std::os::unix::net::UnixStream::connect(&socket).ok()
        });
        Self { child, folder }
    }

    /// A file of this machine's.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// libvirt's own address of it.
    pub fn connection(&self) -> String {
        format!("qemu:///system?socket={}", self.path("run/libvirt/libvirt-sock").display())
    }

    /// The environment of a small guest on it, with these settings as well.
    pub fn environment(&self, settings: &str) -> String {
        format!("libvirt+{}&memory=128MiB&accelerator=tcg{settings}", self.connection())
    }

    /// What virsh says.
    pub fn virsh(&self, words: &[&str]) -> Output {
        let mut virsh = Command::new("virsh");
        virsh.args(["-c", &self.connection()]).args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// Names of its domains, whether they run or not.
    pub fn domains(&self) -> Vec<String> {
        let said = self.virsh(&["list", "--all", "--name"]);
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
    }

    /// The same without those that are never started and list what runs have made.
    pub fn guests(&self) -> Vec<String> {
        self.domains().into_iter().filter(|name| !name.ends_with(".shared")).collect()
    }

    /// Defines a domain.
    pub fn define(&self, xml: &str) {
        let path = self.path("defined.xml");
        fs::write(&path, xml).unwrap();
        let said = self.virsh(&["define", &path.display().to_string()]);
        assert!(said.status.success(), "{said:?}");
    }

    /// Its description of a domain.
    pub fn xml(&self, domain: &str) -> String {
        let said = self.virsh(&["dumpxml", "--inactive", domain]);
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap()
    }

    /// Names of the files in its pool.
    pub fn volumes(&self) -> Vec<String> {
        names(&self.path("pool"))
    }

    /// Whether nothing of a run is left.
    pub fn is_clean(&self) -> bool {
        self.volumes().is_empty() && self.domains().is_empty()
    }

    /// The process of the server itself, as this host counts.
    pub fn server(&self) -> u32 {
        children(children(self.child.id())[0].0).into_iter().find(|(_, name)| name == "libvirtd").unwrap().0
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

impl Drop for Libvirtd {
    fn drop(&mut self) {
        let first = children(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The namespace's first process goes last.
        wait_for("libvirtd's guests to end", || {
            (!first.iter().any(|(process, _)| is_alive(*process))).then_some(())
        });
    }
}
