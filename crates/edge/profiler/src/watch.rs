//! Watching an application for a while.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use procfs::process::{Process, StatFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;
use virtbench_counters::{Disk, Instruments, LeaveOut, Look};
use virtbench_record::{Footprint, Profile, ProfileError, Source, Sourced};

use crate::analysis::{Analysis, Machine, Summary, Whose};
use crate::application::{Application, ApplicationError, bad_end};
use crate::block_stat::{self, Devices, DiskCounters};
use crate::event::parse_line;
use crate::figures::{Observation, figures};
use crate::tracefs::Tracing;
use crate::tree::{Accounts, Tree, kernel_thread_ticks};

/// Between two looks at the events.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at the processes, where their accounts can be read after they have ended, and where
/// they cannot.
const SAMPLE_EVERY: [Duration; 2] = [Duration::from_millis(100), PAUSE];
/// An application that lives shorter than this says nothing about rates.
const SHORTEST: Duration = Duration::from_millis(250);
/// One whose work is told by a metric says nothing about its processor time, below this.
const SHORTEST_OF_METRIC: Duration = Duration::from_millis(50);

/// How long an application is watched.
#[derive(Debug, Clone)]
pub struct Limits {
    /// From its start, or from now: not looked at.
    pub ramp: Duration,
    /// After that: looked at, at most.
    pub time: Duration,
    /// Whether the block layer's events may be used.
    pub tracing: bool,
    /// Whether its I/O is what tells how much it does. Where a metric does, it need not have any.
    pub io_needed: bool,
    /// The disk that its footprint is of; all disks where there is none.
    pub disk: Option<Disk>,
}

/// Why there is no profile.
#[derive(Debug, Error)]
pub enum ProfilerError {
    /// There is nothing to watch.
    #[error(transparent)]
    Application(#[from] ApplicationError),
    /// It ended too soon.
    #[error(
        "{name} ended after {elapsed_ms} ms{how}: that is too short to tell rates; profile what it starts (--pid), or \
         give it more to do{ramp}"
    )]
    TooShort {
        /// What it is.
        name: String,
        /// How long it was looked at, in milliseconds.
        elapsed_ms: u128,
        /// How it ended, if badly.
        how: String,
        /// What the ramp-up has to do with it.
        ramp: &'static str,
    },
    /// It left storage alone.
    #[error(
        "{name} moved no data to or from storage in {seconds:.1} s ({calls} reading and writing system calls): all its \
         files may be in memory (page cache, tmpfs), so there is no I/O to predict; with a metric (--metric elapsed) its \
         processor time is"
    )]
    NoIo {
        /// What it is.
        name: String,
        /// How long it was looked at, in seconds.
        seconds: f64,
        /// System calls that read or write.
        calls: u64,
    },
    /// The kernel does not permit it.
    #[error("the I/O accounts of {name} cannot be read: profile it as its own user, or as root")]
    Hidden {
        /// What it is.
        name: String,
    },
    /// The figures contradict each other.
    #[error("what was seen cannot be: {0}")]
    Contradiction(#[from] ProfileError),
}

/// This machine.
struct Here<'a> {
    tree: &'a Tree,
    devices: Devices,
}

impl Machine for Here<'_> {
    fn whose(&mut self, thread: u32) -> Whose {
        let stat = i32::try_from(thread).ok().and_then(|id| Process::new(id).ok()?.stat().ok());
        match stat {
            Some(stat) if stat.flags().is_ok_and(|flags| flags.contains(StatFlags::PF_KTHREAD)) => {
                Whose::Kernel
            }
            Some(_) if self.tree.threads().contains(&thread) => Whose::Ours,
            _ => Whose::Other,
        }
    }

    fn disk(&mut self, device: (u32, u32)) -> Option<(u32, u32)> {
        self.devices.disk(device)
    }
}

/// Accounts at one moment.
#[derive(Debug, Clone)]
struct Moment {
    at: Instant,
    at_s: f64,
    accounts: Accounts,
    disks: std::collections::BTreeMap<String, DiskCounters>,
    kernel_ticks: u64,
    footprint: Option<Footprint>,
}

