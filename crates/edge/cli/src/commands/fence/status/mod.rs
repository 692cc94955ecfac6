//! `virtbench fence status`

mod look;
mod table;

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use console::Term;
use virtbench_fence_daemon::config::{Built, Config};
use virtbench_fence_daemon::{control, metrics};
use virtbench_record::FenceStatus;

use super::pools::{chosen, load, within, worst_of};
use crate::args::fence::StatusArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::tell;
use look::{Disk, Samples};

/// How often `--watch` asks.
const EVERY: Duration = Duration::from_secs(1);

/// A fence, and what its daemon said at the last look.
struct Watched<'a> {
    fence: &'a Config,
    disks: Vec<Disk>,
    before: Option<(Instant, Samples)>,
}

/// Prints what running daemons count.
pub fn execute(args: &StatusArgs) -> Outcome {
    let pools = load(&args.config)?;
    let fences = chosen(&pools, &args.only)?;
    if args.raw && fences.len() > 1 {
        return Err(Failure::message(Kind::Usage, format!("--raw is of one pool: {}", pools.which())));
    }
    let watched = |fence| Watched { fence, disks: disks(fence), before: None };
    let mut fences: Vec<Watched<'_>> = fences.into_iter().map(watched).collect();
    let terminal = Term::stdout();
    loop {
        let (shown, silent) = look(&mut fences, args)?;
        if args.watch && !args.raw && !args.json && terminal.is_term() {
            terminal.clear_screen()?;
        }
        let mut out = std::io::stdout().lock();
        out.write_all(shown.as_bytes())?;
        out.flush()?;
        if !args.watch || interrupt::requested() {
            return worst_of(silent).map_or(Ok(()), Err);
        }
        silent.iter().for_each(|failure| tell!("virtbench fence: {}", failure.sentence()));
        thread::sleep(EVERY);
    }
}

/// What is shown of those that answer, and the failures of those that do not, if any answers.
fn look(fences: &mut [Watched<'_>], args: &StatusArgs) -> Result<(String, Vec<Failure>), Failure> {
    let mut status = FenceStatus { seconds: None, disks: Vec::new() };
    let (mut raw, mut silent) = (String::new(), Vec::new());
    let is_first = fences.iter().all(|watched| watched.before.is_none());
    for Watched { fence, disks, before } in &mut *fences {
        let at = Instant::now();
        let text = match fetch(fence) {
            Ok(text) => text,
            Err(failure) => {
                silent.push(within(fence, failure));
                continue;
            }
        };
        let samples = Samples::parse(&text);
        let since = before.as_ref().map(|(then, samples)| (at.duration_since(*then).as_secs_f64(), samples));
        let looked = look::status(disks, fence.pool.as_deref(), &samples, since);
        status.seconds = status.seconds.or(looked.seconds);
        // One that answers for the first time has nothing yet to be subtracted from.
        if is_first || before.is_some() {
            status.disks.extend(looked.disks);
        }
        (*before, raw) = (Some((at, samples)), text);
    }
    if silent.len() == fences.len()
        && let Some(failure) = worst_of(std::mem::take(&mut silent))
    {
        return Err(failure);
    }
    let shown = if args.raw {
        raw
    } else if args.json && args.watch {
        format!("{}\n", virtbench_formats::json::text(&status)?)
    } else if args.json {
        format!("{}\n", virtbench_formats::json::pretty_text(&status)?)
    } else {
        table::text(&status)
    };
    Ok((shown, silent))
}

/// The figures, over HTTP if they are served there, else by the control socket.
fn fetch(config: &Config) -> Result<String, Failure> {
    let silent = |whom: String, why: &dyn std::fmt::Display| {
        Failure::message(
            Kind::Target,
            format!("no fence answers at {whom}: {why}: is `fence serve` running?"),
        )
    };
    if let Some(address) = config.metrics {
        return metrics::fetch(address).map_err(|error| silent(address.to_string(), &error));
    }
    let Some(socket) = config.control_socket() else {
        let why = "no way to ask the daemon: write metrics = \"127.0.0.1:9100\" or control = \"/run/fence.control\"";
        return Err(Failure::message(Kind::Usage, why));
    };
    let whom = socket.display().to_string();
    match control::figures(&socket) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(silent(whom, &"nobody listens")),
        Err(error) => Err(silent(whom, &error)),
    }
}

/// The disks of a configuration, each with its partition of the cache.
fn disks(config: &Config) -> Vec<Disk> {
    let home = config.home().unwrap_or(Built::Slow);
    let partition = |place: usize| match home {
        Built::Cached { shared } => Some(if shared { 0 } else { place }),
        Built::Slow | Built::Fast => None,
    };
    let disk = |(place, disk): (usize, &virtbench_fence_daemon::config::DiskTable)| Disk {
        name: disk.name.clone(),
        partition: partition(place),
    };
    config.disks.iter().enumerate().map(disk).collect()
}
