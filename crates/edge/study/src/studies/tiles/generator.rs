//! What loads a member: a mode of our own program, or a client of the user's, run within the member's network.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use virtbench_engine::monotonic_ns;
use virtbench_lab::CommandError;
use virtbench_record::{TileDone, TileLoad, TileLoadKind, TileMemberPlan, TilesPlan};

use super::outcome::{read_client, read_outcome};
use crate::disks::served::Served;
use crate::studies::application::{Client, client_words, explained};
use crate::studies::oltp::{connect, database_kind, port};

/// Beyond ramp-up and measuring: connections, operations that are in flight at the end, a check of consistency.
const GRACE: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(20);
/// The largest outcome that is read, in bytes.
const LONGEST: u64 = 64 << 20;
/// Writes what a program prints into a file, so that it can be told from what it says meanwhile. The password is that of the
/// recipe for MariaDB.
const INTO_FILE: &str = "export MYSQL_PWD=bench; exec \"$@\" >\"$0\"";

/// When everybody begins, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    /// Generators begin, in nanoseconds.
    pub(super) begin_ns: u64,
    /// Measuring begins, in nanoseconds.
    pub(super) measure_ns: u64,
    /// Measuring ends, in nanoseconds.
    pub(super) end_ns: u64,
}

/// Why nothing came of a generator, in words.
#[derive(Debug)]
pub(super) enum NoOutcome {
    /// It was ended because it was to stop.
    Stopped(String),
    /// It failed, or what it printed cannot be read.
    Failed(String),
}

impl NoOutcome {
    fn of_command(error: &CommandError, words: String) -> Self {
        match error {
            CommandError::Stopped { .. } => Self::Stopped(words),
            _ => Self::Failed(words),
        }
    }

    /// In words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Stopped(words) | Self::Failed(words) => words,
        }
    }
}

/// A generator that is to be run.
#[derive(Debug)]
pub(super) struct Generator {
    load: TileLoad,
    command: Client,
    /// Where its outcome goes; nothing of a client.
    outcome: Option<PathBuf>,
    moments: Moments,
}

impl Generator {
    /// What loads this member; nothing where it is idle.
    ///
    /// # Errors
    /// It has no port for it; in words.
    pub(super) fn of(
        plan: &TilesPlan,
        member: &TileMemberPlan,
        served: &dyn Served,
        program: &Path,
        folder: &Path,
        moments: Moments,
        seed: u64,
    ) -> Result<Option<Self>, String> {
        let load = member.load.clone();
        let limit = Duration::from_nanos(plan.ramp_up_ns.saturating_add(plan.time_ns))
            + GRACE
            + Duration::from_nanos(moments.begin_ns.saturating_sub(monotonic_ns()));
        let (words, outcome) = match (load.kind, &load.client) {
            (TileLoadKind::Idle, _) => return Ok(None),
            (TileLoadKind::Client, None) => return Err("a client has no command: a defect".into()),
            (_, Some(client)) => {
                let seconds = format!("{}", plan.time_ns as f64 / 1e9);
                (client.command.iter().map(|word| word.replace("{seconds}", &seconds)).collect(), None)
            }
            (_, None) => {
                let file = folder.join(format!("outcome-{seed}.json"));
                let mut words: Vec<String> = ["sh", "-c", INTO_FILE].map(str::to_owned).into();
                words.extend([file.display().to_string(), program.display().to_string()]);
                words.extend(own_words(plan, member, served, moments, seed)?);
                (words, Some(file))
            }
        };
        let words = client_words(&words, served)?;
        let command = Client { words, reach: served.reach(), limit };
        Ok(Some(Self { load, command, outcome, moments }))
    }

    /// Whether it may end before measuring does: a client of the user's ends when it likes.
    pub(super) fn may_end_early(&self) -> bool {
        self.outcome.is_none()
    }

