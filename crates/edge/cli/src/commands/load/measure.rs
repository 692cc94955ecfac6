//! One run of a load, watched.

use virtbench_engine::{Control, EngineError, Target, run};
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::check;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::watched::{OnMeasuring, watched};

/// Runs the load, showing progress, and samples the host's CPU use over the measuring time.
pub fn measure(spec: &LoadSpec, target: &Target) -> Result<(LoadOutcome, HostUse), Failure> {
    measure_watched(spec, target, |_| {})
}

/// As [`measure`], and calls `look` with the load's control every 100 ms or so while it runs.
pub fn measure_watched(
    spec: &LoadSpec,
    target: &Target,
    look: impl FnMut(&Control),
) -> Result<(LoadOutcome, HostUse), Failure> {
    let job = |control: &Control, on_measuring: OnMeasuring<'_>| run(spec, target, control, 0, on_measuring);
    let (outcome, host) = watched(Control::new(spec.workers), spec.ramp_ns + spec.time_ns, job, look)?;
    Ok((outcome.map_err(refusal)?, host))
}

/// What the shell is told of a load that could not be applied.
pub fn refusal(error: EngineError) -> Failure {
    let kind = match error {
        EngineError::Load(_) => Kind::Usage,
        EngineError::Misfit(_) => Kind::Target,
        EngineError::Resource { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
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
