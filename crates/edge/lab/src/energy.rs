//! Where the energy that a host uses can be read: RAPL, a file that something else writes, or a command.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;
use virtbench_record::PowerSample;

use crate::command::run_command_followed;

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
fn since(unix_ns: u64, begin_unix_ns: u64) -> i64 {
    let difference = i128::from(unix_ns) - i128::from(begin_unix_ns);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// One counter: a package, or a platform as a whole.
#[derive(Debug)]
struct Zone {
    path: PathBuf,
    /// The counter begins anew beyond it, in microjoules.
    range_uj: u64,
    last_uj: u64,
}

/// All packages of this host. Their parts (cores, memory) are in them, and are not counted again.
#[derive(Debug)]
struct Rapl {
    zones: Vec<Zone>,
    last_unix_ns: Option<u64>,
    /// Begin and end of an interval in nanoseconds since 1970, and mean power in it, in watts.
    intervals: Vec<(u64, u64, f64)>,
}

impl Rapl {
    /// Looks in this folder, which is the kernel's.
    fn find(folder: &Path) -> Result<Self, NoEnergy> {
        let none = |why: &str| NoEnergy(format!("no RAPL in {}: {why}", folder.display()));
        let entries = fs::read_dir(folder).map_err(|error| none(&error.to_string()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let is_package = |path: &PathBuf| {
            // intel-rapl:0 is a package, intel-rapl:0:1 a part of one; intel-rapl-mmio counts the same again.
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.strip_prefix("intel-rapl:").is_some_and(|rest| !rest.contains(':')) && !is_platform(path)
        };
        let zones = paths.into_iter().filter(is_package).map(|path| {
            let range_uj = number(&path.join("max_energy_range_uj"))?;
            let last_uj = number(&path.join("energy_uj"))?;
            Ok(Zone { path, range_uj, last_uj })
        });
        let zones: Vec<Zone> =
            zones.collect::<Result<_, std::io::Error>>().map_err(|error| none(&error.to_string()))?;
        if zones.is_empty() {
            return Err(none("no package"));
        }
        Ok(Self { zones, last_unix_ns: None, intervals: Vec::new() })
    }
}

/// The whole platform (`psys`) has the packages in it.
fn is_platform(path: &Path) -> bool {
    fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == "psys")
}

fn number(path: &Path) -> Result<u64, std::io::Error> {
    fs::read_to_string(path)?.trim().parse().map_err(std::io::Error::other)
}

impl EnergySource for Rapl {
    fn name(&self) -> String {
        "rapl".into()
    }

    fn ask(&mut self, unix_ns: u64) -> Result<(), NoEnergy> {
        let mut used_uj = 0u64;
        for zone in &mut self.zones {
            let now_uj = number(&zone.path.join("energy_uj"))
                .map_err(|error| NoEnergy(format!("{}: {error}", zone.path.display())))?;
            let beyond = zone.range_uj.saturating_sub(zone.last_uj).saturating_add(now_uj);
            used_uj = used_uj.saturating_add(now_uj.checked_sub(zone.last_uj).unwrap_or(beyond));
            zone.last_uj = now_uj;
        }
        if let Some(last_unix_ns) = self.last_unix_ns
            && unix_ns > last_unix_ns
        {
            let seconds = (unix_ns - last_unix_ns) as f64 / 1e9;
            self.intervals.push((last_unix_ns, unix_ns, used_uj as f64 / 1e6 / seconds));
        }
        self.last_unix_ns = Some(unix_ns);
        Ok(())
    }

    /// Two samples of the same power for each interval, so that the integral over it is what was counted.
    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy> {
        if self.intervals.is_empty() {
            return Err(NoEnergy("RAPL was asked less than twice".into()));
        }
        let ends = |(from, to, watts): &(u64, u64, f64)| {
            let sample = |unix_ns| PowerSample { at_ns: since(unix_ns, begin_unix_ns), watts: *watts };
            [sample(*from), sample(to - 1)]
        };
        Ok(self.intervals.iter().flat_map(ends).collect())
    }
}

/// A longer file is not read, in bytes.
const LONGEST: u64 = 64 << 20;

/// A file of lines such as `1764000000.5,212.3`: a moment in seconds since 1970, and watts. It is read when measuring has ended,
/// so that its writer may be slow.
#[derive(Debug)]
struct FileEnergy {
    path: PathBuf,
}

impl FileEnergy {
    fn open(path: PathBuf) -> Result<Self, NoEnergy> {
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

/// How long a command may take; the next sample then comes later.
const LIMIT: Duration = Duration::from_secs(5);

/// A command by a shell. The last number that it prints is the power, in watts.
#[derive(Debug)]
struct CommandEnergy {
    command: String,
    /// Moments in nanoseconds since 1970, and watts.
    read: Vec<(u64, f64)>,
    trouble: Option<NoEnergy>,
}

impl CommandEnergy {
    fn new(command: &str) -> Self {
        Self { command: command.to_owned(), read: Vec::new(), trouble: None }
    }

    /// Nothing of it is left afterwards, nor when this process is killed.
    fn run(&self) -> Result<f64, NoEnergy> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]);
        let what = format!("the command {:?} for the power", self.command);
        let mut last = None;
        let told = &mut |line: &str| last = last_number(line).or(last);
        run_command_followed(command, &what, LIMIT, &AtomicBool::new(false), told)
            .map_err(|error| NoEnergy(error.to_string()))?;
        last.ok_or_else(|| NoEnergy(format!("{what} printed no number")))
    }
}

fn last_number(printed: &str) -> Option<f64> {
    let words = printed.split(|c: char| !(c.is_ascii_digit() || ".eE+-".contains(c)));
    let mut numbers = words.filter_map(|word| word.parse::<f64>().ok());
    numbers.rfind(|watts| watts.is_finite() && *watts >= 0.0)
}

impl EnergySource for CommandEnergy {
    fn name(&self) -> String {
        format!("command:{}", self.command)
    }

    fn ask(&mut self, unix_ns: u64) -> Result<(), NoEnergy> {
        match self.run() {
            Ok(watts) => {
                self.read.push((unix_ns, watts));
                Ok(())
            }
            Err(why) => {
                self.trouble = Some(why.clone());
                Err(why)
            }
        }
    }

    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy> {
        if self.read.is_empty() {
            return Err(self.trouble.clone().unwrap_or_else(|| NoEnergy("the command was not run".into())));
        }
        let sample = |(unix_ns, watts): &(u64, f64)| PowerSample {
            at_ns: since(*unix_ns, begin_unix_ns),
            watts: *watts,
        };
        Ok(self.read.iter().map(sample).collect())
    }
}

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

    fn zone(folder: &Path, name: &str, is: &str, uj: u64) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("name"), format!("{is}\n")).unwrap();
        fs::write(path.join("max_energy_range_uj"), "1000000000\n").unwrap();
        fs::write(path.join("energy_uj"), format!("{uj}\n")).unwrap();
        path
    }

    /// Two packages, one of which begins anew in between: 50 J and 30 J in two seconds are 40 W. Neither their parts nor the
    /// platform are counted.
    #[test]
    fn packages_are_added_up_and_a_counter_may_begin_anew() {
        let temp = tempfile::tempdir().unwrap();
        let first = zone(temp.path(), "intel-rapl:0", "package-0", 100_000_000);
        zone(temp.path(), "intel-rapl:0:0", "core", 5);
        let second = zone(temp.path(), "intel-rapl:1", "package-1", 990_000_000);
        zone(temp.path(), "intel-rapl:2", "psys", 7);
        let mut rapl = Rapl::find(temp.path()).unwrap();
        rapl.ask(10_000_000_000).unwrap();
        fs::write(first.join("energy_uj"), "150000000").unwrap();
        fs::write(second.join("energy_uj"), "20000000").unwrap();
        rapl.ask(12_000_000_000).unwrap();
        let samples = rapl.samples(10_000_000_000).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|sample| (sample.watts - 40.0).abs() < 1e-9), "{samples:?}");
        assert_eq!((samples[0].at_ns, samples[1].at_ns), (0, 1_999_999_999));
    }

    #[test]
    fn a_host_without_counters_says_so() {
        let temp = tempfile::tempdir().unwrap();
        assert!(Rapl::find(temp.path()).unwrap_err().to_string().contains("no package"));
        assert!(Rapl::find(&temp.path().join("x")).unwrap_err().to_string().starts_with("no RAPL in "));
    }

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

    #[test]
    fn the_last_number_of_a_command_is_its_power() {
        let mut source = CommandEnergy::new("echo 'Instantaneous power reading: 214.5 Watts'");
        source.ask(5_000_000_000).unwrap();
        assert_eq!(
            source.samples(4_000_000_000).unwrap(),
            [PowerSample { at_ns: 1_000_000_000, watts: 214.5 }]
        );
    }

    #[test]
    fn a_command_that_fails_says_why() {
        for (command, said) in [("exit 3", "ended with"), ("echo none", "printed no number")] {
            let mut source = CommandEnergy::new(command);
            assert!(source.ask(0).unwrap_err().to_string().contains(said));
            assert!(source.samples(0).unwrap_err().to_string().contains(said));
        }
    }

    #[test]
    fn what_is_no_source_is_refused_with_what_there_is() {
        for words in ["", "wind", "file:", "command: ", "rapl:x"] {
            let error = open_energy(words).unwrap_err().to_string();
            assert!(error.contains("write rapl, file:PATH or command:WORDS"), "{words}: {error}");
        }
        assert!(open_energy("file:/nowhere/watts").unwrap_err().to_string().contains("/nowhere/watts"));
    }
}
