//! An appliance: real software in a root of its own, run by the agent.

mod children;
mod full_init;
mod program;
mod root;
mod services;
mod unit;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::fs::statvfs;
use rustix::process::{Pid, getpid};
use rustix::system::sethostname;
use virtbench_recipe::Service;
use virtbench_record::CommandEnd;

use self::children::Children;
use self::full_init::FullInit;
use self::program::{Interior, Program};
use self::root::Root;
use self::services::{Running, oom_kills};
use self::unit::write_units;
use crate::path_cost::{self, IDLE_LIMIT, kind_of};
use crate::protocol::appliance::{
    AddressOrder, ApplianceState, CommandOrder, InterfaceOrder, MountOrder, ServiceEnd, ServiceFailure,
};
use crate::{dhcp, interface};

/// How often somebody who waits looks whether he is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How long what is left may take to end once it is killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A file system with less than this part of it free is said to be full.
const FULL_PART: u64 = 200;

/// What the agent runs. Threads share it.
pub(crate) struct Appliance {
    /// At which clients come, beside the loopback.
    pub(crate) address: Option<Ipv4Addr>,
    children: Children,
    state: Mutex<State>,
    /// Whether services may end.
    stopping: AtomicBool,
    oom_kills_before: u64,
}

struct State {
    root: Option<Root>,
    /// The root's own init, once it runs.
    init: Option<Arc<FullInit>>,
    services: Vec<Running>,
    /// Names of those whose end was told.
    told: Vec<String>,
}

/// Switches an interface on, with its address, which is returned.
fn connect(order: &InterfaceOrder) -> Result<Ipv4Addr, String> {
    let name = order.name.as_str();
    let failed = |error: io::Error| format!("the network interface {name} cannot be used: {error}");
    interface::set_up(name).map_err(failed)?;
    let (address, prefix, router) = match order.address {
        AddressOrder::Fixed { address, prefix } => (address.into(), prefix, None),
        AddressOrder::Granted => {
            let lease = dhcp::lease(name)?;
            (lease.address, lease.prefix, lease.router)
        }
    };
    interface::set_address(name, address, prefix).map_err(failed)?;
    router.map_or(Ok(()), interface::set_default_route).map_err(failed)?;
    Ok(address)
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
        let address = order.interface.as_ref().map(connect).transpose()?;
        for link in &order.links {
            connect(link)?;
        }
        let root = Some(Root::mount(order)?);
        let state = State { root, init: None, services: Vec::new(), told: Vec::new() };
        Ok(Self {
            address,
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
        let place = self.place()?;
        let program =
            Program::start(&self.children, &place, &order.words, &order.user, &BTreeMap::new(), &[])?;
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
        let init = self.init(services, is_stopped)?;
        for service in services {
            let failed = |why| ServiceFailure { service: service.name.clone(), why, log: Vec::new() };
            let root = self.root_path().map_err(failed)?;
            program::carry(&root, &service.command).map_err(failed)?;
            let running = Running::start(&self.children, &root, init.as_deref(), service)?;
            let place = self.place().map_err(failed)?;
            let is_stopped = || is_stopped() || self.is_stopping();
            match running.wait_until_ready(&self.children, &place, &is_stopped) {
                Ok(took) => {
                    self.lock().services.push(running);
                    on_ready(&service.name, took);
                }
                Err(mut failure) => {
                    failure.why += &self.fullness();
                    // Its log stays to be asked for.
                    running.finish(&self.children);
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
                let name = &running.service.name;
                if self.lock().told.contains(name) {
                    continue;
                }
                let Some(end) = running.end(&self.children) else { continue };
                let is_new = {
                    let mut state = self.lock();
                    let is_new = !self.is_stopping() && !state.told.contains(name);
                    if is_new {
                        state.told.push(name.clone());
                    }
                    is_new
                };
                if is_new {
                    let mut failure = running.crash(&end);
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
        let is_running = |running: &&Running| running.end(&self.children).is_none();
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
        found.map(Running::log).ok_or_else(|| format!("there is no service {service:?} that was started"))
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
        let init = self.lock().init.clone();
        let mut notes: Vec<String> = init.and_then(|init| init.stop(&self.children)).into_iter().collect();
        notes.extend(self.end());
        (ends, notes)
    }

    /// Kills what runs and unmounts everything; returns what could not be done in good order.
    pub(crate) fn end(&self) -> Vec<String> {
        self.stopping.store(true, Ordering::Release);
        let mut notes = Vec::new();
        if !self.children.kill_all(KILL_LIMIT) {
            notes.push("a process did not end although it was killed".to_owned());
        }
        let (root, init, services) = {
            let mut state = self.lock();
            (state.root.take(), state.init.take(), state.services.clone())
        };
        services.iter().for_each(Running::release);
        if let Some(init) = init {
            init.forget(&self.children);
        }
        notes.extend(root.map(Root::unmount).unwrap_or_default());
        notes
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The root's own init where it has to run, with the units of these services.
    fn init(
        &self,
        services: &[Service],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Arc<FullInit>>, ServiceFailure> {
        let failed = |why| ServiceFailure { service: "init".into(), why, log: Vec::new() };
        let root = self.root_path().map_err(failed)?;
        let groups = self.lock().root.as_ref().and_then(|root| root.control_groups.clone());
        let Some(groups) = groups else { return Ok(None) };
        write_units(&root, services).map_err(failed)?;
        if let Some(init) = self.lock().init.clone() {
            FullInit::control(&self.children, &init.interior, &["daemon-reload"], Duration::from_secs(60))
                .map_err(failed)?;
            return Ok(Some(init));
        }
        let is_stopped = || is_stopped() || self.is_stopping();
        let init = FullInit::start(&self.children, &root, &groups, &is_stopped);
        let init = Arc::new(init.map_err(|(why, log)| ServiceFailure { log, ..failed(why) })?);
        self.lock().init = Some(Arc::clone(&init));
        Ok(Some(init))
    }

    /// Where programs are started.
    fn place(&self) -> Result<Interior, String> {
        let root = self.root_path()?;
        let init = self.lock().init.clone();
        Ok(init.map_or_else(|| Interior::of_root(root), |init| init.interior.clone()))
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

/// Measurements at once.
const MOST_CONNECTIONS: usize = 8;

/// Answers on this port from now on, until the agent ends.
///
/// # Errors
/// The port is taken.
pub(crate) fn serve_path(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    thread::Builder::new().name("path".into()).spawn(move || {
        let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
        for stream in listener.incoming().flatten() {
            threads.retain(|thread| !thread.is_finished());
            // One more is hung up on.
            if threads.len() < MOST_CONNECTIONS {
                threads.extend(thread::Builder::new().spawn(move || drop(answer(stream))));
            }
        }
    })?;
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let kind = kind_of(&mut stream, IDLE_LIMIT)?;
    path_cost::answer(kind, stream)
}
