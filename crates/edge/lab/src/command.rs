//! Commands of others, run to their end: bounded in time, and nothing of them is left, not even by a kill -9.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process_group};
use thiserror::Error;

use crate::child::{BoundChild, describe_end};

/// Between two looks at whether it is to stop.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the user of the terminal has to leave it.
const LEAVE: Duration = Duration::from_secs(1);
/// Lines that wait to be told; then the command waits to write more.
const MOST_LINES: usize = 1024;
/// Of one line so much is told at once, in bytes.
const LONGEST_LINE: u64 = 1 << 16;
/// How much of what it says last is kept, in bytes.
const MOST_WORDS: usize = 4096;

/// Why a command did not do what it was to do.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It cannot be started.
    #[error("{what} cannot be started: {source}")]
    Start {
        /// What it was for.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// It failed.
    #[error("{what} {how}: {said}")]
    Failed {
        /// What it was for.
        what: String,
        /// How it ended, in words.
        how: String,
        /// Its exit code, where it ended by itself.
        code: Option<i32>,
        /// What it said last on stderr.
        said: String,
    },
    /// It took too long, and was ended.
    #[error("{what} was not done after {} s", limit.as_secs())]
    TooLong {
        /// What it was for.
        what: String,
        /// How long it may take.
        limit: Duration,
    },
    /// It was ended because `stop` was set.
    #[error("{what} was stopped")]
    Stopped {
        /// What it was for.
        what: String,
    },
}

/// Runs a command, of which `what` says what it is for, to its end. Its output goes nowhere but into an
/// error. Every process that it leaves in its process group is killed with it, and when this process ends.
///
/// # Errors
/// It cannot be started, fails, takes longer than `limit`, or `stop` was set.
pub fn run_command(
    command: Command,
    what: &str,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<(), CommandError> {
    run_to_end(command, what, Until { limit, stop, leave: Duration::ZERO }, None)
}

/// The same for a command whose output is followed: `told` is given every line that it writes on stdout or stderr.
///
/// # Errors
/// As for [`run_command`].
pub fn run_command_followed(
    command: Command,
    what: &str,
    limit: Duration,
    stop: &AtomicBool,
    told: &mut dyn FnMut(&str),
) -> Result<(), CommandError> {
    run_to_end(command, what, Until { limit, stop, leave: Duration::ZERO }, Some(told))
}

/// The same for a program that keeps what it has where it is interrupted: when `stop` is set it is sent an interrupt, and has `leave` to
/// end by itself.
///
/// # Errors
/// As for [`run_command`].
pub fn run_command_interrupted(
    command: Command,
    what: &str,
    (limit, leave): (Duration, Duration),
    stop: &AtomicBool,
    told: &mut dyn FnMut(&str),
) -> Result<(), CommandError> {
    run_to_end(command, what, Until { limit, stop, leave }, Some(told))
}

/// How long a command may run.
#[derive(Clone, Copy)]
struct Until<'a> {
    limit: Duration,
    stop: &'a AtomicBool,
    /// After an interrupt, which it is sent when `stop` is set; none of no time.
    leave: Duration,
}

fn run_to_end(
    mut command: Command,
    what: &str,
    until: Until<'_>,
    mut told: Option<&mut dyn FnMut(&str)>,
) -> Result<(), CommandError> {
    let failed = |source| CommandError::Start { what: what.to_owned(), source };
    let (reader, writer) = io::pipe().map_err(failed)?;
    let stdout = match told {
        Some(_) => writer.try_clone().map_err(failed)?.into(),
        None => Stdio::null(),
    };
    command.stdin(Stdio::null()).stdout(stdout).stderr(writer);
    // Before the command, so that there is no moment at which a kill would leave it.
    let group = Group::watched().map_err(failed)?;
    let mut child = BoundChild::spawn_in(command, Vec::new(), group.number).map_err(failed)?;
    let (lines, heard) = sync_channel(MOST_LINES);
    let lines = told.is_some().then_some(lines);
    let listener = thread::spawn(move || last_words(reader, lines.as_ref()));
    let mut tell = |line: String| {
        if let Some(told) = &mut told {
            told(&line);
        }
    };
    let begun = Instant::now();
    let mut interrupted: Option<Instant> = None;
    let stopped = || CommandError::Stopped { what: what.to_owned() };
    let status = loop {
        let ended = child.wait_within(PAUSE).map_err(failed)?;
        heard.try_iter().for_each(&mut tell);
        match ended {
            Some(_) if interrupted.is_some() => return Err(stopped()),
            Some(status) => break status,
            None if until.stop.load(Ordering::Relaxed) => {
                let since = *interrupted.get_or_insert_with(|| {
                    child.interrupt();
                    Instant::now()
                });
                if since.elapsed() >= until.leave {
                    return Err(stopped());
                }
            }
            None if begun.elapsed() >= until.limit => {
                return Err(CommandError::TooLong { what: what.to_owned(), limit: until.limit });
            }
            None => {}
        }
    };
    // Nobody is left then who could hold the pipe open.
    drop(group);
    heard.iter().for_each(tell);
    let said = listener.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    Err(CommandError::Failed { what: what.to_owned(), how: describe_end(status), code: status.code(), said })
}

