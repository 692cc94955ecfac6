//! `virtbench fence calibrate`

use std::path::PathBuf;
use std::time::Duration;

use virtbench_fence_daemon::admin::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
use virtbench_fence_daemon::config::{Config, Predictions};

use super::pools::{self, chosen, failure, load, prefix, within, worst_of};
use crate::args::fence::CalibrateArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{say, tell};
use crate::{interrupt, progress};

/// Into how many steps a bar divides a calibration.
const STEPS: usize = 1000;

/// Measures each pool's devices in turn, says how far predictions are off, and writes the files.
pub fn execute(args: &CalibrateArgs) -> Outcome {
    let pools = load(&args.config)?;
    let fences = chosen(&pools, &args.only)?;
    if args.out.is_some() && fences.len() > 1 {
        return Err(Failure::message(Kind::Usage, format!("--out is of one pool: {}", pools.which())));
    }
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for fence in fences {
        match calibrated(fence, args) {
            Ok(found) => all.push((fence.pool.clone(), found)),
            Err(failure) => failures.push(within(fence, failure)),
        }
        if interrupt::requested() {
            break;
        }
    }
    if args.json && !all.is_empty() {
        say!("{}", pools::json(all)?);
    }
    worst_of(failures).map_or(Ok(()), Err)
}

fn calibrated(fence: &Config, args: &CalibrateArgs) -> Result<Predictions, Failure> {
    let options = CalibrateOptions { time: Duration::from_nanos(args.time), seed: args.seed };
    let bar = progress::counted(STEPS, "calibrating");
    let found = calibrate(fence, &options, |what, share| {
        if bar.message() != what {
            bar.set_message(what.to_owned());
            bar.reset();
        }
        bar.set_position(steps(share));
        !interrupt::requested()
    });
    bar.finish_and_clear();
    let found = found.map_err(broken)?;
    let (pool, named) = (prefix(fence), &fence.scheduler.predict.file);
    let out = args.out.clone().or_else(|| named.clone()).unwrap_or_else(|| usual(fence, args));
    keep(&found, &out).map_err(broken)?;
    if !args.json {
        fence.pool.iter().for_each(|pool| say!("pool {pool}"));
        print(&found);
    }
    tell!("virtbench fence: {pool}written to {}", out.display());
    if named.as_ref() != Some(&out) {
        let table = fence.table("scheduler.predict");
        tell!("virtbench fence: {pool}to serve by it, write under {table}: file = {out:?}");
    }
    Ok(found)
}

/// Where it goes that nobody names.
fn usual(fence: &Config, args: &CalibrateArgs) -> PathBuf {
    let pool = fence.pool.as_ref().map_or_else(String::new, |pool| format!("{pool}."));
    args.config.with_extension(format!("{pool}predict.toml"))
}

/// How far a calibration is, out of [`STEPS`].
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share
fn steps(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * STEPS as f64) as u64
}

fn print(found: &Predictions) {
    if let Some(slow) = &found.slow {
        say!("slow {}: {}", slow.device, describe(&slow.errors));
        say!("  a flush takes {:.3} ms; an access, by distance from the last:", slow.flush_ms);
        for (distance_bytes, ms) in &slow.knots {
            say!("  {distance_bytes:>16} bytes {ms:>10.3} ms");
        }
    }
    if let Some(fast) = &found.fast {
        say!("fast {}: {}", fast.device, describe(&fast.errors));
        say!("  a batch takes {:.1} us and {:.1} us an I/O", fast.base_us, fast.per_io_us);
    }
}

fn broken(error: CalibrateError) -> Failure {
    let kind = match error {
        CalibrateError::Serve(error) => return failure(error),
        CalibrateError::Interrupted => Kind::Interrupted,
        CalibrateError::Nothing => Kind::Usage,
        CalibrateError::Fit { .. } | CalibrateError::Io { .. } => Kind::Target,
    };
    Failure::new(kind, error)
}
