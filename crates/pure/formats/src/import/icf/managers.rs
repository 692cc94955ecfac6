//! The sections of a configuration: MANAGER LIST with workers, their settings, specifications and targets; ACCESS
//! SPECIFICATIONS; TEST SETUP.

use virtbench_workload::{AccessLine, AccessSpec, MAX_WORKERS};

use super::super::{Findings, ImportError, Location, MAX_JOBS};
use super::lines::{Columns, Lines, Pair, number, shorten, starts};

const MAX_SPECS: usize = 100;

const MAX_TARGETS: usize = 32;

/// A disk worker.
#[derive(Debug, Clone, Default)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// Outstanding I/Os on each target.
    pub outstanding: u32,
    /// The seed, where it is fixed.
    pub seed: Option<u64>,
    /// Part of the disk that is used, in sectors of 512 bytes; 0 for all of it.
    pub size_sectors: u64,
    /// Where that part begins, in sectors of 512 bytes.
    pub start_sector: u64,
    /// Which manager it belongs to, from 1.
    pub manager: usize,
    /// 0 repeating bytes, 1 pseudo-random, 2 random; absent in older versions.
    pub pattern: Option<u32>,
    /// Names of the assigned specifications, with their lines.
    pub specs: Vec<(String, usize)>,
    /// Names of the targets.
    pub targets: Vec<String>,
}

/// Reads the section up to its end.
pub fn read_managers(
    lines: &mut Lines<'_>,
    workers: &mut Vec<Worker>,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let mut managers = 0;
    while let Some((line, content)) = lines.next() {
        if starts(content, "'end manager list") {
            return Ok(());
        }
        if starts(content, "'worker") && !starts(content, "'worker type") {
            if workers.len() == MAX_WORKERS as usize {
                let at = Location::line(line);
                return Err(ImportError::TooMany { at, what: "workers", most: MAX_WORKERS as usize });
            }
            let name = lines.next_value().map_or("", |(_, name)| name).to_owned();
            workers.extend(
                worker(lines, name, line, findings)?.map(|worker| Worker { manager: managers, ..worker }),
            );
        } else if starts(content, "'manager") {
            // The machine's name and address are passed over.
            managers += usize::from(starts(content, "'manager id"));
            lines.next_value();
        } else if !starts(content, "'end manager") {
            findings.ignore(
                Location::line(line),
                format!("{:?} is not known in the manager list", shorten(content)),
            );
        }
    }
    Err(ImportError::Syntax { at: Location::line(1), why: "the file ends inside the manager list".into() })
}

/// One worker up to its end; nothing for a network worker.
fn worker(
    lines: &mut Lines<'_>,
    name: String,
    line: usize,
    findings: &mut Findings,
) -> Result<Option<Worker>, ImportError> {
    let mut worker = Worker { name, outstanding: 1, ..Worker::default() };
    let mut disk = true;
    // Pairs, not lines: headings of parts have no value and pass by.
    while let Some(pair) = lines.pair("'end worker")? {
        let Pair { key, line, value } = pair;
        let lower = key.to_ascii_lowercase();
        let at = Location::line(line);
        if lower.starts_with("worker type") {
            disk = starts(value, "DISK");
        } else if lower.starts_with("number of outstanding ios") {
            outstanding(&mut worker, key, value, line, findings)?;
        } else if lower.starts_with("disk maximum size") {
            extent(&mut worker, key, value, line)?;
        } else if lower.starts_with("assigned access specs") {
            let rest = std::iter::from_fn(|| lines.next_value());
            for (line, name) in [(line, value)].into_iter().chain(rest).filter(|(_, name)| !name.is_empty()) {
                if worker.specs.len() == MAX_SPECS {
                    let at = Location::line(line);
                    return Err(ImportError::TooMany {
                        at,
                        what: "specifications of a worker",
                        most: MAX_SPECS,
                    });
                }
                worker.specs.push((name.to_owned(), line));
            }
        } else if lower == "target" {
            if worker.targets.len() == MAX_TARGETS {
                return Err(ImportError::TooMany { at, what: "targets of a worker", most: MAX_TARGETS });
            }
            worker.targets.push(value.to_owned());
        } else if !(lower.starts_with("default target settings")
            || lower.starts_with("target")
            || lower.starts_with("end ")
            || !disk)
        {
            findings.ignore(at, format!("{:?} is not known for a worker", shorten(key)));
        }
    }
    if !disk {
        let name = shorten(&worker.name);
        findings.ignore(
            Location::line(line),
            format!("worker {name:?} is a network worker; only disks are loaded"),
        );
    }
    Ok(disk.then_some(worker))
}

