//! One run of a load, watched, or until it is steady, and what verification found.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;
use virtbench_engine::{Control, EngineError, Target, Verified, monotonic_ns, run, verify};
use virtbench_model::{Steadiness, SteadyDetector, SteadyRule};
use virtbench_record::{HostUse, LoadOutcome, Verification};
use virtbench_units::{format_bytes, format_duration_ns};
use virtbench_workload::LoadSpec;

use crate::claim::Company;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt::{self, OnMeasuring, stoppable, watched};
use crate::live::LiveView;
use crate::progress;
use crate::say::print_json;

/// How often a load is looked at.
const TICK: Duration = Duration::from_millis(100);

/// The shortest load of which it is said that the host was busy, in nanoseconds.
const JUDGED_NS: u64 = 500_000_000;

/// Runs the load, showing progress, and samples the host's CPU use over the measuring time.
pub fn measure(spec: &LoadSpec, target: &Target) -> Result<(LoadOutcome, HostUse), Failure> {
    measure_watched(spec, target, false, |_| {})
}

/// As [`measure`], and calls `look` with the load's control every 100 ms or so while it runs. If `live`,
/// shows what the load does instead of how far it is.
pub fn measure_watched(
    spec: &LoadSpec,
    target: &Target,
    live: bool,
    mut look: impl FnMut(&Control),
) -> Result<(LoadOutcome, HostUse), Failure> {
    let control = if live { Control::with_live(spec.workers) } else { Control::new(spec.workers) };
    let job = |control: &Control, on_measuring: OnMeasuring<'_>| run(spec, target, control, 0, on_measuring);
    let mut view = live.then(|| LiveView::new(spec));
    let tick = if live { TICK / 2 } else { TICK };
    let bar = if live { ProgressBar::hidden() } else { progress::timer(spec.expected_ns(), "measuring") };
    let mut pace = progress::Pace::new(&spec.access);
    let mut company = Company::new();
    let (outcome, host) = watched(control, tick, job, |control, elapsed| {
        progress::tick(&bar, elapsed);
        bar.set_message(pace.words(elapsed, control.completed()).to_owned());
        look(control);
        company.look();
        if let Some(view) = &mut view {
            view.look(control, elapsed);
        }
    })?;
    bar.finish_and_clear();
    drop(view);
    let mut outcome = outcome.map_err(refusal)?;
    // A glimpse tells nothing: the processors' accounts are kept in ticks.
    let judged = (outcome.elapsed_ns >= JUDGED_NS).then_some(&host);
    outcome.notes.extend(company.notes(judged));
    Ok((outcome, host))
}

/// Runs the load among others, showing nothing, and calls `look` as [`measure_watched`] does. The host's CPU
/// use is that of all of them.
pub fn measure_among(
    spec: &LoadSpec,
    target: &Target,
    control: Control,
    look: impl Fn(&Control),
) -> Result<(LoadOutcome, HostUse), Failure> {
    let job = |control: &Control, on_measuring: OnMeasuring<'_>| run(spec, target, control, 0, on_measuring);
    let (outcome, host) = watched(control, TICK, job, |control, _| look(control))?;
    Ok((outcome.map_err(refusal)?, host))
}

/// Results were printed; the exit code still tells whether to trust them.
pub fn verdict(outcome: &LoadOutcome) -> Outcome {
    if interrupt::requested() {
        return Err(interrupt::failure("the figures cover the time until then"));
    }
    if let Some(found) = &outcome.verify {
        no_damage(found, &outcome.target.path)?;
    }
    if outcome.errors > 0 || outcome.interrupted {
        let kinds: Vec<String> =
            outcome.error_kinds.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        let message = format!(
            "operations failed on {} ({}): {}",
            outcome.target.path,
            format_bytes(outcome.target.size_bytes),
            kinds.join(", ")
        );
        return Err(Failure::message(Kind::Measured, message));
    }
    Ok(())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    found: &'a Verification,
    /// What it rests on, where that is not the ledger of a load that ended.
    note: Option<&'a str>,
}

/// Checks the target without applying a load.
pub fn execute(spec: &LoadSpec, target: &Target, json: bool) -> Outcome {
    let control = stoppable(Control::new(spec.workers));
    let Verified { found, note } = verify(spec, target, &control).map_err(refusal)?;
    let mut out = io::stdout().lock();
    if json {
        print_json(&Report { found: &found, note: note.as_deref() })?;
    } else {
        write(&mut out, &found)?;
        if let Some(note) = note {
            writeln!(out, "note: {note}")?;
        }
    }
    if interrupt::requested() {
        return Err(interrupt::failure("what was read until then was checked"));
    }
    no_damage(&found, &target.facts().path)?;
    if !found.complete {
        let message = format!("{} could not be read whole", target.facts().path);
        return Err(Failure::message(Kind::Measured, message));
    }
    if found.blocks_checked == 0 {
        let message = format!("{} holds no block that a load with --verify has written", target.facts().path);
        return Err(Failure::message(Kind::Target, message));
    }
    Ok(())
}

