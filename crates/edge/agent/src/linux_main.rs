//! The program on Linux.

use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};
use virtbench_agent::{Accounts, Role};

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_told = arguments.first().is_some_and(|flag| flag == "--fd");
    if std::process::id() == 1 && !is_told {
        virtbench_agent::run_as_init();
    }
    let fd = match arguments.as_slice() {
        [flag, folder, login @ ..] if flag == "--remote" && login.len() < 3 => {
            return remotely(Role::Loads, folder, None, login);
        }
        [flag, name, folder, login @ ..] if flag == "--remote-as" && login.len() < 3 => {
            return remotely(Role::Loads, folder, Some(name), login);
        }
        [flag, name, folder, login @ ..] if flag == "--enclose-as" && login.len() < 3 => {
            return remotely(Role::Appliance, folder, Some(name), login);
        }
        #[cfg(feature = "full")]
        [flag, display, port] if flag == "--desktop-session" => {
            let port = port.parse().map_err(|_| "--desktop-session takes a display and a port".into());
            let ran = port.and_then(|port| Ok(virtbench_desktop_session::run(display, port)?));
            return ran.map_or_else(failed, |()| ExitCode::SUCCESS);
        }
        [flag, words @ ..] if flag == virtbench_workloads::WITHOUT_VDSO => {
            return virtbench_workloads::run_without_vdso(words).unwrap_or_else(|error| failed(error.into()));
        }
        [flag, fd, network] if flag == "--alone" => {
            let numbers = fd.parse().ok().zip(network.parse().ok());
            let ran = numbers.ok_or_else(|| "--alone takes two numbers".into());
            return ran
                .and_then(|(fd, network)| virtbench_agent::run_alone(fd, network))
                .unwrap_or_else(failed);
        }
        [flag, fd] if flag == "--fd" => fd.parse::<RawFd>().ok().filter(|fd| *fd > 2),
        _ => None,
    };
    let Some(fd) = fd else {
        eprintln!("virtbench-agent is started by virtbench: virtbench-agent --fd N, N an open socket over 2");
        return ExitCode::from(2);
    };
    match native(fd) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

fn remotely(role: Role, folder: &str, name: Option<&str>, login: &[String]) -> ExitCode {
    let (folder, is_made) = (Path::new(folder), login.get(1).is_some_and(|word| word == "made"));
    virtbench_agent::run_remotely(role, (folder, is_made), name, login.first().map(Path::new))
}

fn failed(error: Box<dyn std::error::Error>) -> ExitCode {
    eprintln!("virtbench-agent: {error}");
    ExitCode::FAILURE
}

fn native(fd: RawFd) -> Result<(), Box<dyn std::error::Error>> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: the parent passed this descriptor for the agent alone, and nothing else here uses it;
    // that it is open is checked by the first use below.
    let stream = unsafe { UnixStream::from_raw_fd(fd) };
    virtbench_agent::serve(stream.try_clone()?, stream, Accounts::Controller)?;
    Ok(())
}
