//! An appliance: real software in a root of its own, run by the agent.

mod carried;
mod children;
mod inside;
mod path;
mod program;
mod root;
mod services;
mod users;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::statvfs;
use rustix::process::{Pid, getpid};
use rustix::system::sethostname;
use virtbench_recipe::Service;
use virtbench_record::CommandEnd;

use crate::interface;
use crate::protocol::appliance::{ApplianceState, CommandOrder, MountOrder, ServiceEnd, ServiceFailure};
use children::Children;
use program::Program;
use root::Root;
use services::{Running, oom_kills};

pub(crate) use path::serve_path;

/// How often somebody who waits looks whether he is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long what is left may take to end once it is killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// A file system with less than this part of it free is said to be full.
const FULL_PART: u64 = 200;

/// What the agent runs. Threads share it.
pub(crate) struct Appliance {
    children: Children,
    state: Mutex<State>,
    /// Whether services may end.
    stopping: AtomicBool,
    oom_kills_before: u64,
}

struct State {
    root: Option<Root>,
    services: Vec<Running>,
    /// Names of those whose end was told.
    told: Vec<String>,
}

impl Appliance {
    /// Puts its root together.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn mount(order: &MountOrder) -> Result<Self, String> {
        if getpid() != Pid::INIT {
            return Err("an appliance needs an agent that is the first process of a guest or of namespaces of its own".into());
        }
        sethostname(order.host_name.as_bytes())
            .map_err(|error| format!("the host name cannot be set: {error}"))?;
        interface::set_up("lo").map_err(|error| format!("the loopback cannot be used: {error}"))?;
        if let Some(one) = &order.interface {
            interface::set_address(&one.name, one.address.into(), one.prefix)
                .and_then(|()| interface::set_up(&one.name))
                .map_err(|error| format!("the network interface {} cannot be used: {error}", one.name))?;
        }
        let state = State { root: Some(Root::mount(order)?), services: Vec::new(), told: Vec::new() };
        Ok(Self {
            children: Children::new().map_err(|error| format!("no thread can be started: {error}"))?,
            state: Mutex::new(state),
            stopping: AtomicBool::new(false),
            oom_kills_before: oom_kills(),
        })
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn run(
        &self,
        order: &CommandOrder,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<CommandEnd, String> {
        let root = self.root_path()?;
        let program =
            Program::start(&self.children, &root, &order.words, &order.user, &BTreeMap::new(), &[])?;
        let (begun, limit) = (Instant::now(), Duration::from_nanos(order.limit_ns));
        let end = loop {
            let left = limit.saturating_sub(begun.elapsed());
            if let Some(end) = self.children.wait_within(program.pid, left.min(LOOK_INTERVAL)) {
                break Some(end);
            }
            if left.is_zero() || is_stopped() {
                break None;
            }
        };
        self.children.finish(program.pid);
        program.output.settle(LOOK_INTERVAL);
        Ok(CommandEnd {
            exit_code: end.and_then(|end| end.exit_code),
            signal: end.and_then(|end| end.signal),
            timed_out: end.is_none(),
            output: program.output.text(),
            output_bytes: program.output.total_bytes(),
        })
    }

    /// Starts services, each once the one before is ready.
    ///
    /// # Errors
    /// One does not start; those before it go on.
    pub(crate) fn start(
        &self,
        services: &[Service],
        is_stopped: &dyn Fn() -> bool,
        mut on_ready: impl FnMut(&str, Duration),
    ) -> Result<(), ServiceFailure> {
        for service in services {
            let failed = |why| ServiceFailure { service: service.name.clone(), why, log: Vec::new() };
            let root = self.root_path().map_err(failed)?;
            carried::carry(&root, &service.command).map_err(failed)?;
            let running = Running::start(&self.children, &root, service)?;
            let is_stopped = || is_stopped() || self.is_stopping();
            match running.wait_until_ready(&self.children, &root, &is_stopped) {
                Ok(took) => {
                    self.lock().services.push(running);
                    on_ready(&service.name, took);
                }
                Err(mut failure) => {
                    failure.why += &self.fullness();
                    // Its log stays to be asked for.
                    self.children.finish(running.program.pid);
                    let mut state = self.lock();
                    state.told.push(service.name.clone());
                    state.services.push(running);
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Tells of every service that ends by itself, until everything is stopped or `is_over`.
    pub(crate) fn watch(&self, is_over: &dyn Fn() -> bool, mut on_crash: impl FnMut(ServiceFailure)) {
        while !is_over() && !self.is_stopping() {
            let services: Vec<Running> = self.lock().services.clone();
            for running in services {
                let Some(end) = self.children.end(running.program.pid) else { continue };
                let name = &running.service.name;
                let is_new = {
                    let mut state = self.lock();
                    let is_new = !self.is_stopping() && !state.told.contains(name);
                    if is_new {
                        state.told.push(name.clone());
                    }
                    is_new
                };
                if is_new {
                    let mut failure = running.crash(end);
                    failure.why += &self.fullness();
                    on_crash(failure);
                }
            }
            self.children.wait_for_any(LOOK_INTERVAL);
        }
    }

    /// How it is.
    pub(crate) fn state(&self) -> ApplianceState {
        let state = self.lock();
        let is_running = |running: &&Running| self.children.end(running.program.pid).is_none();
        let space = state.root.as_ref().and_then(|root| statvfs(root.data.as_ref()?).ok());
        ApplianceState {
            running: state
                .services
                .iter()
                .filter(|running| !state.told.contains(&running.service.name))
                .filter(is_running)
                .map(|running| running.service.name.clone())
                .collect(),
            oom_kills: oom_kills().saturating_sub(self.oom_kills_before),
            data_bytes: space.as_ref().map(|space| space.f_blocks * space.f_frsize),
            data_free_bytes: space.as_ref().map(|space| space.f_bavail * space.f_frsize),
        }
    }

    /// The end of what a service has written.
    ///
    /// # Errors
    /// There is no such service.
    pub(crate) fn log(&self, service: &str) -> Result<String, String> {
        let state = self.lock();
        let found = state.services.iter().rev().find(|running| running.service.name == service);
        found
            .map(|running| running.program.output.text())
            .ok_or_else(|| format!("there is no service {service:?} that was started"))
    }

    /// Stops the services in reverse order, then does as [`end`](Self::end) does.
    pub(crate) fn stop(&self) -> (Vec<ServiceEnd>, Vec<String>) {
        self.stopping.store(true, Ordering::Release);
        let (services, told) = {
            let state = self.lock();
            (state.services.clone(), state.told.clone())
        };
        let running = services.iter().rev().filter(|running| !told.contains(&running.service.name));
        let ends = running.map(|running| running.stop(&self.children)).collect();
        (ends, self.end())
    }

    /// Kills what runs and unmounts everything; returns what could not be done in good order.
    pub(crate) fn end(&self) -> Vec<String> {
        self.stopping.store(true, Ordering::Release);
        let mut notes = Vec::new();
        if !self.children.kill_all(KILL_LIMIT) {
            notes.push("a process did not end although it was killed".to_owned());
        }
        let root = self.lock().root.take();
        notes.extend(root.map(Root::unmount).unwrap_or_default());
        notes
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn root_path(&self) -> Result<std::path::PathBuf, String> {
        let state = self.lock();
        state
            .root
            .as_ref()
            .map(|root| root.path.clone())
            .ok_or_else(|| "the appliance has been stopped".to_owned())
    }

    /// What to add to a failure if the data's file system is full.
    fn fullness(&self) -> String {
        match self.state() {
            ApplianceState { data_bytes: Some(all), data_free_bytes: Some(free), .. }
                if free < all / FULL_PART =>
            {
                format!(
                    "; the file system of the data is full ({free} of {all} bytes are free): raise data.size in the recipe"
                )
            }
            _ => String::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
