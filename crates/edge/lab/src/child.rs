//! Child processes that cannot outlive virtbench, not even its kill -9.
//!
//! And a process that ends a process group when the group's leader ends, however that ends.
//!
//! A death signal (prctl(2), PR_SET_PDEATHSIG) binds one child. The kernel of User Mode Linux has processes of its own, which have no such
//! binding and share its open files, so that none sees the other end hang up: without a guard they outlive a kernel that is killed, the
//! guest's user code among them. virtbench cannot end them itself when it is killed. A namespace of process ids would do, but ordinary
//! users may not make one everywhere.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
    test_kill_process_group,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long a killed process may take to vanish; only one stuck in the kernel takes longer.
const REAP_LIMIT: Duration = Duration::from_secs(5);

/// How often it is looked whether a group has ended: nothing tells of that.
const GROUP_POLL: Duration = Duration::from_millis(1);

/// The process group that a child leads itself, as setpgid(2) has it.
const OWN_GROUP: i32 = 0;

/// A child that is killed and reaped when this value is dropped, and killed by the kernel when
/// virtbench ends in any other way.
#[derive(Debug)]
pub(crate) struct BoundChild {
    child: Child,
    pidfd: OwnedFd,
    group: Group,
}

impl BoundChild {
    /// Starts `command`, which inherits the descriptors `inherited` under the same numbers. It may use the processors that this thread may.
    pub(crate) fn spawn(command: Command, inherited: Vec<OwnedFd>) -> io::Result<Self> {
        Self::order(command, inherited, Group::Of(OWN_GROUP))
    }

    /// The same for a program whose processes do not end with it: those of its group are killed once it has ended.
    pub(crate) fn spawn_guarded(command: Command, inherited: Vec<OwnedFd>) -> io::Result<Self> {
        Self::order(command, inherited, Group::Guarded)
    }

    /// The same as [`Self::spawn`], in the process group of this number.
    pub(crate) fn spawn_in(command: Command, inherited: Vec<OwnedFd>, group: i32) -> io::Result<Self> {
        Self::order(command, inherited, Group::Of(group))
    }

    fn order(command: Command, inherited: Vec<OwnedFd>, group: Group) -> io::Result<Self> {
        let (answer, answered) = channel();
        let processors = sched_getaffinity(None)?;
        spawner()?
            .send(Order { command, inherited, group, processors, answer })
            .map_err(|_| io::Error::other("the thread that starts processes has ended"))?;
        answered.recv().map_err(|_| io::Error::other("the thread that starts processes has ended"))?
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has within `limit`.
    pub(crate) fn wait_within(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Tells it of an interrupt, as the terminal's Ctrl-C would. Nothing happens if it has ended already.
    pub(crate) fn interrupt(&self) {
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::INT);
    }

    /// Waits until the guard has killed what the child has left of its group.
    fn wait_for_the_group(&self) {
        let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        let deadline = Instant::now() + REAP_LIMIT;
        while test_kill_process_group(group).is_ok() && Instant::now() < deadline {
            thread::sleep(GROUP_POLL);
        }
    }

    /// Asks it to end. Nothing happens if it has ended already.
    pub(crate) fn terminate(&self) {
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::TERM);
    }
}

impl Drop for BoundChild {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
        let _ = self.wait_within(REAP_LIMIT);
        if let Group::Guarded = self.group {
            self.wait_for_the_group();
        }
    }
}

/// How a process ended, in words.
pub(crate) fn describe_end(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".into(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    }
}

/// The process group of a child.
#[derive(Debug, Clone, Copy)]
enum Group {
    /// That of this number.
    Of(i32),
    /// One of its own, which ends with it.
    Guarded,
}

struct Order {
    command: Command,
    inherited: Vec<OwnedFd>,
    group: Group,
    /// Those of the thread that gave the order: the spawner has those of the thread that came first.
    processors: CpuSet,
    answer: Sender<io::Result<BoundChild>>,
}

/// The thread that starts every child. The kernel binds a child's death signal to the *thread*
/// that forked it, so this thread must live as long as the process does.
fn spawner() -> io::Result<&'static Sender<Order>> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender);
    }
    let (sender, orders) = channel::<Order>();
    thread::Builder::new().name("spawner".into()).spawn(move || {
        for order in orders {
            let answer = order.answer.clone();
            let _ = answer.send(spawn_here(order));
        }
    })?;
    // Should two threads come here at once, one spawner is never used and ends with its sender.
    Ok(SPAWNER.get_or_init(|| sender))
}

fn spawn_here(order: Order) -> io::Result<BoundChild> {
    let Order { mut command, inherited, group, processors, .. } = order;
    let parent = rustix::process::getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above.
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        sched_setaffinity(None, &processors)?;
        for fd in &inherited {
            fcntl_setfd(fd, FdFlags::empty())?;
        }
        match group {
            Group::Of(_) => Ok(()),
            Group::Guarded => guard_own_group(),
        }
    };
    // A Ctrl-C at the terminal is virtbench's to hear: it stops the loads and keeps what was measured.
    command.process_group(match group {
        Group::Of(number) => number,
        Group::Guarded => OWN_GROUP,
    });
    // SAFETY: between fork and exec the closure makes system calls only, all of them async-signal-safe, and neither allocates nor takes
    // a lock.
    unsafe { command.pre_exec(prepare) };
    let mut child = command.spawn()?;
    let pidfd = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    match pidfd {
        Ok(pidfd) => Ok(BoundChild { child, pidfd, group }),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error.into())
        }
    }
    // Dropping `command` closes this process's copies of `inherited`, so that the child's end is
    // seen as the end of its connections.
}