/// Runs a command that has the terminal, in this process's group, to its end. It is killed when `stop` is set, a moment
/// after it will have heard of it itself, and when this process ends.
///
/// # Errors
/// It cannot be started.
pub fn run_at_terminal(command: Command, stop: &AtomicBool) -> io::Result<ExitStatus> {
    let own_group = getpgrp().as_raw_nonzero().get();
    let mut child = BoundChild::spawn_in(command, Vec::new(), own_group)?;
    loop {
        if let Some(status) = child.wait_within(PAUSE)? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            return child.wait_within(LEAVE)?.ok_or_else(|| io::ErrorKind::Interrupted.into());
        }
    }
}

/// Runs a command, whose output is for nobody but whose remarks stay visible, to its end. When `stop` is set it is sent an
/// interrupt, once, and waited for; when this process ends, it is killed.
///
/// # Errors
/// It cannot be started.
pub fn run_watched(mut command: Command, stop: &AtomicBool) -> io::Result<ExitStatus> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = BoundChild::spawn(command, Vec::new())?;
    let mut told = false;
    loop {
        if let Some(status) = child.wait_within(PAUSE)? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) && !told {
            child.interrupt();
            told = true;
        }
    }
}

/// A process group that is killed when this goes, and by its leader when this process is killed.
struct Group {
    number: i32,
    /// Leads the group, and waits for the end of the pipe.
    leader: Child,
    /// It ends with this process.
    _alive: io::PipeWriter,
}

impl Group {
    /// A group in which there is nobody yet but the one who watches.
    fn watched() -> io::Result<Self> {
        let (reader, alive) = io::pipe()?;
        let mut leader = Command::new("sh");
        leader.args(["-c", "read -r _; kill -KILL 0"]).stdin(reader);
        leader.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let leader = leader.spawn()?;
        let number = i32::try_from(leader.id()).map_err(io::Error::other)?;
        Ok(Self { number, leader, _alive: alive })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The leader has not been waited for, so that the number is still the group's.
        if let Some(group) = Pid::from_raw(self.number) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.leader.wait();
    }
}

/// The end of what is said, whose lines are also sent on where somebody follows.
fn last_words(reader: io::PipeReader, lines: Option<&SyncSender<String>>) -> String {
    let mut reader = BufReader::new(reader);
    let mut kept = Vec::new();
    let mut line = Vec::new();
    while let Ok(1..) = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
        if let Some(lines) = lines {
            // A follower that has gone is not told.
            let _ = lines.send(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        kept.append(&mut line);
        if kept.len() > 2 * MOST_WORDS {
            kept.drain(..kept.len() - MOST_WORDS);
        }
    }
    let kept = &kept[kept.len().saturating_sub(MOST_WORDS)..];
    String::from_utf8_lossy(kept).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run(script: &str, limit: Duration, stop: bool) -> Result<(), CommandError> {
        run_command(shell(script), "a script", limit, &AtomicBool::new(stop))
    }

    #[test]
    fn a_command_that_fails_says_how_and_what_it_said() {
        run("true", Duration::from_secs(10), false).unwrap();
        let said = run("echo no luck >&2; exit 3", Duration::from_secs(10), false).unwrap_err().to_string();
        assert_eq!(said, "a script ended with exit code 3: no luck");
        let missing = run_command(
            Command::new("/nonexistent"),
            "a program",
            Duration::from_secs(10),
            &AtomicBool::new(false),
        );
        assert!(matches!(missing, Err(CommandError::Start { .. })));
    }

    #[test]
    fn a_follower_of_a_command_is_told_every_line() {
        let mut lines = Vec::new();
        let script = "echo one; echo two >&2; printf three";
        let told = &mut |line: &str| lines.push(line.to_owned());
        let limit = Duration::from_secs(10);
        run_command_followed(shell(script), "a script", limit, &AtomicBool::new(false), told).unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
    }

    #[test]
    fn a_command_that_takes_too_long_or_is_stopped_leaves_no_process() {
        for stop in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let name = place.path().join("pid");
            let script = format!("sleep 600 & echo $! > '{}'; wait", name.display());
            // Long enough that the script has begun.
            let error = if stop {
                let flag = AtomicBool::new(false);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        while fs::read_to_string(&name).map_or(true, |text| text.is_empty()) {
                            thread::sleep(Duration::from_millis(5));
                        }
                        flag.store(true, Ordering::Relaxed);
                    });
                    run_command(shell(&script), "a script", Duration::from_secs(60), &flag)
                })
            } else {
                run(&script, Duration::from_secs(1), false)
            };
            let error = error.unwrap_err();
            assert!(matches!(error, CommandError::Stopped { .. }) == stop, "{error}");
            let pid = fs::read_to_string(&name).unwrap();
            let begun = Instant::now();
            let stat = format!("/proc/{}/stat", pid.trim());
            while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
                assert!(begun.elapsed() < Duration::from_secs(10), "{pid} is still there");
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