    /// Runs it to its end, or until it is to stop. Nothing of it is left.
    ///
    /// # Errors
    /// It failed, what it printed cannot be read, or it was to stop.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<TileDone, NoOutcome> {
        if let Some(client) = &self.load.client {
            wait_until(self.moments.measure_ns, stop);
            let end = self.command.run(stop);
            end.result.as_ref().map_err(|error| NoOutcome::of_command(error, explained(error)))?;
            let seconds = self.moments.end_ns.saturating_sub(self.moments.measure_ns) as f64 / 1e9;
            return read_client(client, &end.output, seconds).map_err(NoOutcome::Failed);
        }
        let end = self.command.run(stop);
        let nowhere = || NoOutcome::Failed("its outcome goes nowhere: a defect".into());
        let file = self.outcome.as_deref().ok_or_else(nowhere)?;
        let size = fs::metadata(file).map_or(0, |facts| facts.len());
        let json = if size <= LONGEST { fs::read_to_string(file).unwrap_or_default() } else { String::new() };
        // Operations that fail are in the outcome, and its exit code tells of them too.
        match (read_outcome(self.load.kind, &json, self.moments.begin_ns), &end.result) {
            (Ok(done), _) => Ok(done),
            (Err(why), Err(error)) => {
                let said = || format!("{}: {}", explained(error), end.output.trim());
                Err(NoOutcome::of_command(error, if json.is_empty() { said() } else { why }))
            }
            (Err(why), Ok(())) => Err(NoOutcome::Failed(why)),
        }
    }
}

/// The command of our own that is the generator of such a load, up to the address that it loads; nothing of a load that has none.
#[must_use]
pub fn generator_command(kind: TileLoadKind) -> &'static [&'static str] {
    match kind {
        TileLoadKind::Oltp => &["oltp", "run", "--database"],
        TileLoadKind::Web => &["users", "web"],
        TileLoadKind::KeyValue => &["users", "key-value"],
        TileLoadKind::Mail => &["users", "mail"],
        TileLoadKind::Client | TileLoadKind::Idle => &[],
    }
}

/// The words of a generator that is a mode of our own program.
///
/// # Errors
/// A database has no address; in words.
fn own_words(
    plan: &TilesPlan,
    member: &TileMemberPlan,
    served: &dyn Served,
    moments: Moments,
    seed: u64,
) -> Result<Vec<String>, String> {
    let load = &member.load;
    let mut words: Vec<String> = generator_command(load.kind).iter().map(|word| (*word).to_owned()).collect();
    match load.kind {
        TileLoadKind::Oltp => {
            let kind = database_kind(&member.appliance).ok_or("its recipe is no database: a defect")?;
            let at = served.address(port(kind)).ok_or("the database has no address")?;
            words.push(connect(kind, at).address.to_string());
        }
        TileLoadKind::Web | TileLoadKind::KeyValue => words.push("{host}:{port}".into()),
        TileLoadKind::Mail => {
            words.extend(["{host}", "--smtp-port={port:25}", "--imap-port={port:143}"].map(str::to_owned));
        }
        TileLoadKind::Client | TileLoadKind::Idle => {}
    }
    words.push("--json".into());
    let nanoseconds = |ns: u64| format!("{ns}ns");
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    add("users", load.users.map(|users| users.to_string()));
    add("rate", load.rate.map(|rate| format!("{rate}/s")));
    add("think", load.think_ns.map(nanoseconds));
    add("ramp", Some(nanoseconds(plan.ramp_up_ns)));
    add("time", Some(nanoseconds(plan.time_ns)));
    add("seed", Some(seed.to_string()));
    add("begin-at", Some(moments.begin_ns.to_string()));
    words.extend(load.options.iter().cloned());
    Ok(words)
}

/// Waits for a moment, or until it is to stop.
pub(super) fn wait_until(moment_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(moment_ns.saturating_sub(monotonic_ns()));
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(PAUSE));
    }
}
