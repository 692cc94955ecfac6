//! `virtbench fence serve` and `virtbench fence format`

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, confine, end_at_once, ignore_hang_up, leave_signals_to_others};

use super::failed::failure;
use super::pools::{chosen, each, load, load_again, prefix, within};
use super::supervise::supervise;
use crate::args::fence::{FormatArgs, ServeArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;
use crate::{interrupt, progress};

/// How long a daemon may take to end: longer than it waits for requests, shorter than systemd waits for it.
const END_LIMIT: Duration = Duration::from_secs(15);

/// Serves until it is interrupted, which is how it ends well. Each of several pools has a process of its own.
pub fn execute(args: &ServeArgs) -> Outcome {
    let pools = if args.supervised { load_again(&args.config) } else { load(&args.config) }?;
    match &chosen(&pools, &args.only)?[..] {
        [fence] => serve(fence, args.supervised).map_err(|failure| within(fence, failure)),
        fences => supervise(fences),
    }
}

fn serve(config: &Config, is_supervised: bool) -> Outcome {
    let pool = prefix(config);
    let stopper = Stopper::new()?;
    let (stop, limit) = (stopper.clone(), end_in_time(pool.clone())?);
    let end = move || {
        stop.stop();
        let _ = limit.try_send(());
    };
    if is_supervised {
        end_with_supervisor(end.clone())?;
    }
    // From here on, as a device may take its time to be opened.
    interrupt::on_request(end);
    // A terminal that closes takes no disks away from guests.
    ignore_hang_up();
    leave_signals_to_others();
    let daemon = Daemon::start(config, stopper).map_err(failure)?;
    for line in &daemon.served {
        tell!("virtbench fence: {pool}{line}");
    }
    if config.limits.confine {
        confine().map_err(|error| Failure::new(Kind::Environment, error))?;
    }
    daemon.run().map_err(failure)
}

/// A thread that has the daemon end once nobody holds the other end of its stdin: the supervisor wants that, or is gone,
/// however it ended.
fn end_with_supervisor(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let wait = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        end();
    };
    thread::Builder::new().name("supervised".into()).spawn(wait)?;
    Ok(())
}

/// A thread that ends the process some time after it was told to, whatever the others do: that is no more than a kill, after
/// which whatever was answered is there. It is begun early, since a confined daemon begins no threads.
fn end_in_time(pool: String) -> io::Result<SyncSender<()>> {
    let (tell, told) = sync_channel(1);
    let wait = move || {
        if told.recv().is_ok() {
            thread::sleep(END_LIMIT);
            tell!(
                "virtbench fence: {pool}not ended after {END_LIMIT:?}: gives up as if killed; what was answered is kept"
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
    let pools = load(&args.config)?;
    each(&chosen(&pools, &args.only)?, |fence| {
        progress::during("formatting", || virtbench_fence_daemon::format(fence, args.force)).map_err(failure)
    })
}
