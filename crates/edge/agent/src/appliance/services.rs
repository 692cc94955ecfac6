//! Services: started, probed, watched, stopped.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use virtbench_recipe::{Probe, Service, StopSignal};

use super::children::{Children, End};
use super::full_init::FullInit;
use super::program::{Interior, Program, find_user, inside, own_folder};
use super::unit::Unit;
use crate::console::Console;
use crate::protocol::appliance::{ServiceEnd, ServiceFailure};

/// Between two looks at a port or an output, and from which on a command is tried.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(100)];
/// How long one try of a probe may take.
const TRY_LIMIT: Duration = Duration::from_secs(10);
/// How long the last words of a process that has ended may take to come.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the main process may take to end once it is killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);
const KILLED: i32 = 9;

/// A service that runs, or did.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) service: Service,
    runner: Runner,
    begun: Instant,
    /// Processes killed for want of memory before it started.
    oom_kills: u64,
}

/// Who runs a service.
#[derive(Clone)]
enum Runner {
    /// The agent.
    Program(Program),
    /// The root's own init.
    Unit(Unit),
}

impl Running {
    /// Starts it, by `init` where there is one.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        children: &Children,
        root: &Path,
        init: Option<&FullInit>,
        service: &Service,
    ) -> Result<Self, ServiceFailure> {
        let (oom_kills, begun) = (oom_kills(), Instant::now());
        let failed = |why| ServiceFailure { service: service.name.clone(), why, log: Vec::new() };
        let probed = if let Probe::Tcp(port) = service.ready { Some(port) } else { None };
        // Else another service would pass for this one.
        if let Some(port) = service.ports.iter().copied().chain(probed).find(|port| accepts(*port, TRY_LIMIT))
        {
            return Err(failed(format!(
                "something else accepts connections on port {port} already: give it another port"
            )));
        }
        let Service { command, user, environment, folders, .. } = service;
        let runner = match init {
            None => {
                let place = Interior::of_root(root.to_owned());
                let program = Program::start(children, &place, command, user, environment, folders);
                Runner::Program(program.map_err(failed)?)
            }
            Some(init) => {
                own_folders(root, folders, user).map_err(failed)?;
                let limit = Duration::from_nanos(service.ready_within);
                let unit = Unit::start(children, root, init, service, limit);
                Runner::Unit(unit.map_err(|(why, log)| ServiceFailure { log, ..failed(why) })?)
            }
        };
        Ok(Self { service: service.clone(), runner, begun, oom_kills })
    }

    fn output(&self) -> &Console {
        match &self.runner {
            Runner::Program(program) => &program.output,
            Runner::Unit(unit) => &unit.output,
        }
    }

    /// What it has written last.
    pub(crate) fn log(&self) -> String {
        self.output().text()
    }

    /// How it ended, in words, if it has.
    pub(crate) fn end(&self, children: &Children) -> Option<String> {
        match &self.runner {
            Runner::Program(program) => children.end(program.pid).map(|end| self.describe(end)),
            Runner::Unit(unit) => unit.end(children).map(|(end, word)| self.describe(end) + &word),
        }
    }

    /// Waits as long as `limit` for its end, or for the time to look again.
    fn pause(&self, children: &Children, limit: Duration) {
        match &self.runner {
            Runner::Program(program) => drop(children.wait_within(program.pid, limit)),
            Runner::Unit(_) => thread::sleep(limit),
        }
    }

    /// Ends it at once.
    pub(crate) fn finish(&self, children: &Children) {
        match &self.runner {
            Runner::Program(program) => children.finish(program.pid),
            Runner::Unit(unit) => drop(unit.stop(children, Duration::ZERO)),
        }
    }

    /// Lets go of what would keep the root in use.
    pub(crate) fn release(&self) {
        if let Runner::Unit(unit) = &self.runner {
            unit.release();
        }
    }

    /// Waits until it is ready; returns how long it took.
    ///
    /// # Errors
    /// It ends before, its time is over, or `is_stopped` says so.
    pub(crate) fn wait_until_ready(
        &self,
        children: &Children,
        place: &Interior,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Duration, ServiceFailure> {
        let (begun, limit) = (self.begun, Duration::from_nanos(self.service.ready_within));
        let pause = if matches!(self.service.ready, Probe::Command(_)) { PAUSES[1] } else { PAUSES[0] };
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            if let Some(end) = self.end(children) {
                return Err(self.failure(&format!("it {end} before it was ready"), LAST_WORDS));
            }
            if self.is_ready(children, place, left.min(TRY_LIMIT)) {
                return Ok(begun.elapsed());
            }
            if is_stopped() {
                return Err(self.failure("it was stopped before it was ready", Duration::ZERO));
            }
            if begun.elapsed() >= limit {
                let why = format!(
                    "it was not ready ({}) within {} s; raise ready_within in the recipe if it only needs longer",
                    words_of(&self.service.ready),
                    limit.as_secs_f64()
                );
                return Err(self.failure(&why, Duration::ZERO));
            }
            self.pause(children, pause.min(left));
        }
    }

    fn is_ready(&self, children: &Children, place: &Interior, limit: Duration) -> bool {
        match &self.service.ready {
            Probe::Tcp(port) => accepts(*port, limit),
            Probe::Output(text) => self.output().contains(text),
            Probe::Command(words) => {
                let Service { user, environment, .. } = &self.service;
                let Ok(probe) = Program::start(children, place, words, user, environment, &[]) else {
                    return false;
                };
                let end = children.wait_within(probe.pid, limit);
                children.finish(probe.pid);
                end.is_some_and(|end| end.exit_code == Some(0))
            }
        }
    }

    /// What is to be said of its end, which nobody asked for.
    pub(crate) fn crash(&self, end: &str) -> ServiceFailure {
        self.failure(&format!("it {end}"), LAST_WORDS)
    }

    fn describe(&self, end: End) -> String {
        let for_memory = end.signal == Some(KILLED) && oom_kills() > self.oom_kills;
        let why = if for_memory { ": the kernel was out of memory (give the appliance more)" } else { "" };
        format!("{}{why}", end.describe())
    }

    /// Its last words are waited for as long as `limit`.
    fn failure(&self, why: &str, limit: Duration) -> ServiceFailure {
        self.output().settle(limit);
        ServiceFailure { service: self.service.name.clone(), why: why.to_owned(), log: self.output().tail() }
    }

    /// Has it end in good order within its time, or kills it.
    pub(crate) fn stop(&self, children: &Children) -> ServiceEnd {
        let (begun, limit) = (Instant::now(), Duration::from_nanos(self.service.stop_within));
        let (end, killed) = match &self.runner {
            Runner::Program(program) => self.stop_program(children, program, limit),
            Runner::Unit(unit) => unit.stop(children, limit),
        };
        ServiceEnd {
            service: self.service.name.clone(),
            exit_code: end.exit_code,
            signal: end.signal,
            killed,
            took_ns: u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn stop_program(&self, children: &Children, program: &Program, limit: Duration) -> (End, bool) {
        let pid = program.pid;
        children.signal(
            pid,
            match self.service.stop {
                StopSignal::Term => Signal::TERM,
                StopSignal::Interrupt => Signal::INT,
                StopSignal::Quit => Signal::QUIT,
            },
        );
        let mut end = children.wait_within(pid, limit);
        let killed = end.is_none();
        if killed {
            children.signal(pid, Signal::KILL);
            end = children.wait_within(pid, KILL_LIMIT);
        }
        children.finish(pid);
        (end.unwrap_or(End::NONE), killed)
    }
}

fn own_folders(root: &Path, folders: &[String], user: &str) -> Result<(), String> {
    let make = || {
        let user = find_user(user)?;
        let own = |folder: &String| {
            own_folder(folder, &user).map_err(|error| format!("the folder {folder} cannot be made: {error}"))
        };
        folders.iter().try_for_each(own)
    };
    inside(root, make).map_err(|error| format!("the root cannot be entered: {error}"))?
}

/// Whether connections to a port of the loopback are accepted.
fn accepts(port: u16, limit: Duration) -> bool {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    !limit.is_zero() && TcpStream::connect_timeout(&here, limit).is_ok()
}

fn words_of(probe: &Probe) -> String {
    match probe {
        Probe::Tcp(port) => format!("nothing accepts connections on port {port}"),
        Probe::Command(words) => format!("{} does not end with 0", words.join(" ")),
        Probe::Output(text) => format!("it has not written {text:?}"),
    }
}

/// Processes that the kernel has killed for want of memory since it started.
pub(crate) fn oom_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
