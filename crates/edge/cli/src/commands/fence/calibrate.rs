//! `virtbench fence calibrate`

use std::time::Duration;

use virtbench_fence_daemon::admin::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
use virtbench_fence_daemon::config::Predictions;

use super::serve::{failure, load};
use crate::args::fence::CalibrateArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{say, tell};
use crate::{interrupt, progress};

/// Into how many steps a bar divides a calibration.
const STEPS: usize = 1000;

/// Measures, says how far predictions are off, and writes the file.
pub fn execute(args: &CalibrateArgs) -> Outcome {
    let config = load(&args.config)?;
    let options = CalibrateOptions { time: Duration::from_nanos(args.time), seed: args.seed };
    let bar = progress::counted(STEPS, "calibrating");
    let found = calibrate(&config, &options, |what, share| {
        if bar.message() != what {
            bar.set_message(what.to_owned());
            bar.reset();
        }
        bar.set_position(steps(share));
        !interrupt::requested()
    });
    bar.finish_and_clear();
    let found = found.map_err(broken)?;
    let named = config.scheduler.predict.file.clone();
    let out = args.out.clone().or_else(|| named.clone());
    let out = out.unwrap_or_else(|| args.config.with_extension("predict.toml"));
    keep(&found, &out).map_err(broken)?;
    if args.json {
        say!("{}", virtbench_formats::json::pretty_text(&found)?);
    } else {
        print(&found);
    }
    tell!("virtbench fence: written to {}", out.display());
    if named.as_ref() != Some(&out) {
        tell!("virtbench fence: to serve by it, write under [scheduler.predict]: file = {out:?}");
    }
    Ok(())
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
