//! `virtbench fence serve` and `virtbench fence format`
//!
//! `virtbench fence serve` of a configuration with pools: a daemon for each, in a process of its own, so that what ends or
//! holds up one leaves the others' disks alone.
//!
//! A daemon's stdin is a pipe whose other end is here. It ends in good order when that is closed, which the kernel does when
//! this process is gone: no daemon outlives it, however it ended.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{
    Daemon, Process, confine, end_at_once, ignore_hang_up, leave_signals_to_others,
};

use super::pools::{chosen, each, failure, load, load_again, prefix, rank, within};
use crate::args::fence::{FormatArgs, ServeArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;
use crate::{interrupt, progress};

/// How long a daemon may take to end: longer than it waits for requests, shorter than systemd waits for it.
const END_LIMIT: Duration = Duration::from_secs(15);

/// Serves until it is interrupted, which is how it ends well. Each of several pools has a process of its own.
pub fn execute(args: &ServeArgs) -> Outcome {
    let pools = if args.supervised { load_again(&args.config) } else { load(&args.config) }?;
    match &chosen(&pools, &args.only)?[..] {
        [fence] => serve(fence, args.supervised).map_err(|failure| within(fence, failure)),
        fences => supervise(fences),
    }
}

fn serve(config: &Config, is_supervised: bool) -> Outcome {
    let pool = prefix(config);
    let stopper = Stopper::new()?;
    let (stop, limit) = (stopper.clone(), end_in_time(pool.clone())?);
    let end = move || {
        stop.stop();
        let _ = limit.try_send(());
    };
    if is_supervised {
        end_with_supervisor(end.clone())?;
    }
    // From here on, as a device may take its time to be opened.
    interrupt::on_request(end);
    // A terminal that closes takes no disks away from guests.
    ignore_hang_up();
    leave_signals_to_others();
    let daemon = Daemon::start(config, stopper).map_err(failure)?;
    for line in &daemon.served {
        tell!("virtbench fence: {pool}{line}");
    }
    if config.limits.confine {
        confine().map_err(|error| Failure::new(Kind::Environment, error))?;
    }
    daemon.run().map_err(failure)
}

/// A thread that has the daemon end once nobody holds the other end of its stdin: the supervisor wants that, or is gone,
/// however it ended.
fn end_with_supervisor(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let wait = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        end();
    };
    thread::Builder::new().name("supervised".into()).spawn(wait)?;
    Ok(())
}

/// A thread that ends the process some time after it was told to, whatever the others do: that is no more than a kill, after
/// which whatever was answered is there. It is begun early, since a confined daemon begins no threads.
fn end_in_time(pool: String) -> io::Result<SyncSender<()>> {
    let (tell, told) = sync_channel(1);
    let wait = move || {
        if told.recv().is_ok() {
            thread::sleep(END_LIMIT);
            tell!(
                "virtbench fence: {pool}not ended after {END_LIMIT:?}: gives up as if killed; what was answered is kept"
            );
            // Without anything that a thread in the middle of a call could hold up.
            end_at_once(Kind::Other as u8);
        }
    };
    thread::Builder::new().name("end".into()).spawn(wait)?;
    Ok(tell)
}

/// Prepares devices.
pub fn format(args: &FormatArgs) -> Outcome {
    let pools = load(&args.config)?;
    each(&chosen(&pools, &args.only)?, |fence| {
        progress::during("formatting", || virtbench_fence_daemon::format(fence, args.force)).map_err(failure)
    })
}

/// How long a daemon that failed is not begun again: longer each time, unless it has served for the longest in between.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long daemons may take to end: longer than they give themselves.
const ALL_END_LIMIT: Duration = Duration::from_secs(18);

/// The same once they have been killed. One whose request a device holds goes when the device answers.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// What is told to the thread that supervises.
enum Event {
    /// The daemon of the pool at this place has ended.
    Ended(usize, io::Result<ExitStatus>),
    Stop,
}

/// A daemon that runs.
struct Running {
    since: Instant,
    /// It ends when this is closed.
    stdin: Option<ChildStdin>,
    process: Option<Process>,
}

/// How the last daemon of a pool ended.
struct Ended {
    how: String,
    kind: Kind,
}

/// A pool, and how it stands.
struct Pool {
    name: String,
    running: Option<Running>,
    ended: Option<Ended>,
    pause: Duration,
    again: Option<Instant>,
}

/// Serves all of them until it is told to end or none is served any more. A pool whose daemon fails meanwhile is begun again.
pub fn supervise(fences: &[&Config]) -> Outcome {
    let (events, told) = sync_channel(fences.len() + 1);
    let stop = events.clone();
    interrupt::on_request(move || drop(stop.try_send(Event::Stop)));
    ignore_hang_up();
    let name = |fence: &&Config| fence.pool.clone().unwrap_or_default();
    let mut pools: Vec<Pool> = fences.iter().map(name).map(Pool::new).collect();
    for (place, pool) in pools.iter_mut().enumerate() {
        pool.begin(place, &events);
    }
    while pools.iter().any(Pool::runs) {
        match wait(&pools, &told) {
            Some(Event::Ended(place, status)) => pools[place].has_ended(status),
            Some(Event::Stop) => {
                end(&mut pools, &told);
                break;
            }
            None => {}
        }
        let now = Instant::now();
        let others = pools.iter().any(Pool::runs);
        for (place, pool) in pools.iter_mut().enumerate() {
            if others && pool.again.is_some_and(|again| again <= now) {
                pool.begin(place, &events);
            }
        }
    }
    outcome(&pools)
}

