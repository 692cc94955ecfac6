//! The load that replays a `--trace` file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use virtbench_formats::Schedule;
use virtbench_formats::trace::{Trace, read_trace};
use virtbench_units::format_duration_ns;
use virtbench_workload::{LoadSpec, MAX_PHASE_NS, Recording};

use super::job::{Job, Plan};
use crate::args::LoadArgs;
use crate::exit::{Failure, Kind};

/// How long a trace may take that is replayed as fast as possible and without --time.
const MAX_UNPACED_NS: u64 = 24 * 3_600_000_000_000;

/// Reads a trace's file.
///
/// # Errors
/// It cannot be read, with the line.
pub fn read_file(path: &Path) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|error| refused(path, format!("cannot be opened: {error}")))?;
    read_trace(BufReader::new(file)).map_err(|error| refused(path, error.to_string()))
}

fn refused(path: &Path, why: String) -> Failure {
    Failure::message(Kind::Usage, format!("--trace {}: {why}", path.display()))
}

/// Reads the trace into the load that the options make.
///
/// # Errors
/// The file cannot be read, with the line; or it would take longer than a week.
pub fn read(
    path: &Path,
    args: &LoadArgs,
    given: LoadSpec,
    matches: Option<&ArgMatches>,
) -> Result<Plan, Failure> {
    let name = path.display().to_string();
    let trace = read_file(path)?;
    let recording = Recording::new(name.clone(), args.trace.pace, trace.ops);
    let explicit = |name: &str| {
        matches.is_some_and(|matches| matches.value_source(name) == Some(ValueSource::CommandLine))
    };
    let whole_ns = match recording.paced_length_ns() {
        None => MAX_UNPACED_NS,
        // What waits when the last operation is due is given time to complete.
        Some(length_ns) => length_ns.saturating_add(given.timeout_ns),
    };
    if !explicit("time") && whole_ns > MAX_PHASE_NS {
        let length = format_duration_ns(whole_ns);
        return Err(refused(
            path,
            format!("it takes {length} at this pace, longer than a week: raise --pace or give --time"),
        ));
    }
    let load = LoadSpec {
        access: recording.access(),
        ramp_ns: if explicit("ramp") { given.ramp_ns } else { 0 },
        time_ns: if explicit("time") { given.time_ns } else { whole_ns },
        trace: Some(recording),
        ..given
    };
    let target = args.shape.target.clone().unwrap_or_default();
    Ok(Plan {
        jobs: vec![Job {
            name: None,
            target,
            size_bytes: args.shape.common.size,
            later_bytes: None,
            group: 0,
            schedule: Schedule::default(),
            load,
        }],
        notes: trace.notes,
        ignored: Vec::new(),
    })
}
