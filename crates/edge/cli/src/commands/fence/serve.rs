//! `virtbench fence serve` and `virtbench fence format`

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::frontend::nbd::NbdSetupError;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{
    Daemon, ServeError, confine, end_at_once, ignore_hang_up, leave_signals_to_others,
};

use crate::args::fence::{FormatArgs, ServeArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;
use crate::{interrupt, progress};

/// How long a daemon may take to end: longer than it waits for requests, shorter than systemd waits for it.
const END_LIMIT: Duration = Duration::from_secs(15);

/// Serves until it is interrupted, which is how it ends well.
pub fn execute(args: &ServeArgs) -> Outcome {
    let config = load(&args.config)?;
    let stopper = Stopper::new()?;
    let (stop, limit) = (stopper.clone(), end_in_time()?);
    // From here on, as a device may take its time to be opened.
    interrupt::on_request(move || {
        stop.stop();
        let _ = limit.try_send(());
    });
    // A terminal that closes takes no disks away from guests.
    ignore_hang_up();
    leave_signals_to_others();
    let daemon = Daemon::start(&config, stopper).map_err(failure)?;
    for line in &daemon.served {
        tell!("virtbench fence: {line}");
    }
    if config.limits.confine {
        confine().map_err(|error| Failure::new(Kind::Environment, error))?;
    }
    daemon.run().map_err(failure)
}

/// A thread that ends the process some time after it was told to, whatever the others do: that is no more than a kill, after
/// which whatever was answered is there. It is begun early, since a confined daemon begins no threads.
fn end_in_time() -> std::io::Result<SyncSender<()>> {
    let (tell, told) = sync_channel(1);
    let wait = move || {
        if told.recv().is_ok() {
            thread::sleep(END_LIMIT);
            tell!(
                "virtbench fence: not ended after {END_LIMIT:?}: gives up as if killed; what was answered is kept"
            );
            // Without anything that a thread in the middle of a call could hold up.
            end_at_once(Kind::Other as u8);
        }
    };
    thread::Builder::new().name("end".into()).spawn(wait)?;
    Ok(tell)
}

/// Prepares devices.
pub fn format(args: &FormatArgs) -> Outcome {
    let config = load(&args.config)?;
    progress::during("formatting", || virtbench_fence_daemon::format(&config, args.force)).map_err(failure)
}

pub(super) fn load(path: &Path) -> Result<Config, Failure> {
    Config::load(path).map_err(|error| failure(error.into()))
}

pub(super) fn failure(error: ServeError) -> Failure {
    let kind = match &error {
        error if error.is_damage() => Kind::Inconsistent,
        ServeError::Load(_) | ServeError::Config(_) => Kind::Usage,
        ServeError::Device(_)
        | ServeError::Label(_)
        | ServeError::Attach(_)
        | ServeError::Cache { .. }
        | ServeError::Listen(_)
        | ServeError::MemoryLog(_) => Kind::Target,
        ServeError::Nbd(NbdSetupError::Tls(_)) => Kind::Usage,
        ServeError::Nbd(NbdSetupError::Listen(_)) => Kind::Target,
        ServeError::System { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}