/// Until something happens, or a daemon is to be begun again.
fn wait(pools: &[Pool], told: &Receiver<Event>) -> Option<Event> {
    let Some(again) = pools.iter().filter_map(|pool| pool.again).min() else { return told.recv().ok() };
    told.recv_timeout(again.saturating_duration_since(Instant::now())).ok()
}

/// Has all daemons end, in good order as long as that takes no longer than it may.
fn end(pools: &mut [Pool], told: &Receiver<Event>) {
    for pool in &mut *pools {
        pool.again = None;
        if let Some(running) = &mut pool.running {
            running.stdin = None;
        }
    }
    await_ends(pools, told, ALL_END_LIMIT);
    for pool in &*pools {
        if let Some(process) = pool.running.as_ref().and_then(|running| running.process.as_ref()) {
            tell!("virtbench fence: pool {}: not ended after {ALL_END_LIMIT:?}: it is killed", pool.name);
            process.kill();
        }
    }
    await_ends(pools, told, KILL_LIMIT);
}

fn await_ends(pools: &mut [Pool], told: &Receiver<Event>, limit: Duration) {
    let until = Instant::now() + limit;
    while pools.iter().any(Pool::runs) {
        match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Ended(place, status)) => {
                let ended = Ended::of(&status);
                pools[place].running = None;
                pools[place].ended = ended;
            }
            Ok(Event::Stop) => {}
            Err(_) => return,
        }
    }
}

/// The worst of how the pools stand.
fn outcome(pools: &[Pool]) -> Outcome {
    let stands = |pool: &Pool| {
        if pool.runs() {
            return Some((format!("pool {}: its daemon does not end", pool.name), Kind::Other));
        }
        let ended = pool.ended.as_ref()?;
        Some((format!("pool {}: its daemon {}", pool.name, ended.how), ended.kind))
    };
    let failed: Vec<(String, Kind)> = pools.iter().filter_map(stands).collect();
    let Some((_, worst)) = failed.iter().min_by_key(|(_, kind)| rank(*kind)) else { return Ok(()) };
    let all: Vec<&str> = failed.iter().map(|(how, _)| how.as_str()).collect();
    Err(Failure::message(*worst, all.join("; ")))
}

impl Pool {
    const fn new(name: String) -> Self {
        Self { name, running: None, ended: None, pause: FIRST_PAUSE, again: None }
    }

    const fn runs(&self) -> bool {
        self.running.is_some()
    }

    fn begin(&mut self, place: usize, events: &SyncSender<Event>) {
        self.again = None;
        match begin(&self.name, place, events) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                let how = format!("cannot be begun: {error}");
                self.failed(Ended { how, kind: Kind::Environment });
            }
        }
    }

    /// Its daemon has ended, though nobody here wanted that.
    fn has_ended(&mut self, status: io::Result<ExitStatus>) {
        let served = self.running.take().map(|running| running.since.elapsed());
        if served.is_some_and(|served| served >= LONGEST_PAUSE) {
            self.pause = FIRST_PAUSE;
        }
        match Ended::of(&status) {
            Some(ended) => self.failed(ended),
            None => {
                self.ended = None;
                if !interrupt::requested() {
                    tell!(
                        "virtbench fence: pool {}: its daemon has ended in good order, and is not begun again",
                        self.name
                    );
                }
            }
        }
    }

    fn failed(&mut self, ended: Ended) {
        tell!(
            "virtbench fence: pool {}: its daemon {}; as long as another pool is served, it is begun again in {:?}",
            self.name,
            ended.how,
            self.pause
        );
        self.ended = Some(ended);
        self.again = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

impl Ended {
    /// Nothing of one that ended well.
    fn of(status: &io::Result<ExitStatus>) -> Option<Self> {
        let other = |how| Some(Self { how, kind: Kind::Other });
        match status {
            Ok(status) if status.success() => None,
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => {
                    Some(Self { how: format!("ended with exit code {code}"), kind: Kind::of_code(code) })
                }
                (None, Some(signal)) => other(format!("was killed by signal {signal}")),
                (None, None) => other(format!("ended: {status}")),
            },
            Err(error) => other(format!("is not known to run: {error}")),
        }
    }
}

/// Begins a daemon, and a thread that waits for its end.
fn begin(pool: &str, place: usize, events: &SyncSender<Event>) -> io::Result<Running> {
    let mut words: Vec<_> = env::args_os().skip(1).collect();
    let serve = words.iter().position(|word| word == "serve").map_or(words.len(), |place| place + 1);
    words.splice(serve..serve, ["--supervised", "--pool", pool].map(Into::into));
    // This program, also once another version has taken its name.
    let mut child =
        Command::new("/proc/self/exe").arg0("virtbench").args(words).stdin(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    let process = Process::of(&child).ok();
    let events = events.clone();
    let wait = move |mut child: Child| {
        let status = child.wait();
        let _ = events.send(Event::Ended(place, status));
    };
    thread::Builder::new().name(format!("pool {pool}")).spawn(move || wait(child))?;
    Ok(Running { since: Instant::now(), stdin, process })
}
