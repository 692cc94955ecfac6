//! A source of energy, asked on a thread of its own while tiles are measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{EnergySource, find_energy, open_energy};
use virtbench_record::TileEnergy;

use crate::runner::course::unix_ns;

/// Between two questions.
const EVERY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// The source that is asked for, or the one that this host has; else why there is none.
pub(super) fn source(asked: Option<&str>) -> Result<Box<dyn EnergySource>, String> {
    asked.map_or_else(find_energy, open_energy).map_err(|error| error.to_string())
}

/// Asks every second until it is over.
pub(super) fn ask(source: &mut Result<Box<dyn EnergySource>, String>, over: &AtomicBool) {
    let Ok(source) = source else { return };
    loop {
        let begun = Instant::now();
        if let Err(error) = source.ask(unix_ns()) {
            tracing::warn!(%error, "energy");
        }
        while begun.elapsed() < EVERY {
            if over.load(Ordering::Relaxed) {
                // The end of the last interval.
                let _ = source.ask(unix_ns());
                return;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// What was read since measuring began, in nanoseconds since 1970.
pub(super) fn read(source: Result<Box<dyn EnergySource>, String>, begin_unix_ns: u64) -> TileEnergy {
    let read = source.and_then(|mut source| {
        let samples = source.samples(begin_unix_ns).map_err(|error| error.to_string())?;
        Ok(TileEnergy::Read { source: source.name(), samples })
    });
    read.unwrap_or_else(TileEnergy::Unavailable)
}
