//! `virtbench fence calibrate`

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use virtbench_fence_daemon::admin::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
use virtbench_fence_daemon::config::Predictions;

use super::serve::{failure, load};
use crate::args::fence::CalibrateArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::{say, tell};

/// Measures, says how far predictions are off, and writes the file.
pub fn execute(args: &CalibrateArgs) -> Outcome {
    let config = load(&args.config)?;
    let options = CalibrateOptions { time: Duration::from_nanos(args.time), seed: args.seed };
    let shown = std::io::stderr().is_terminal();
    let found = calibrate(&config, &options, |what, share| {
        if shown {
            let _ = write!(io::stderr(), "\r{what}: {:3.0} %", share * 100.0);
        }
        !interrupt::requested()
    });
    if shown {
        tell!("");
    }
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