fn outstanding(
    worker: &mut Worker,
    key: &str,
    value: &str,
    line: usize,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let columns = Columns::new(key);
    worker.outstanding = columns.number(value, "Number of outstanding IOs", line)?.unwrap_or(1);
    let enabled =
        |name: &str| columns.get(value, name).is_some_and(|word| word.eq_ignore_ascii_case("ENABLED"));
    if enabled("test connection rate") {
        findings.ignore(Location::line(line), "test connection rate: targets are opened once");
    }
    if enabled("use fixed seed") {
        worker.seed = columns.number(value, "fixed seed value", line)?;
    }
    Ok(())
}

fn extent(worker: &mut Worker, key: &str, value: &str, line: usize) -> Result<(), ImportError> {
    let columns = Columns::new(key);
    worker.size_sectors = columns.number(value, "Disk maximum size", line)?.unwrap_or(0);
    worker.start_sector = columns.number(value, "starting sector", line)?.unwrap_or(0);
    worker.pattern = columns.number(value, "Data pattern", line)?;
    Ok(())
}

/// The most lines of a specification, Iometer's own limit.
const MAX_ROWS: usize = 100;

const COLUMNS: [&str; 8] = ["size", "% of size", "% reads", "% random", "delay", "burst", "align", "reply"];

/// A named access specification.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// The mix; empty for the idle specification. An alignment of 0 is the sector of the device.
    pub access: AccessSpec,
}

/// Reads the section up to its end.
pub fn read_access(
    lines: &mut Lines<'_>,
    specs: &mut Vec<Spec>,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let mut columns: Option<Columns<'_>> = None;
    loop {
        let Some((line, content)) = lines.next() else {
            let why = "the file ends inside the access specifications".into();
            return Err(ImportError::Syntax { at: Location::line(1), why });
        };
        if starts(content, "'end access specifications") {
            return Ok(());
        }
        if starts(content, "'access specification name") {
            let (_, value) = lines.next_value().unwrap_or((line, ""));
            let name = value.split(',').next().unwrap_or("").trim();
            if name.is_empty() {
                let why = "the access specification has no name on the next line".into();
                return Err(ImportError::Syntax { at: Location::line(line), why });
            }
            if specs.len() == MAX_JOBS {
                let (at, what) = (Location::line(line), "access specifications");
                return Err(ImportError::TooMany { at, what, most: MAX_JOBS });
            }
            // As in Iometer, a second one of the same name takes the place of the first.
            specs.retain(|spec| spec.name != name);
            specs.push(Spec { name: name.to_owned(), access: AccessSpec { lines: Vec::new() } });
            columns = None;
        } else if starts(content, "'size") {
            let named = Columns::new(content);
            for name in named.names().iter().filter(|name| !name.is_empty()) {
                if !COLUMNS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                    findings.ignore(Location::line(line), format!("column {:?} is not known", shorten(name)));
                }
            }
            columns = Some(named);
        } else if content.starts_with('\'') {
            findings.ignore(Location::line(line), format!("{:?} is not known here", shorten(content)));
        } else {
            let (Some(spec), Some(columns)) = (specs.last_mut(), &columns) else {
                let why = "a row of an access specification before the line that names its columns".into();
                return Err(ImportError::Syntax { at: Location::line(line), why });
            };
            if spec.access.lines.len() == MAX_ROWS {
                let at = Location::line(line);
                return Err(ImportError::TooMany { at, what: "rows in a specification", most: MAX_ROWS });
            }
            spec.access.lines.extend(row(columns, content, line, findings)?);
        }
    }
}

