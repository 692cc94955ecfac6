//! What the options and the configuration file say about the world.

use std::path::Path;

use serde::de::DeserializeOwned;
use virtbench_fence_evaluation::Settings;
use virtbench_fence_sim::disk::{SeekCurve, SsdModel};
use virtbench_study::read_user_file;

use crate::args::fence::{Seek, WorldArgs};
use crate::exit::{Failure, Kind};

/// The settings: the file's, then the options'.
pub fn settings(args: &WorldArgs) -> Result<Settings, Failure> {
    match &args.config {
        None => over(Settings::default(), args),
        Some(path) => over(read("--config", path)?, args),
    }
}

/// What a file says that an option names.
pub fn read<T: DeserializeOwned>(option: &str, path: &Path) -> Result<T, Failure> {
    let wrong =
        |error: String| Failure::message(Kind::Usage, format!("{option} {}: {error}", path.display()));
    let text = read_user_file(path).map_err(wrong)?;
    toml::from_str(&text).map_err(|error| wrong(error.to_string()))
}

/// These settings, and the options' in their place.
pub fn over(mut settings: Settings, args: &WorldArgs) -> Result<Settings, Failure> {
    if let Some(seed) = args.seed {
        settings.seed = seed;
    }
    if let Some(rpm) = args.rpm {
        settings.hdd.rpm = rpm;
    }
    if let Some(Seek([settle_ms, root_ms, linear_ms])) = args.seek {
        settings.hdd.seek = SeekCurve { settle_ms, root_ms, linear_ms };
    }
    if let Some(profile) = args.ssd {
        settings.ssd = SsdModel::new(profile);
    }
    if let Some(ns) = args.duration {
        settings.measure_s = ns as f64 / 1e9;
    }
    if let Some(replications) = args.replications {
        settings.replications = replications;
    }
    if let Some(saturating) = args.saturating {
        settings.saturating = saturating;
    }
    settings.check().map_err(|error| Failure::new(Kind::Usage, error))?;
    Ok(settings)
}
