//! Sources of energy by their words, and the one that a host has.

use std::path::{Path, PathBuf};

use super::command::CommandEnergy;
use super::file::FileEnergy;
use super::rapl::Rapl;
use super::source::{EnergySource, NoEnergy};

/// Where Linux shows the counters of RAPL.
const POWERCAP: &str = "/sys/class/powercap";

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