impl Moment {
    fn now(tree: &mut Tree, look: &Look) -> Self {
        let accounts = tree.sample();
        Self {
            at_s: monotonic_s(),
            accounts,
            footprint: look.take(accounts.copied_bytes),
            disks: block_stat::disks(),
            kernel_ticks: kernel_thread_ticks(),
            at: Instant::now(),
        }
    }
}

fn monotonic_s() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Watches what `start` gives until it ends, the time is over or `stop` is set, and says what it did.
/// Tracing begins before `start` is called, so that nothing is missed. What was started is ended.
///
/// # Errors
/// There is nothing to watch, it ended too soon, or it did no I/O.
pub fn profile(
    start: impl FnOnce() -> Result<Application, ApplicationError>,
    limits: &Limits,
    stop: &AtomicBool,
) -> Result<Profile, ProfilerError> {
    let mut tracing = if limits.tracing {
        Tracing::start().map_err(|error| error.to_string())
    } else {
        Err("it was not to be used (--no-trace)".into())
    };
    let application = start()?;
    let name = application.command().join(" ");
    let command = application.started().to_vec();
    let mut tree = application.tree();
    let mut analysis = Analysis::default();
    analysis.include([application.process_id()]);
    analysis.include(tree.threads());
    let mut first_process = FirstProcess::of(&application);
    let watched = watch(&mut tracing, &mut analysis, &mut tree, &mut first_process, limits, stop);
    let status = application.end(&tree);
    // The last events, which came while it was being ended, still tell response times.
    analysis.until_s = Some(watched.last.at_s);
    if let Ok(tracing) = &tracing {
        tracing.stop();
    }
    // The buffers are finite, and nothing is added to them now.
    while !drain(&mut tracing, &mut analysis, &tree) {}
    let elapsed = watched.last.at.saturating_duration_since(watched.first.at);
    let shortest = if limits.io_needed { SHORTEST } else { SHORTEST_OF_METRIC };
    if elapsed < shortest && watched.ended {
        return Err(too_short(name, elapsed, status, limits));
    }
    let seen = seen(name, &watched, &tree, tracing.map(|_| analysis.finish()));
    let calls = seen.accounts.read_calls + seen.accounts.write_calls;
    let mut profile = figures(&seen);
    profile.command = command;
    if !profile.io_per_second.value().is_some_and(|rate| *rate > 0.0) {
        if seen.hidden_processes > 0 {
            return Err(ProfilerError::Hidden { name: seen.name });
        }
        let (name, seconds) = (seen.name, elapsed.as_secs_f64());
        if limits.io_needed {
            return Err(ProfilerError::NoIo { name, seconds, calls });
        }
        profile.io_per_second = Sourced::known(0.0, Source::ProcessIo);
        profile.notes.push(format!("It moved no data to or from storage in {seconds:.1} s."));
    }
    if let Some(how) = status.and_then(bad_end) {
        profile.notes.push(format!("The application ended with {how}."));
    }
    if !watched.ended && !stop.load(Ordering::Relaxed) {
        profile
            .notes
            .push(format!("It was watched for {:.1} s and had not ended by then.", elapsed.as_secs_f64()));
    }
    // Without I/O it is the metric, read later, that makes it a whole profile.
    if profile.rate() > 0.0 { Ok(profile.without_contradiction()?) } else { Ok(profile) }
}

/// The application's first process, whose end is known at once: a short one's time is that of its end and not of the next look.
struct FirstProcess(Option<OwnedFd>);

impl FirstProcess {
    fn of(application: &Application) -> Self {
        let id = i32::try_from(application.process_id()).ok().and_then(Pid::from_raw);
        Self(id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok()))
    }

    /// Waits for the next look, or for its end.
    fn pause(&mut self) {
        let Some(process) = &self.0 else { return thread::sleep(PAUSE) };
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(PAUSE.subsec_nanos()) };
        if poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&pause)) != Ok(0) {
            // Others may go on without it.
            self.0 = None;
        }
    }
}

struct Watched {
    first: Moment,
    last: Moment,
    ended: bool,
    workers: u32,
    /// What the machine did, or why that is not known.
    footprint: Result<Footprint, String>,
}

