//! What sources of energy have in common.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_record::PowerSample;

use super::command::CommandEnergy;
use super::file::FileEnergy;
use super::rapl::Rapl;

/// Where Linux shows the counters of RAPL.
const POWERCAP: &str = "/sys/class/powercap";

/// A source of energy, asked every second from before measuring to its end.
pub trait EnergySource: Debug + Send {
    /// Its name in records, such as `rapl`.
    fn name(&self) -> String;

    /// Asks it now, at a moment in nanoseconds since 1970. A source that takes long makes the next answer come later, and nothing
    /// else.
    ///
    /// # Errors
    /// It does not answer; the next time it may.
    fn ask(&mut self, unix_ns: u64) -> Result<(), NoEnergy>;

    /// Power that was read so far, at moments in nanoseconds since `begin_unix_ns`.
    ///
    /// # Errors
    /// Nothing was read; why not.
    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy>;
}

/// Why no energy can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoEnergy(pub String);

/// The moment in nanoseconds since another one; at the ends of time where it is farther.
pub(super) fn since(unix_ns: u64, begin_unix_ns: u64) -> i64 {
    let difference = i128::from(unix_ns) - i128::from(begin_unix_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// The source of these words: `rapl`, `file:PATH` with lines of a moment in seconds since 1970 and watts, or `command:WORDS`,
/// run by a shell, which prints watts.
///
/// # Errors
/// There is no such source, or it is not here.
pub fn open_energy(words: &str) -> Result<Box<dyn EnergySource>, NoEnergy> {
    match words.split_once(':').unwrap_or((words, "")) {
        ("rapl", "") => Ok(Box::new(Rapl::find(Path::new(POWERCAP))?)),
        ("file", path) if !path.is_empty() => Ok(Box::new(FileEnergy::open(PathBuf::from(path))?)),
        ("command", command) if !command.trim().is_empty() => Ok(Box::new(CommandEnergy::new(command))),
        _ => Err(NoEnergy(format!("energy {words:?}: write rapl, file:PATH or command:WORDS"))),
    }
}

/// The source that this host has.
///
/// # Errors
/// It has none.
pub fn find_energy() -> Result<Box<dyn EnergySource>, NoEnergy> {
    match Rapl::find(Path::new(POWERCAP)) {
        Ok(rapl) => Ok(Box::new(rapl)),
        Err(why) => Err(NoEnergy(format!("no energy source ({why})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_source_is_refused_with_what_there_is() {
        for words in ["", "wind", "file:", "command: ", "rapl:x"] {
            let error = open_energy(words).unwrap_err().to_string();
            assert!(error.contains("write rapl, file:PATH or command:WORDS"), "{words}: {error}");
        }
        assert!(open_energy("file:/nowhere/watts").unwrap_err().to_string().contains("/nowhere/watts"));
    }
}
