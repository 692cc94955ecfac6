//! A unit's restrictions without systemd: mounts by a script, users and capabilities by `setpriv`, system calls by a filter.
//!
//! Every line of `[Service]` is applied, is of the service manager's own, or is said not to be applied, and why; one that is
//! not known here fails the test.

pub mod filter;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use filter::Filter;

/// Nobody: the unit's own user is not on this machine.
const USER: &str = "65534";

/// What a unit asks for.
#[derive(Default)]
pub struct Sandbox {
    mounts: Vec<String>,
    limits: Vec<String>,
    privileges: Vec<String>,
    umask: String,
    filter: Filter,
    proc: Vec<&'static str>,
    /// What is not applied, and why.
    pub left_out: Vec<String>,
}

/// The folders above the daemon's folder and its program that the unit's user cannot enter, such as a private one in which the whole
/// build is; outer ones first.
fn closed_above(folder: &Path) -> BTreeSet<PathBuf> {
    let program = std::env::current_exe().unwrap();
    let above = folder.ancestors().skip(1).chain(program.ancestors().skip(1));
    let is_closed = |path: &&Path| path.metadata().unwrap().permissions().mode() & 0o001 == 0;
    above.filter(is_closed).map(Path::to_owned).collect()
}

/// Commands that show the folders of a closed folder in an open one at its place.
fn open_to_all(closed: &Path) -> String {
    let closed = closed.display();
    format!(
        "mount -t tmpfs -o mode=755 none /mnt; mkdir /mnt/closed; mount --rbind {closed} /mnt/closed\n\
         mount -t tmpfs -o mode=755 none {closed}\n\
         for one in /mnt/closed/*/; do at={closed}/${{one#/mnt/closed/}}; mkdir \"$at\"; mount --rbind \"$one\" \"$at\"; done\n\
         umount -l /mnt"
    )
}

