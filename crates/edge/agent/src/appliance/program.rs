//! A program of the root, started as one of the root's users; what it takes to do something inside a root.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, thread};

use rustix::process::{Pid, Resource, Rlimit, chdir, chroot, getrlimit, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, Gid, ThreadNameSpaceType, Uid, UnshareFlags, move_into_thread_name_spaces,
    remove_capability_from_bounding_set, set_thread_gid, set_thread_groups, set_thread_uid, unshare_unsafe,
};

use super::children::{Children, End};
use crate::console::Console;

/// Where programs look for others.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Files that a process may have open: as many on every machine, whatever was set where virtbench was started.
const OPEN_FILES: u64 = 16_384;

/// What not even root may do in an appliance, in a guest as natively: what reaches the kernel, its clock, its devices and mounts,
/// which natively are the host's.
const FORBIDDEN: [CapabilitySet; 7] = [
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYSLOG,
    CapabilitySet::MKNOD,
];

/// What a process does before it becomes a program: system calls only.
pub(crate) type Before = Box<dyn FnMut() -> io::Result<()> + Send + Sync>;

/// How long the last words of a program that has ended may take to come.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A process and what it has written.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) pid: Pid,
    pub(crate) output: Console,
}

impl Program {
    /// Starts it in a session of its own; `folders` are there before and belong to its user.
    ///
    /// # Errors
    /// In words, with the next step.
    pub(crate) fn start(
        children: &Children,
        place: &Interior,
        words: &[String],
        user: &str,
        environment: &BTreeMap<String, String>,
        folders: &[String],
    ) -> Result<Self, String> {
        let started = place.inside(|| {
            let user = find_user(user)?;
            for folder in folders {
                own_folder(folder, &user)
                    .map_err(|error| format!("the folder {folder} cannot be made: {error}"))?;
            }
            spawn(children, words, &user, environment, None).map_err(|error| refusal(words, &error))
        });
        let started = started.map_err(|error| format!("the root cannot be entered: {error}"))??;
        Self::heard(started)
    }

    /// Starts the first process of namespaces of its own, which `before` enters.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn start_first(
        children: &Children,
        words: &[String],
        user: &User,
        environment: &BTreeMap<String, String>,
        before: Before,
    ) -> Result<Self, String> {
        // SAFETY: what this thread starts is in other namespaces; it closes no descriptor and shares no memory anew.
        let enter = || Ok(unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?);
        let started = on_own_thread(enter, || spawn(children, words, user, environment, Some(before)));
        let started = started.and_then(|done| done).map_err(|error| refusal(words, &error))?;
        Self::heard(started)
    }

    /// Runs it as root to its end; returns that with what it has written.
    ///
    /// # Errors
    /// It cannot be started, or is not done in time; in words.
    pub(crate) fn run(
        children: &Children,
        place: &Interior,
        words: &[String],
        limit: Duration,
    ) -> Result<(End, String), String> {
        let program = Self::start(children, place, words, "root", &BTreeMap::new(), &[])?;
        let end = children.wait_within(program.pid, limit);
        children.finish(program.pid);
        program.output.settle(LAST_WORDS);
        let late = || format!("{} was not done after {} s", words.join(" "), limit.as_secs_f64());
        Ok((end.ok_or_else(late)?, program.output.text()))
    }

    fn heard((pid, reader): (Pid, io::PipeReader)) -> Result<Self, String> {
        // Outside: a thread that is started inside would keep the root in use.
        let output =
            Console::collect(reader).map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Self { pid, output })
    }
}

fn refusal(words: &[String], error: &io::Error) -> String {
    let program = words.first().map_or("", String::as_str);
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{program} is not in the root, or what it needs to run is not: add its package to the recipe and build it anew"
        ),
        _ => format!("{program} cannot be started: {error}"),
    }
}

/// Makes a folder that belongs to `user`. Called inside the root.
pub(crate) fn own_folder(folder: &str, user: &User) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::os::unix::fs::chown(folder, Some(user.uid), Some(user.gid))
}

/// Called inside the root, where the program and the folder it begins in are.
fn spawn(
    children: &Children,
    words: &[String],
    user: &User,
    environment: &BTreeMap<String, String>,
    before: Option<Before>,
) -> io::Result<(Pid, io::PipeReader)> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", SEARCH_PATH).env("LANG", "C.UTF-8");
    command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name).envs(environment);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    let become_user = move || {
        setsid()?;
        let files = Rlimit { current: Some(OPEN_FILES), maximum: Some(OPEN_FILES) };
        setrlimit(Resource::Nofile, files).or_else(|_| {
            // Who may not raise the limit takes what there is.
            let maximum = getrlimit(Resource::Nofile).maximum;
            setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        })?;
        for capability in FORBIDDEN {
            remove_capability_from_bounding_set(capability)?;
        }
        set_thread_groups(&groups)?;
        set_thread_gid(gid)?;
        set_thread_uid(uid)?;
        Ok(())
    };
    if let Some(before) = before {
        // SAFETY: it makes system calls only, between fork and exec, and before what follows takes the rights for them away.
        unsafe { command.pre_exec(before) };
    }
    // SAFETY: between fork and exec the closure makes system calls only, and neither allocates nor takes a lock. The child has
    // one thread, so that what is set of the thread is set of the process.
    unsafe { command.pre_exec(become_user) };
    // With the command goes this process's writing end, so that the end of the output is seen.
    Ok((children.spawn(&mut command)?, reader))
}

