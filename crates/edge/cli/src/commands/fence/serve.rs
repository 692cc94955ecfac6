//! `virtbench fence serve` and `virtbench fence format`

use std::path::Path;

use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::frontend::nbd::NbdSetupError;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, ServeError, confine};

use crate::args::fence::{FormatArgs, ServeArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;

/// Serves until it is interrupted, which is how it ends well.
pub fn execute(args: &ServeArgs) -> Outcome {
    let config = load(&args.config)?;
    let stopper = Stopper::new()?;
    let stop = stopper.clone();
    let daemon = Daemon::start(&config, stopper).map_err(failure)?;
    interrupt::on_request(move || stop.stop());
    for line in &daemon.served {
        eprintln!("virtbench fence: {line}");
    }
    if config.limits.confine {
        confine().map_err(|error| Failure::new(Kind::Environment, error))?;
    }
    daemon.run().map_err(failure)
}

/// Prepares devices.
pub fn format(args: &FormatArgs) -> Outcome {
    virtbench_fence_daemon::format(&load(&args.config)?, args.force).map_err(failure)
}

pub(super) fn load(path: &Path) -> Result<Config, Failure> {
    Config::load(path).map_err(|error| failure(error.into()))
}

pub(super) fn failure(error: ServeError) -> Failure {
    let kind = match &error {
        ServeError::Load(_) | ServeError::Config(_) => Kind::Usage,
        ServeError::Device(_)
        | ServeError::Label(_)
        | ServeError::Cache { .. }
        | ServeError::Listen(_)
        | ServeError::MemoryLog(_) => Kind::Target,
        ServeError::Nbd(NbdSetupError::Tls(_)) => Kind::Usage,
        ServeError::Nbd(NbdSetupError::Listen(_)) => Kind::Target,
        ServeError::System { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}
