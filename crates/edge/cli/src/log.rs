//! What happens besides results: on stderr where it is asked for, and in a file of each run folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use virtbench_runs::LOG;

use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

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
        .with_writer(|| Kept)
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

/// When a file is as large as this, its older half goes.
const MOST_BYTES: usize = 1 << 20;

/// What happens before there is a folder is kept for it as far as this.
const MOST_WAITING_BYTES: usize = 64 << 10;

/// Where lines go.
#[derive(Debug)]
enum Destination {
    /// There is no folder yet.
    Waiting(Vec<u8>),
    File(Bounded),
}

static DESTINATION: Mutex<Destination> = Mutex::new(Destination::Waiting(Vec::new()));

/// From now on everything is kept in this folder, also what has happened before. A folder that takes no file has none: that is
/// no reason to measure nothing.
pub fn keep_in(folder: &Path) {
    let mut place = DESTINATION.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(mut file) = Bounded::open(&folder.join(LOG), MOST_BYTES) else { return };
    if let Destination::Waiting(lines) = &*place {
        let _ = file.add(lines);
    }
    *place = Destination::File(file);
}

/// The writer of the layer that keeps.
struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) {
            Destination::Waiting(lines) if lines.len() + line.len() > MOST_WAITING_BYTES => {}
            Destination::Waiting(lines) => lines.extend_from_slice(line),
            Destination::File(file) => drop(file.add(line)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is appended to and keeps its newest lines.
#[derive(Debug)]
struct Bounded {
    path: PathBuf,
    file: File,
    bytes: usize,
    most_bytes: usize,
}

impl Bounded {
    fn open(path: &Path, most_bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        Ok(Self { path: path.to_owned(), file, bytes, most_bytes })
    }

    fn add(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.bytes.saturating_add(lines.len()) > self.most_bytes {
            self.halve()?;
        }
        self.file.write_all(lines)?;
        self.bytes += lines.len();
        Ok(())
    }

    /// Leaves the newer half, in whole lines; the file is whole at any moment.
    fn halve(&mut self) -> io::Result<()> {
        let all = fs::read(&self.path)?;
        let newer = &all[all.len().saturating_sub(self.most_bytes / 2)..];
        let begin = newer.iter().position(|byte| *byte == b'\n').map_or(newer.len(), |end| end + 1);
        let beside = self.path.with_extension("log.new");
        fs::write(&beside, &newer[begin..])?;
        fs::rename(&beside, &self.path)?;
        *self = Self::open(&self.path, self.most_bytes)?;
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

    #[test]
    fn a_file_keeps_its_newest_lines_and_does_not_grow_beyond_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOG);
        let mut file = Bounded::open(&path, 1000).unwrap();
        for number in 0..500 {
            file.add(format!("line {number}\n").as_bytes()).unwrap();
            assert!(fs::metadata(&path).unwrap().len() <= 1000);
        }
        drop(file);
        Bounded::open(&path, 1000).unwrap().add(b"line 500\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let first: usize = lines[0].strip_prefix("line ").unwrap().parse().unwrap();
        let expected: Vec<String> = (first..=500).map(|number| format!("line {number}")).collect();
        assert!(lines == expected && lines.len() > 40, "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-made is left");
    }
}
