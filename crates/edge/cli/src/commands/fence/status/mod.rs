//! `virtbench fence status`

mod look;
mod samples;
mod table;

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use console::Term;
use virtbench_fence_daemon::config::{Built, Config};
use virtbench_fence_daemon::{control, metrics};

use crate::args::fence::StatusArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use look::Disk;
use samples::Samples;

/// How often `--watch` asks.
const EVERY: Duration = Duration::from_secs(1);

/// Prints what a running daemon counts.
pub fn execute(args: &StatusArgs) -> Outcome {
    let config = Config::load(&args.config).map_err(|error| Failure::new(Kind::Usage, error))?;
    let fetch = || fetch(&config);
    let disks = disks(&config);
    let terminal = Term::stdout();
    let mut before: Option<(Instant, Samples)> = None;
    loop {
        let (at, text) = (Instant::now(), fetch()?);
        let samples = Samples::parse(&text);
        let since = before.as_ref().map(|(then, samples)| (at.duration_since(*then).as_secs_f64(), samples));
        let status = look::status(&disks, &samples, since);
        let shown = if args.raw {
            text
        } else if args.json && args.watch {
            format!("{}\n", virtbench_formats::json::text(&status)?)
        } else if args.json {
            format!("{}\n", virtbench_formats::json::pretty_text(&status)?)
        } else {
            table::text(&status)
        };
        if args.watch && !args.raw && !args.json && terminal.is_term() {
            terminal.clear_screen()?;
        }
        let mut out = std::io::stdout().lock();
        out.write_all(shown.as_bytes())?;
        out.flush()?;
        before = Some((at, samples));
        if !args.watch || interrupt::requested() {
            return Ok(());
        }
        thread::sleep(EVERY);
    }
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
