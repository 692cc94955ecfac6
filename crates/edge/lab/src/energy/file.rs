//! Power out of a file that something else writes.

use std::fs;
use std::path::PathBuf;

use virtbench_record::PowerSample;

use super::source::{EnergySource, NoEnergy, since};

/// A longer file is not read, in bytes.
const LONGEST: u64 = 64 << 20;

/// A file of lines such as `1764000000.5,212.3`: a moment in seconds since 1970, and watts. It is read when measuring has ended,
/// so that its writer may be slow.
#[derive(Debug)]
pub(super) struct FileEnergy {
    path: PathBuf,
}

impl FileEnergy {
    pub(super) fn open(path: PathBuf) -> Result<Self, NoEnergy> {
        match fs::metadata(&path) {
            Ok(facts) if facts.is_file() => Ok(Self { path }),
            Ok(_) => Err(NoEnergy(format!("energy: {} is no file", path.display()))),
            Err(error) => Err(NoEnergy(format!("energy: {}: {error}", path.display()))),
        }
    }
}

impl EnergySource for FileEnergy {
    fn name(&self) -> String {
        format!("file:{}", self.path.display())
    }

    fn ask(&mut self, _: u64) -> Result<(), NoEnergy> {
        Ok(())
    }

    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy> {
        let wrong = |why: String| NoEnergy(format!("{}: {why}", self.path.display()));
        let size = fs::metadata(&self.path).map_err(|error| wrong(error.to_string()))?.len();
        if size > LONGEST {
            return Err(wrong(format!("it has {size} bytes, more than {LONGEST}")));
        }
        let text = fs::read_to_string(&self.path).map_err(|error| wrong(error.to_string()))?;
        parse(&text, begin_unix_ns).map_err(wrong)
    }
}

fn parse(text: &str, begin_unix_ns: u64) -> Result<Vec<PowerSample>, String> {
    let mut samples = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line.split_once(',').and_then(|(moment, watts)| {
            let seconds: f64 = moment.trim().parse().ok()?;
            let watts: f64 = watts.trim().parse().ok()?;
            (seconds.is_finite() && (0.0..1e10).contains(&seconds) && watts.is_finite() && watts >= 0.0)
                .then_some((seconds, watts))
        });
        match pair {
            Some((seconds, watts)) => {
                let unix = std::time::Duration::from_secs_f64(seconds);
                let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
                samples.push(PowerSample { at_ns: since(unix_ns, begin_unix_ns), watts });
            }
            // A header, or a line that is being written.
            None if number == 1 || !text.ends_with('\n') && number == text.lines().count() => {}
            None => {
                return Err(format!(
                    "line {number} {line:?} is no moment and watts, such as 1764000000.5,212.3"
                ));
            }
        }
    }
    if samples.is_empty() { Err("there is no line of a moment and watts".into()) } else { Ok(samples) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_from_the_beginning_of_measuring() {
        let text = "time,watts\n999.5,100\n\n# idle\n1001,200.5\n1002,2";
        let samples = parse(text, 1_000_000_000_000).unwrap();
        assert_eq!(samples.len(), 3);
        assert_eq!((samples[0].at_ns, samples[0].watts), (-500_000_000, 100.0));
        assert_eq!((samples[1].at_ns, samples[1].watts), (1_000_000_000, 200.5));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        assert!(parse("1,2\nx\n3,4\n", 0).unwrap_err().contains("line 2"));
        assert!(parse("1,2\n3,-4\n5,6\n", 0).unwrap_err().contains("line 2"));
        assert!(parse("time,watts\n", 0).unwrap_err().contains("no line"));
    }

    #[test]
    fn a_recorded_file_is_read_when_it_is_asked_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut source = FileEnergy::open(file.path().to_owned()).unwrap();
        source.ask(0).unwrap();
        assert!(source.samples(0).is_err());
        fs::write(file.path(), "1,10\n2,20\n").unwrap();
        assert_eq!(source.samples(0).unwrap().len(), 2);
    }
}
