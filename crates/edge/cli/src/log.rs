//! What happens besides results: on stderr where it is asked for, and in a file of each run folder.

mod kept;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

pub use kept::keep_in;

/// Says what of it is shown, in place of --verbose.
const VARIABLE: &str = "VIRTBENCH_LOG";
/// All crates of virtbench begin with it.
const OURS: &str = "virtbench";

static SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether anything of it is shown on stderr.
pub fn is_shown() -> bool {
    SHOWN.load(Ordering::Relaxed)
}

/// Begins to listen. `verbose` is how often --verbose was given.
///
/// # Errors
/// [`VARIABLE`] makes no sense.
pub fn install(verbose: u8) -> Outcome {
    let wanted = std::env::var(VARIABLE).ok().filter(|wanted| !wanted.trim().is_empty());
    let shown = shown(verbose, wanted.as_deref())?;
    let kept = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(|| kept::Kept)
        .with_filter(Targets::new().with_target(OURS, Level::DEBUG));
    let on_stderr = shown.map(|shown| {
        tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_timer(uptime())
            .with_writer(|| Remarks)
            .with_filter(shown)
    });
    SHOWN.store(on_stderr.is_some(), Ordering::Relaxed);
    tracing_subscriber::registry().with(kept).with(on_stderr).init();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), command = ?std::env::args().collect::<Vec<_>>(), "begins");
    Ok(())
}

/// What is shown on stderr; nothing unless somebody asks.
fn shown(verbose: u8, wanted: Option<&str>) -> Result<Option<Targets>, Failure> {
    if let Some(wanted) = wanted {
        let wrong = |why: &dyn std::fmt::Display| {
            let examples = "give error, warn, info, debug or trace, or such as info,virtbench_lab=trace";
            Failure::message(Kind::Usage, format!("{VARIABLE}={wanted}: {why}: {examples}"))
        };
        // A single word is a level, or a mistake: not the name of a part that nobody has.
        if !wanted.contains(['=', ',']) {
            let level: Level = wanted.trim().parse().map_err(|why| wrong(&why))?;
            return Ok(Some(Targets::new().with_target(OURS, level)));
        }
        return wanted.parse().map(Some).map_err(|why| wrong(&why));
    }
    let level = match verbose {
        0 => return Ok(None),
        1 => Level::INFO,
        2 => Level::DEBUG,
        _ => Level::TRACE,
    };
    Ok(Some(Targets::new().with_target(OURS, level)))
}

/// Stderr as everybody here writes to it, so that a picture which is drawn there stays whole.
struct Remarks;

impl Write for Remarks {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        tell!("{}", String::from_utf8_lossy(line).trim_end());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(verbose: u8, wanted: Option<&str>, target: &str, level: Level) -> bool {
        let shown = shown(verbose, wanted).unwrap_or_else(|failure| panic!("{failure}"));
        shown.is_some_and(|shown| shown.would_enable(target, &level))
    }

    #[test]
    fn nothing_is_shown_unless_it_is_asked_for() {
        assert!(!shows(0, None, "virtbench_lab::guest", Level::ERROR));
        assert!(shows(1, None, "virtbench_lab::guest", Level::INFO));
        assert!(!shows(1, None, "virtbench_lab::guest", Level::DEBUG));
        assert!(shows(2, None, "virtbench_lab::guest", Level::DEBUG));
        assert!(!shows(3, None, "rustls", Level::ERROR), "others' events are not ours");
        assert!(shows(0, Some("debug"), "virtbench_study", Level::DEBUG));
        let parts = Some("warn,virtbench_lab=trace");
        assert!(shows(0, parts, "virtbench_lab::guest", Level::TRACE));
        assert!(!shows(3, parts, "virtbench_study", Level::INFO), "the variable is the more exact");
        for wrong in ["loud", "virtbench_lab=loud"] {
            let failure = shown(0, Some(wrong)).map(drop).unwrap_err();
            assert!(failure.to_string().contains("give error, warn, info"), "{failure}");
        }
    }
}
