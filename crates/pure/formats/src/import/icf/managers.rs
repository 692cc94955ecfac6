//! The section MANAGER LIST: workers with their settings, specifications and targets.

use virtbench_workload::MAX_WORKERS;

use super::super::{Findings, ImportError, Location};
use super::lines::{Columns, Lines, Pair, shorten, starts};

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
pub fn read(
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
