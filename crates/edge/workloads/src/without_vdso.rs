//! Runs a command whose processes have no vDSO.
//!
//! Where a kernel can tell the time without being entered, programs read it from memory that the kernel lends them (vdso(7)), and no count
//! of system calls knows of it. On a machine without that, each reading is a call. So that all are counted, the address of that memory is
//! taken from each program before its first instruction: its C library then asks the kernel. Programs are traced for that (ptrace(2)),
//! and stop when they begin and when they start others, at nothing else. They get no huge pages, of which one fault maps hundreds and
//! guests have none.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::sys::ptrace::{self, AddressType, Event, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How a program of ours is asked to do it: `PROGRAM --without-vdso COMMAND...`.
pub const WITHOUT_VDSO: &str = "--without-vdso";

/// Of prctl(2), which the libc crate does not name for every system.
const PR_SET_THP_DISABLE: libc::c_int = 41;
const WORD: usize = size_of::<usize>();
/// Keys of a program's auxiliary vector (getauxval(3)): the vDSO's address, and nothing.
const AT_SYSINFO_EHDR: i64 = 33;
const AT_IGNORE: i64 = 1;
const AT_NULL: i64 = 0;
/// Words that are looked through for it: a program's arguments and environment may fill some megabytes.
const MOST_WORDS: usize = 1 << 20;

/// Runs a command to its end, and gives what it ended with, as a shell would.
///
/// # Errors
/// It cannot be started or traced.
pub fn run_without_vdso(words: &[String]) -> io::Result<ExitCode> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: between fork and exec two calls are made, which are async-signal-safe.
    unsafe {
        command.pre_exec(|| without_huge_pages().and_then(|()| ptrace::traceme().map_err(io::Error::from)))
    };
    let child = command.spawn()?;
    let first = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    // Its first instruction is yet to come.
    waitpid(first, None)?;
    let followed = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(first, followed)?;
    hide_vdso(first)?;
    go_on(first, None)?;
    let mut code = 0;
    loop {
        match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
            Ok(WaitStatus::Exited(pid, ended)) if pid == first => code = ended,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == first => code = 128 + signal as i32,
            Ok(WaitStatus::PtraceEvent(pid, _, event)) => {
                if event == Event::PTRACE_EVENT_EXEC as i32 {
                    hide_vdso(pid)?;
                }
                go_on(pid, None)?;
            }
            // A new one begins with it.
            Ok(WaitStatus::Stopped(pid, Signal::SIGSTOP)) => go_on(pid, None)?,
            Ok(WaitStatus::Stopped(pid, signal)) => go_on(pid, Some(signal))?,
            Err(Errno::ECHILD) => break,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

fn without_huge_pages() -> io::Result<()> {
    // SAFETY: it takes numbers alone.
    let done = unsafe { libc::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One that was killed meanwhile has nothing to go on with.
fn go_on(pid: Pid, signal: Option<Signal>) -> io::Result<()> {
    match ptrace::cont(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes the vDSO's address from a program that has just begun: its stack holds the number of its arguments, these, its environment, and
/// the auxiliary vector.
fn hide_vdso(pid: Pid) -> io::Result<()> {
    let stack = stack_pointer(pid)?;
    let word =
        |place: usize| ptrace::read(pid, (stack + place * WORD) as AddressType).map_err(io::Error::from);
    let arguments = usize::try_from(word(0)?).map_err(io::Error::other)?;
    let mut place = arguments + 2;
    while word(place)? != 0 {
        place += 1;
        if place > MOST_WORDS {
            return Err(io::Error::other("a program's environment has no end"));
        }
    }
    place += 1;
    while place <= MOST_WORDS {
        match word(place)? {
            AT_NULL => break,
            AT_SYSINFO_EHDR => ptrace::write(pid, (stack + place * WORD) as AddressType, AT_IGNORE)?,
            _ => {}
        }
        place += 2;
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
fn stack_pointer(pid: Pid) -> io::Result<usize> {
    usize::try_from(ptrace::getregs(pid)?.rsp).map_err(io::Error::other)
}

#[cfg(target_arch = "aarch64")]
fn stack_pointer(pid: Pid) -> io::Result<usize> {
    usize::try_from(ptrace::getregs(pid)?.sp).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use virtbench_counters::{Instruments, LeaveOut, Look};

    use super::*;

    fn words(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn readings_of_the_clock_are_calls() {
        let script = "perl -MTime::HiRes=time -e 'my $t = 0; $t += time for 1 .. 50000' && exit 7";
        let look = Look::new(Instruments { functions: false, crossings: true }, LeaveOut::Nobody);
        assert_eq!(look.trouble(), None, "this test counts system calls: run it as root");
        let calls = |before: &_, after: &_| look.between(before, after).crossings.unwrap().calls;
        let [first, second] = [(); 2].map(|()| look.take(0).unwrap());
        let idle = calls(&first, &second);
        let before = look.take(0).unwrap();
        assert_eq!(
            format!("{:?}", run_without_vdso(&words(script)).unwrap()),
            format!("{:?}", ExitCode::from(7))
        );
        let seen = calls(&before, &look.take(0).unwrap());
        assert!(seen >= 50_000 + idle, "{seen} calls");
    }

    #[test]
    fn the_end_of_a_command_and_what_it_started_are_waited_for() {
        let code = |script: &str| format!("{:?}", run_without_vdso(&words(script)).unwrap());
        assert_eq!(code("(exit 3) & wait $!"), format!("{:?}", ExitCode::from(3)));
        assert_eq!(code("kill -KILL $$"), format!("{:?}", ExitCode::from(137)));
        assert!(run_without_vdso(&["/does/not/exist".to_owned()]).is_err());
        assert!(run_without_vdso(&[]).is_err());
    }
}
