//! The root's own systemd, as the first process of namespaces of its own, with no more rights than a group of its own gives it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::write;
use rustix::mount::{MountFlags, mount, mount_bind, mount_move, mount_remount};
use rustix::process::{PidfdFlags, chdir, chroot, pidfd_open};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::children::Children;
use super::program::{Before, Interior, Program, find_user, inside};

/// What is started of the root's own beside the services and what they require: neither timers nor what packages enable.
pub(crate) const TARGET: &str = "virtbench.target";

/// How long systemd may take until it takes orders, and to end.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

const END_LIMIT: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(20);

/// The socket on which it takes orders.
const SOCKET: &str = "run/systemd/private";

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// An init that runs.
pub(crate) struct FullInit {
    program: Program,
    /// Where it is.
    pub(crate) interior: Interior,
    /// Its control group.
    group: Group,
}

impl FullInit {
    /// Starts it in the root at `root`, with a control group below the agent's own in the hierarchy at `groups`; waits until it
    /// takes orders. It goes on with `TARGET`, whose unit is there already.
    ///
    /// # Errors
    /// It cannot be started, ends, or takes no order in time; in words, with its last lines.
    pub(crate) fn start(
        children: &Children,
        root: &Path,
        groups: &Path,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, (String, Vec<String>)> {
        let plain = |why: String| (why, Vec::new());
        let group = Group::make(groups).map_err(|error| plain(format!("its control group: {error}")))?;
        let user = inside(root, || find_user("root"))
            .map_err(|error| plain(format!("the root cannot be entered: {error}")))?
            .map_err(plain)?;
        // systemd tells by this that devices, clock and kernel are not its own (https://systemd.io/CONTAINER_INTERFACE).
        let environment = BTreeMap::from([("container".to_owned(), "virtbench".to_owned())]);
        let words = ["/sbin/init".to_owned(), format!("--unit={TARGET}")];
        let before = before(root, &group).map_err(|error| plain(error.to_string()))?;
        let program = Program::start_first(children, &words, &user, &environment, before).map_err(plain)?;
        let process = pidfd_open(program.pid, PidfdFlags::empty())
            .map_err(|error| plain(format!("its process cannot be held: {error}")))?;
        let init = Self { program, interior: Interior::of_init(root.to_owned(), process), group };
        init.wait(children, root, is_stopped).map_err(|why| (why, init.program.output.tail()))?;
        Ok(init)
    }

    fn wait(&self, children: &Children, root: &Path, is_stopped: &dyn Fn() -> bool) -> Result<(), String> {
        let begun = Instant::now();
        while UnixStream::connect(root.join(SOCKET)).is_err() {
            if let Some(end) = children.end(self.program.pid) {
                self.program.output.settle(Duration::from_millis(500));
                return Err(format!("it {} before it took orders", end.describe()));
            }
            if is_stopped() {
                return Err("it was stopped before it took orders".into());
            }
            if begun.elapsed() > BOOT_LIMIT {
                return Err(format!("it took no order within {} s", BOOT_LIMIT.as_secs()));
            }
            children.wait_within(self.program.pid, PAUSE);
        }
        Ok(())
    }

    /// The folder of a control group of its, as the agent sees it.
    pub(crate) fn group_of(&self, path: &str) -> PathBuf {
        self.group.path().join(path.trim_start_matches('/'))
    }

    /// Has systemctl do something; returns what it says.
    ///
    /// # Errors
    /// It fails, or is not done in time; in words.
    pub(crate) fn control(
        children: &Children,
        interior: &Interior,
        words: &[&str],
        limit: Duration,
    ) -> Result<String, String> {
        let all: Vec<String> = ["/usr/bin/systemctl"].iter().chain(words).map(|w| (*w).to_owned()).collect();
        let (end, text) = Program::run(children, interior, &all, limit)?;
        if end.exit_code == Some(0) { Ok(text) } else { Err(text.trim().to_owned()) }
    }

    /// Has it end whatever it has started, and itself; says what could not be done in good order.
    pub(crate) fn stop(&self, children: &Children) -> Option<String> {
        let told = Self::control(children, &self.interior, &["--no-block", "--no-wall", "halt"], END_LIMIT);
        if children.wait_within(self.program.pid, END_LIMIT).is_some() {
            return None;
        }
        let why = told.err().map_or_else(String::new, |why| format!(": {why}"));
        Some(format!("the root's own init did not end within {} s{why}", END_LIMIT.as_secs()))
    }

    /// Removes its control groups, once nothing runs in them.
    pub(crate) fn forget(&self, children: &Children) {
        children.finish(self.program.pid);
        self.group.remove();
    }
}

/// What the init's process does before it is one: it enters its group, sees that as the root of all groups and its root folder
/// as the root of all mounts.
fn before(root: &Path, group: &Group) -> io::Result<Before> {
    let folder = CString::new(root.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let processes: File = OpenOptions::new().write(true).open(group.path().join("cgroup.procs"))?;
    inside(root, || fs::create_dir_all("/run/systemd/system"))??;
    Ok(Box::new(move || {
        // Zero stands for the process that writes it.
        write(&processes, b"0")?;
        // SAFETY: this process has one thread; namespaces of its own close no descriptor and share no memory.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWCGROUP) }?;
        // pivot_root cannot be had in a guest, whose root is an initramfs; a chroot alone may make no namespaces of users.
        chdir(folder.as_c_str())?;
        mount_move(c".", c"/")?;
        chroot(c".")?;
        chdir(c"/")?;
        mount(c"proc", c"/proc", c"proc", PLAIN, None)?;
        // Natively these are the settings of the host's kernel.
        mount_bind(c"/proc/sys", c"/proc/sys")?;
        mount_remount(c"/proc/sys", MountFlags::BIND | MountFlags::RDONLY | PLAIN, c"")?;
        mount(c"cgroup2", c"/sys/fs/cgroup", c"cgroup2", PLAIN, None)?;
        Ok(())
    }))
}

/// What it is called. The agent's own group, which natively the controller has made for it alone, tells it from others.
const NAME: &str = "init";

/// A group that is there until it is removed, or until the controller removes the one above it.
pub(crate) struct Group(PathBuf);

impl Group {
    /// Makes one in the hierarchy that is mounted at `root`.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(root: &Path) -> io::Result<Self> {
        let path = root.join(own(&fs::read_to_string("/proc/self/cgroup")?)).join(NAME);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it with all that is in it; what still has processes stays.
    pub(crate) fn remove(&self) {
        remove(&self.0);
    }
}

/// Whether a process is in the group at `path` or below it. There is none where there is no such group.
pub(crate) fn is_populated(path: &Path) -> bool {
    let events = fs::read_to_string(path.join("cgroup.events"));
    events.is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
}

/// The path of a process's own group of version 2, relative, of what its `/proc/PID/cgroup` says.
fn own(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("")
}

fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_group_is_the_one_of_version_2() {
        assert_eq!(own("4:memory:/a\n0::/user.slice/b\n"), "user.slice/b");
        assert_eq!((own("0::/\n"), own("4:memory:/a\n")), ("", ""));
    }
}