impl Sandbox {
    /// Reads a unit whose state and runtime folders are `folder`.
    pub fn of_unit(text: &str, folder: &Path) -> Self {
        let service = text.split_once("[Service]").expect("a service").1;
        let service = service.split_once("\n[").map_or(service, |(service, _)| service);
        let mut sandbox = Self { umask: "0022".into(), ..Self::default() };
        sandbox.mounts.extend(closed_above(folder).iter().map(|closed| open_to_all(closed)));
        for line in service.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (key, value) = line.split_once('=').expect("key=value");
            let known = sandbox.mount(key, value, folder)
                || sandbox.restrict(key, value)
                || sandbox.filter.directive(key, value, &mut sandbox.left_out)
                || sandbox.leave_out(key);
            assert!(known, "{line}: what does it do to the daemon? say so in {}", file!());
        }
        sandbox
    }

    /// What the daemon finds in its file systems.
    fn mount(&mut self, key: &str, value: &str, folder: &Path) -> bool {
        let needed = [folder.to_owned(), std::env::current_exe().unwrap()];
        let folder = folder.display();
        let hidden: &[&str] = match (key, value) {
            ("ProtectHome", "yes") => &["/home", "/root", "/run/user"],
            ("PrivateTmp", "yes") => &["/tmp", "/var/tmp"],
            _ => &[],
        };
        let mode = if key == "PrivateTmp" { "mode=1777" } else { "mode=000,ro" };
        for at in hidden {
            if needed.iter().any(|path| path.starts_with(at)) {
                self.left_out.push(format!("{key}: this build is in {at}"));
            } else {
                self.mounts.push(format!("[ ! -d {at} ] || mount -t tmpfs -o {mode} none {at}"));
            }
        }
        match (key, value) {
            ("ProtectHome" | "PrivateTmp", "yes") => {}
            ("RuntimeDirectory" | "StateDirectory", _) => {}
            ("ProtectSystem", "strict") => self.mounts.push(format!(
                "mount --bind {folder} {folder}\n\
                 findmnt -rno TARGET | grep -v -e '^/dev' -e '^/proc' -e '^/sys' -e '^{folder}' |\n\
                 while read at; do mount -o remount,bind,ro \"$at\"; done"
            )),
            ("PrivateDevices", "yes") => self.mounts.push(format!(
                "mkdir -p {folder}/dev; mount --rbind /dev {folder}/dev; mount -t tmpfs -o mode=755 none /dev\n\
                 for node in null zero full random urandom tty; do\n\
                 touch /dev/$node; mount --bind {folder}/dev/$node /dev/$node; done\n\
                 mkdir /dev/shm; mount --bind {folder}/dev/shm /dev/shm; umount -l {folder}/dev"
            )),
            ("ProtectProc", "invisible") => self.proc.push("hidepid=invisible"),
            ("ProcSubset", "pid") => self.proc.push("subset=pid"),
            ("ProcSubset", "all") => {}
            ("ProtectKernelTunables", "yes") => self.mounts.push(
                "[ ! -d /proc/sys ] || { mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; }\n\
                 findmnt -rno TARGET | grep '^/sys' | while read at; do mount -o remount,bind,ro \"$at\"; done"
                    .to_owned(),
            ),
            ("ProtectControlGroups", "yes") => self.mounts.push(
                "findmnt -rno TARGET | grep '^/sys/fs/cgroup' |\n\
                 while read at; do mount -o remount,bind,ro \"$at\"; done"
                    .to_owned(),
            ),
            _ => return false,
        }
        true
    }

    /// What it may do besides system calls.
    fn restrict(&mut self, key: &str, value: &str) -> bool {
        match (key, value) {
            ("User", _) => self.privileges.push(format!("--reuid={USER}")),
            ("Group", _) => self.privileges.extend([format!("--regid={USER}"), "--clear-groups".into()]),
            ("NoNewPrivileges", "yes") => self.privileges.push("--no-new-privs".into()),
            ("CapabilityBoundingSet", "") => self.privileges.push("--bounding-set=-all".into()),
            ("AmbientCapabilities", "") => {
                self.privileges.extend(["--ambient-caps=-all".into(), "--inh-caps=-all".into()]);
            }
            ("LimitNOFILE", count) => {
                let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
                if most.is_some_and(|most| most < count.parse().unwrap()) {
                    self.left_out.push(format!("{key}: this machine allows {most:?}"));
                } else {
                    self.limits.push(format!("ulimit -n {count}"));
                }
            }
            ("LimitCORE", bytes) => self.limits.push(format!("ulimit -c {bytes}")),
            ("UMask", mask) => self.umask = mask.to_owned(),
            _ => return false,
        }
        true
    }

    /// What is the service manager's, or cannot be had without it.
    fn leave_out(&mut self, key: &str) -> bool {
        let why = match key {
            "Type" | "ExecStart" | "Restart" | "RestartSec" | "TimeoutStopSec" | "RuntimeDirectoryMode" => {
                "says how the service manager runs it"
            }
            "KeyringMode" => "its session keyring is the service manager's; the daemon has no call for keys",
            "PrivateUsers" => "asks for nothing",
            _ => return false,
        };
        self.left_out.push(format!("{key}: {why}"));
        true
    }

    /// A command of the program under these restrictions.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let proc = format!("mount -t proc -o {} none /proc", self.proc.join(","));
        let proc = if self.proc.is_empty() { String::new() } else { proc };
        let script = [
            "set -e; mount --make-rprivate /".to_owned(),
            proc,
            self.mounts.join("\n"),
            self.limits.join("\n"),
            format!("umask {}", self.umask),
            format!("exec setpriv {} -- \"$@\"", self.privileges.join(" ")),
        ];
        let mut command = Command::new("unshare");
        command.args(["--mount", "--uts", "--", "sh", "-c", &script.join("\n"), "sh"]);
        self.filter.enter(&mut command, program, arguments);
        command
    }
}