/// Where an appliance's programs are started: in its root, or, where the root's own init runs, beside that.
#[derive(Debug, Clone)]
pub(crate) struct Interior {
    root: PathBuf,
    init: Option<Arc<OwnedFd>>,
}

impl Interior {
    /// A root without an init.
    pub(crate) fn of_root(root: PathBuf) -> Self {
        Self { root, init: None }
    }

    /// Within the namespaces of this process, whose root folder it is.
    pub(crate) fn of_init(root: PathBuf, process: OwnedFd) -> Self {
        Self { root, init: Some(Arc::new(process)) }
    }

    /// Does it there, as [`inside`] does.
    ///
    /// # Errors
    /// Root is needed, or the init has ended.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        let Some(init) = &self.init else { return inside(&self.root, act) };
        let enter = || -> io::Result<()> {
            // SAFETY: as in `inside`.
            unsafe { unshare_unsafe(UnshareFlags::FS) }?;
            // What this thread starts is a process of the init's. Its root folder is the one of the mounts that it enters.
            let kinds = ThreadNameSpaceType::MOUNT
                | ThreadNameSpaceType::PROCESS_ID
                | ThreadNameSpaceType::CONTROL_GROUP;
            Ok(move_into_thread_name_spaces(init.as_fd(), kinds)?)
        };
        on_own_thread(enter, act)
    }
}

/// Does it where `root` is the root of every path, of processes that are started there too. Nothing outside can be reached by a
/// link inside.
///
/// # Errors
/// Root is needed.
pub(crate) fn inside<T: Send>(root: &Path, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || -> io::Result<()> {
        // SAFETY: this thread has been made for what follows; a root folder of its own closes no descriptor and shares no memory.
        unsafe { unshare_unsafe(UnshareFlags::FS) }?;
        chroot(root)?;
        Ok(chdir("/")?)
    };
    on_own_thread(enter, act)
}

/// Does both, one after the other, on a thread that ends then.
pub(crate) fn on_own_thread<T: Send>(
    enter: impl FnOnce() -> io::Result<()> + Send,
    act: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| enter().map(|()| act()));
        thread.join().map_err(|_| io::Error::other("a thread of the agent panicked"))?
    })
}

/// Where recipes name it.
const PLACE: &str = "/run/virtbench/agent";

/// Puts the agent's program into the root if a service's command is it, and it is not there yet.
///
/// # Errors
/// In words.
pub(crate) fn carry(root: &Path, command: &[String]) -> Result<(), String> {
    if command.first().is_none_or(|program| program != PLACE) {
        return Ok(());
    }
    let put = || -> io::Result<()> {
        // Outside: the root's /proc does not show this process.
        let program = fs::read("/proc/self/exe")?;
        inside(root, || {
            if fs::exists(PLACE)? {
                return Ok(());
            }
            fs::create_dir_all("/run/virtbench")?;
            fs::write(PLACE, &program)?;
            fs::set_permissions(PLACE, fs::Permissions::from_mode(0o755))
        })?
    };
    put().map_err(|error| format!("{PLACE} cannot be put there: {error}"))
}

/// Who runs something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Further groups.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

/// The user of this name. Called inside the root.
///
/// # Errors
/// There is none, in words.
pub(crate) fn find_user(name: &str) -> Result<User, String> {
    let passwd = fs::read_to_string("/etc/passwd")
        .map_err(|error| format!("the root's /etc/passwd cannot be read: {error}"))?;
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    parse(name, &passwd, &groups).ok_or_else(|| {
        format!(
            "there is no user {name:?} in the root's /etc/passwd: name one of a package's, or add it to the recipe's [[users]]"
        )
    })
}

/// Formats of passwd(5) and group(5).
fn parse(name: &str, passwd: &str, group: &str) -> Option<User> {
    let fields: Vec<&str> =
        passwd.lines().find(|line| line.split(':').next() == Some(name))?.split(':').collect();
    let gid = fields.get(3)?.parse().ok()?;
    let is_member = |line: &&str| {
        line.rsplit(':').next().is_some_and(|members| members.split(',').any(|one| one == name))
    };
    let further = group.lines().filter(is_member).filter_map(|line| line.split(':').nth(2)?.parse().ok());
    Some(User {
        name: name.to_owned(),
        uid: fields.get(2)?.parse().ok()?,
        gid,
        groups: std::iter::once(gid).chain(further.filter(|further| *further != gid)).collect(),
        home: fields.get(5).filter(|home| !home.is_empty()).map_or("/", |home| home).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_groups_that_list_him() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\npostgres:x:101:103::/var/lib/postgresql:/bin/bash\nbad:x:y\n";
        let group =
            "root:x:0:\nssl-cert:x:104:postgres\nmail:x:8:a,postgres,b\npostgres:x:103:\nx:x:9:postgresql\n";
        let user = parse("postgres", passwd, group).unwrap();
        assert_eq!((user.uid, user.gid, user.groups.as_slice()), (101, 103, &[103, 104, 8][..]));
        assert_eq!(user.home, "/var/lib/postgresql");
        assert_eq!(parse("bad", passwd, group), None);
        assert_eq!(parse("postgre", passwd, group), None);
    }
}
