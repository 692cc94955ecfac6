//! A program of the root, started as one of the root's users.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, Gid, Uid, UnshareFlags, remove_capability_from_bounding_set, set_thread_gid,
    set_thread_groups, set_thread_uid, unshare_unsafe,
};

use super::children::{Children, End};
use super::inside::{Interior, on_own_thread};
use super::users::{User, find_user};
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
