//! One run of a load, watched.

use std::time::Duration;

use indicatif::ProgressBar;
use virtbench_engine::{Control, Target, run};
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::check;
use super::refusal::refusal;
use crate::company::Company;
use crate::exit::{Failure, Kind, Outcome};
use crate::live::LiveView;
use crate::watched::{OnMeasuring, watched};
use crate::{interrupt, progress};

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
        check::verdict(found, &outcome.target.path)?;
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