/// What the guard is called in lists of processes: 15 characters at most.
const NAME: &CStr = c"virtbench-guard";

/// Starts a guard over the process group that the calling process leads.
///
/// To be called between fork and exec: it makes system calls only, neither allocates nor takes a lock, and lets go of every inherited
/// descriptor in the guard.
pub(crate) fn guard_own_group() -> io::Result<()> {
    let leader = rustix::process::getpid().as_raw_pid();
    // SAFETY: clone(2) without flags is a fork; the child calls functions that are safe in a signal handler and then ends. Without an exit
    // signal the leader, which knows nothing of this child, hears nothing of it.
    let forked = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    match forked {
        0 => guard(leader),
        1.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until the leader has ended, and kills what is left of its group.
fn guard(leader: libc::pid_t) -> ! {
    // SAFETY: each is a system call on plain values; `signals` is initialised before it is read.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        let mut signals = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(signals.as_mut_ptr());
        let signals = signals.assume_init();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const signals, std::ptr::null_mut());
        // It is no member of the group that it ends, and no Ctrl-C reaches it.
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        // Another signal, or one that came before the leader was bound, is told by whose child it is.
        while libc::getppid() == leader {
            libc::sigwaitinfo(&raw const signals, std::ptr::null_mut());
        }
        libc::kill(-leader, libc::SIGKILL);
        libc::_exit(0)
    }
}

static FLAG: OnceLock<&'static AtomicBool> = OnceLock::new();

/// Has logins and boots end as soon as `flag` is set. The first flag counts.
pub fn stop_starts_on(flag: &'static AtomicBool) {
    let _ = FLAG.set(flag);
}

/// Whether that was asked for.
pub(crate) fn is_requested() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_noticed_and_described() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 3"]);
        let mut child = BoundChild::spawn(command, Vec::new()).unwrap();
        let status = child.wait_within(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!(describe_end(status), "ended with exit code 3");
    }

    #[test]
    fn waiting_has_an_end_and_dropping_kills() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut child = BoundChild::spawn(command, Vec::new()).unwrap();
        assert_eq!(child.wait_within(Duration::from_millis(10)).unwrap(), None);
        let process = format!("/proc/{}", child.id());
        assert!(std::path::Path::new(&process).exists());
        drop(child);
        assert!(!std::path::Path::new(&process).exists());
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut child = thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("60");
            BoundChild::spawn(command, Vec::new()).unwrap()
        })
        .join()
        .unwrap();
        assert_eq!(child.wait_within(Duration::from_millis(50)).unwrap(), None);
    }

    #[test]
    fn a_child_may_use_the_processors_of_the_thread_that_asked_for_it() {
        fn processors_of_a_child() -> CpuSet {
            let mut command = Command::new("sleep");
            command.arg("60");
            let child = BoundChild::spawn(command, Vec::new()).unwrap();
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
            sched_getaffinity(pid).unwrap()
        }
        let all = processors_of_a_child();
        let first = (0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).unwrap();
        let held = thread::spawn(move || {
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            processors_of_a_child()
        });
        let held = held.join().unwrap();
        assert!(held.count() == 1 && held.is_set(first));
        assert_eq!(processors_of_a_child(), all);
    }

    #[test]
    fn a_child_does_not_hear_the_terminals_signals() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let child = BoundChild::spawn(command, Vec::new()).unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        assert_eq!(rustix::process::getpgid(pid).unwrap(), pid.unwrap());
    }

    /// The ids of the processes of a group that live.
    fn members(group: u32) -> Vec<i32> {
        let all = procfs::process::all_processes().unwrap();
        let of_group = all
            .filter_map(|process| process.ok()?.stat().ok())
            .filter(|stat| u32::try_from(stat.pgrp).is_ok_and(|pgrp| pgrp == group) && stat.state != 'Z');
        of_group.map(|stat| stat.pid).collect()
    }

    fn wait_for_members(group: u32, count: usize) {
        let until = Instant::now() + Duration::from_secs(30);
        while members(group).len() != count {
            assert!(Instant::now() < until, "{:?} are not {count}", members(group));
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_guarded_child_has_started_ends_with_it_however_it_ends() {
        for end in ["kill -KILL $$", "exit 0"] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("sleep 600 & sleep 600 & read line; {end}")]);
            let (reader, writer) = std::io::pipe().unwrap();
            command.stdin(reader);
            let mut child = BoundChild::spawn_guarded(command, Vec::new()).unwrap();
            let group = child.id();
            wait_for_members(group, 3);
            drop(writer);
            assert!(child.wait_within(Duration::from_secs(30)).unwrap().is_some());
            wait_for_members(group, 0);
        }
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let error = BoundChild::spawn(Command::new("/nonexistent/program"), Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