/// One row; nothing where its share is zero.
fn row(
    columns: &Columns<'_>,
    content: &str,
    line: usize,
    findings: &mut Findings,
) -> Result<Option<AccessLine>, ImportError> {
    let needed = |name: &str| {
        columns.get(content, name).ok_or_else(|| ImportError::Syntax {
            at: Location::line(line),
            why: format!("the row has no value for {name:?}"),
        })
    };
    let size_bytes: u64 = number(needed("size")?, "size", line)?;
    let share_percent: f64 = number(needed("% of size")?, "% of size", line)?;
    let read_percent: f64 = number(needed("% reads")?, "% reads", line)?;
    let random_percent: f64 = number(needed("% random")?, "% random", line)?;
    let delay_ms: u64 = columns.number(content, "delay", line)?.unwrap_or(0);
    let burst: u32 = columns.number(content, "burst", line)?.unwrap_or(1);
    let align: u64 = columns.number(content, "align", line)?.unwrap_or(size_bytes);
    let reply: u64 = columns.number(content, "reply", line)?.unwrap_or(0);
    if reply != 0 {
        findings.ignore(Location::line(line), format!("a reply of {reply} bytes: replies are for networks"));
    }
    let delay_ns = delay_ms.checked_mul(1_000_000).ok_or_else(|| ImportError::Syntax {
        at: Location::line(line),
        why: format!("a delay of {delay_ms} ms is out of range"),
    })?;
    Ok((share_percent != 0.0).then(|| AccessLine {
        share_percent,
        delay_ns,
        burst: burst.max(1),
        align_bytes: align,
        ..AccessLine::new(size_bytes, read_percent, random_percent)
    }))
}

/// What the set-up says about a run.
#[derive(Debug, Default)]
pub struct Setup {
    /// Measuring time, in nanoseconds; 0 for a run that only its user ends.
    pub time_ns: u64,
    /// Ramp-up, in nanoseconds.
    pub ramp_ns: u64,
    /// Disk workers to start where none are listed.
    pub workers: Option<u32>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// Reads the section up to its end.
pub fn read_setup(lines: &mut Lines<'_>, findings: &mut Findings) -> Result<Setup, ImportError> {
    let mut setup = Setup::default();
    while let Some(pair) = lines.pair("'end test setup")? {
        let at = Location::line(pair.line);
        match pair.key.to_ascii_lowercase().as_str() {
            "run time" => setup.time_ns = run_time(pair.value, pair.line)?,
            key if key.starts_with("ramp up time") => {
                setup.ramp_ns = seconds(number(pair.value, "ramp up time", pair.line)?, pair.line)?;
            }
            "default disk workers to spawn" | "default workers to spawn" => {
                if pair.value.eq_ignore_ascii_case("NUMBER_OF_CPUS") {
                    findings.note("NUMBER_OF_CPUS workers were asked for: say how many there are to be");
                } else {
                    let first = pair.value.split([',', ' ', '\t']).next().unwrap_or("");
                    setup.workers =
                        Some(number(first, "default disk workers", pair.line)?).filter(|n| *n > 0);
                }
            }
            "test type" => {
                if !pair.value.eq_ignore_ascii_case("NORMAL") && pair.value != "0" {
                    let kind = shorten(pair.value);
                    findings
                        .ignore(at, format!("test type {kind}: only NORMAL is known; give each load a run"));
                }
            }
            "test description"
            | "default network workers to spawn"
            | "record results"
            | "worker cycling"
            | "disk cycling"
            | "queue depth cycling" => findings.leave_out(pair.key, pair.line),
            _ => findings.ignore(at, format!("{:?} is not known in the test set-up", shorten(pair.key))),
        }
    }
    Ok(setup)
}

/// Hours, minutes and seconds.
fn run_time(text: &str, line: usize) -> Result<u64, ImportError> {
    let parts: Vec<&str> = text.split([' ', '\t', ',']).filter(|part| !part.is_empty()).take(4).collect();
    let [hours, minutes, rest] = parts[..] else {
        let why = "a run time has hours, minutes and seconds".into();
        return Err(ImportError::Syntax { at: Location::line(line), why });
    };
    let [hours, minutes, rest]: [u32; 3] =
        [number(hours, "hours", line)?, number(minutes, "minutes", line)?, number(rest, "seconds", line)?];
    seconds(u64::from(hours) * 3600 + u64::from(minutes) * 60 + u64::from(rest), line)
}

fn seconds(seconds: u64, line: usize) -> Result<u64, ImportError> {
    seconds.checked_mul(SECOND_NS).ok_or_else(|| ImportError::Syntax {
        at: Location::line(line),
        why: format!("{seconds} s is no time anyone can wait"),
    })
}