/// The findings for people.
pub fn write(out: &mut impl Write, found: &Verification) -> io::Result<()> {
    writeln!(
        out,
        "verified {} blocks of {} bytes ({} unknown): {} lost, {} stale, {} torn, {} misplaced, {} foreign, {} corrupt",
        found.blocks_checked,
        found.block_bytes,
        found.blocks_unknown,
        found.lost,
        found.stale,
        found.torn,
        found.misplaced,
        found.foreign,
        found.corrupt
    )?;
    for example in &found.examples {
        writeln!(out, "  {:?} at offset {}: {}", example.damage, example.offset, example.words)?;
    }
    Ok(())
}

/// Damage is an error, whatever the figures say.
pub fn no_damage(found: &Verification, path: &str) -> Outcome {
    if found.damaged() == 0 {
        return Ok(());
    }
    let first = found.examples.first();
    let example =
        first.map_or_else(String::new, |block| format!("; at offset {}: {}", block.offset, block.words));
    let message = format!("{} blocks of {path} are not what was written{example}", found.damaged());
    Err(Failure::message(Kind::Measured, message))
}

/// The failure with its exit code.
pub fn refusal(error: EngineError) -> Failure {
    let kind = match error {
        EngineError::Load(_) => Kind::Usage,
        EngineError::Misfit(_) | EngineError::Ledger(_) => Kind::Target,
        EngineError::Resource { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}

/// How the target settled.
#[derive(Debug, Serialize)]
pub struct Settled {
    /// Whether it was steady in the end.
    reached: bool,
    /// How long it was loaded for that, in nanoseconds.
    elapsed_ns: u64,
    /// The window, in nanoseconds.
    window_ns: u64,
    /// The most that IOPS may range over, in percent of their mean.
    range_limit_percent: f64,
    /// The most that their trend may move over the window, in percent of their mean.
    slope_limit_percent: f64,
    /// What they ranged over in the last window; null if there was none.
    range_percent: Option<f64>,
    /// How far their trend moved.
    slope_percent: Option<f64>,
}

/// Loads the target until its IOPS are steady by `rule`, or `limit_ns` have passed.
///
/// This is a run of its own before the ramp-up of the measuring one: the few milliseconds between
/// them are nothing to what makes storage unsteady (caches, garbage collection), and the ramp-up
/// fills the queue again. It draws other operations, so that measuring does not find its own in a
/// cache.
///
/// # Errors
/// The limit is shorter than the window, or the load cannot be applied.
pub fn settle(
    spec: &LoadSpec,
    target: &Target,
    rule: SteadyRule,
    limit_ns: u64,
    live: bool,
) -> Result<Settled, Failure> {
    if limit_ns < rule.window_ns {
        let (limit, window) = (format_duration_ns(limit_ns), format_duration_ns(rule.window_ns));
        let message = format!("--steady-limit {limit} is shorter than the window of {window}: raise it");
        return Err(Failure::message(Kind::Usage, message));
    }
    let mut detector = SteadyDetector::new(rule, spec.interval_ns);
    let mut reached = false;
    let began_ns = monotonic_ns();
    let settling = LoadSpec { ramp_ns: 0, time_ns: limit_ns, seed: !spec.seed, ..spec.clone() };
    measure_watched(&settling, target, live, |control| {
        if !reached && detector.look(monotonic_ns(), control.completed()) {
            reached = true;
            control.stop();
        }
    })?;
    if interrupt::requested() {
        return Err(interrupt::failure("nothing was measured yet"));
    }
    let found = detector.steadiness();
    let percent = |of: fn(&Steadiness) -> f64| found.as_ref().map(|found| 100.0 * of(found));
    Ok(Settled {
        reached,
        elapsed_ns: monotonic_ns() - began_ns,
        window_ns: rule.window_ns,
        range_limit_percent: 100.0 * rule.range,
        slope_limit_percent: 100.0 * rule.slope,
        range_percent: percent(|found| found.range),
        slope_percent: percent(|found| found.slope),
    })
}

impl Settled {
    /// What a reader of the results must know: that they are not of a steady target.
    pub fn note(&self) -> Option<String> {
        (!self.reached).then(|| self.to_string())
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.reached { "steady" } else { "not steady" };
        write!(f, "{state} after {:.1} s", self.elapsed_ns as f64 / 1e9)?;
        if let (Some(range), Some(slope)) = (self.range_percent, self.slope_percent) {
            write!(
                f,
                ": IOPS over {} ranged over {range:.1} % (limit {:.1} %), trend {slope:.1} % (limit {:.1} %)",
                format_duration_ns(self.window_ns),
                self.range_limit_percent,
                self.slope_limit_percent
            )?;
        }
        Ok(())
    }
}