fn watch(
    tracing: &mut Result<Tracing, String>,
    analysis: &mut Analysis,
    tree: &mut Tree,
    first_process: &mut FirstProcess,
    limits: &Limits,
    stop: &AtomicBool,
) -> Watched {
    let begun = Instant::now();
    let instruments = Instruments { functions: true, crossings: false };
    let look = Look::new(instruments, LeaveOut::ThisThread).of_disk(limits.disk.clone());
    let mut first = Moment::now(tree, &look);
    let mut last = first.clone();
    let mut ramping = !limits.ramp.is_zero();
    let mut ended = false;
    let mut workers = 0;
    let sample_every = SAMPLE_EVERY[usize::from(!rustix::process::geteuid().is_root())];
    analysis.from_s = if ramping { f64::INFINITY } else { 0.0 };
    while !ended && !stop.load(Ordering::Relaxed) {
        if drain(tracing, analysis, tree) {
            first_process.pause();
        }
        if ramping && begun.elapsed() >= limits.ramp {
            first = Moment::now(tree, &look);
            look.forget();
            last = first.clone();
            analysis.from_s = first.at_s;
            ramping = false;
        }
        ended = Application::has_ended(tree);
        if last.at.elapsed() >= sample_every || ended {
            analysis.include(tree.threads());
            workers = workers.max(issuing_threads(tree));
            let moment = Moment::now(tree, &look);
            if ended && tree.processes().is_empty() {
                // A process that was found running is gone, and its accounts with it.
                break;
            }
            last = moment;
        }
        if !ramping && first.at.elapsed() >= limits.time {
            break;
        }
    }
    if ramping {
        first = last.clone();
        look.forget();
        analysis.from_s = first.at_s;
    }
    let footprint = footprint(&look, &first, &last);
    Watched { first, last, ended, workers, footprint }
}

/// Threads that have moved more than a hundredth of all data, while their accounts can be read.
fn issuing_threads(tree: &Tree) -> u32 {
    let tasks = |process: &Process| process.tasks().into_iter().flatten().flatten().collect::<Vec<_>>();
    let moved: Vec<u64> = tree
        .processes()
        .iter()
        .flat_map(tasks)
        .filter_map(|task| task.io().ok().map(|io| io.read_bytes + io.write_bytes))
        .collect();
    let all: u64 = moved.iter().sum();
    u32::try_from(moved.iter().filter(|bytes| **bytes * 100 > all).count()).unwrap_or(u32::MAX)
}

/// Takes in a bounded part of what has happened. `false` where more may be there still.
fn drain(tracing: &mut Result<Tracing, String>, analysis: &mut Analysis, tree: &Tree) -> bool {
    let Ok(events) = tracing else { return true };
    let mut here = Here { tree, devices: Devices::default() };
    let drained = events.drain(|line| {
        if let Some(event) = parse_line(line) {
            analysis.take(event, &mut here);
        }
    });
    drained.unwrap_or_else(|error| {
        *tracing = Err(error.to_string());
        true
    })
}

fn seen(name: String, watched: &Watched, tree: &Tree, events: Result<Summary, String>) -> Observation {
    let Watched { first, last, .. } = watched;
    let moved = last.disks.iter().filter_map(|(name, counters)| {
        let moved = counters.since(*first.disks.get(name)?);
        (moved.reads + moved.writes > 0).then(|| (name.clone(), moved))
    });
    Observation {
        name,
        elapsed: last.at.saturating_duration_since(first.at),
        accounts: last.accounts.since(first.accounts),
        disks: moved.collect(),
        kernel_ticks: last.kernel_ticks.saturating_sub(first.kernel_ticks),
        events,
        issuing_threads: watched.workers,
        hidden_processes: tree.hidden,
        footprint: watched.footprint.clone(),
    }
}

fn footprint(look: &Look, first: &Moment, last: &Moment) -> Result<Footprint, String> {
    if let Some(why) = look.trouble() {
        return Err(why);
    }
    let both = first.footprint.as_ref().zip(last.footprint.as_ref());
    both.map(|(first, last)| look.between(first, last))
        .ok_or_else(|| "the machine's accounts could not be read".into())
}

fn too_short(name: String, elapsed: Duration, status: Option<ExitStatus>, limits: &Limits) -> ProfilerError {
    let how = status.and_then(bad_end).map_or_else(String::new, |how| format!(" with {how}"));
    let ramp = if limits.ramp.is_zero() { "" } else { ", or less ramp-up (--ramp)" };
    ProfilerError::TooShort { name, elapsed_ms: elapsed.as_millis(), how, ramp }
}
