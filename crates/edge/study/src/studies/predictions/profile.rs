//! The profile of a command that is run here.

use std::io::{self, Read};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::thread;

use virtbench_lab::{CpuSample, LabError, host_facts};
use virtbench_profiler::{Application, ApplicationError, Limits, ProfilerError, profile};
use virtbench_record::Profile;

use super::error::ApplicationsError;
use super::metric::Metric;

/// How much of what a command prints is kept, in bytes.
const MOST_OUTPUT: usize = 64 << 10;

/// How a command is watched.
#[derive(Debug, Clone, Copy)]
pub struct CommandProfile<'a> {
    /// Its program and arguments.
    pub command: &'a [String],
    /// Where it is run; in this process's folder where there is none.
    pub folder: Option<&'a Path>,
    /// What its capacity is read from, as [`Metric::parse`] takes it.
    pub metric: Option<&'a str>,
    /// For how long it is watched.
    pub limits: Limits,
    /// Given what it prints, as it comes.
    pub echo: fn(&[u8]),
}

/// Runs a command and watches it.
///
/// # Errors
/// It cannot be run, says nothing that the metric could be read from, ends too soon or moves no data.
pub fn profile_command(inputs: &CommandProfile<'_>, stop: &AtomicBool) -> Result<Profile, ApplicationsError> {
    let CommandProfile { command, folder, metric, limits, echo } = *inputs;
    let wrong = |why: String| ApplicationsError::Input(format!("--metric: {why}").into());
    let parsed = metric.map(Metric::parse).transpose().map_err(wrong)?;
    let failed =
        |error: io::Error| ApplicationsError::Environment(format!("cannot run a command: {error}").into());
    let (reader, writer) = io::pipe().map_err(failed)?;
    let listener = thread::spawn(move || listen(reader, echo));
    let io_needed = parsed.as_ref().is_none_or(|metric| matches!(metric, Metric::Io));
    let limits = Limits { io_needed, ..limits };
    let start = move || Application::start(command, folder, Some(Stdio::from(writer)));
    let before = CpuSample::take().map_err(LabError::from)?;
    let profiled = profile(start, limits, stop);
    let host_use = before.until(&CpuSample::take().map_err(LabError::from)?);
    // Everything that could still write has been ended.
    let output = listener.join().unwrap_or_default();
    let mut profile = profiled.map_err(profiler_failure)?;
    if let (Some(parsed), Some(text)) = (parsed, metric) {
        let seconds = profile.elapsed_ns.map_or(f64::NAN, |ns| ns as f64 / 1e9);
        let capacity = parsed.read(seconds, Some(profile.rate()), &output);
        profile.capacity = Some(capacity.map_err(|why| ApplicationsError::Target(why.into()))?);
        profile.metric = Some(text.to_owned());
        profile.check().map_err(|error| ApplicationsError::Target(error.into()))?;
    }
    profile.host_use = Some(host_use);
    profile.host = Some(host_facts(folder.unwrap_or(Path::new("."))));
    Ok(profile)
}

/// Whose fault it is that there is no profile.
#[must_use]
pub fn profiler_failure(error: ProfilerError) -> ApplicationsError {
    match &error {
        ProfilerError::Application(ApplicationError::Start { .. } | ApplicationError::NoProcess(_))
        | ProfilerError::TooShort { .. }
        | ProfilerError::NoIo { .. }
        | ProfilerError::Hidden { .. } => ApplicationsError::Target(error.into()),
        _ => ApplicationsError::Measured(error.into()),
    }
}

/// Passes on what a command prints, and gives the end of it.
fn listen(mut reader: impl Read, echo: fn(&[u8])) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        echo(&buffer[..count]);
        kept.extend_from_slice(&buffer[..count]);
        if kept.len() > 2 * MOST_OUTPUT {
            kept.drain(..MOST_OUTPUT);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
