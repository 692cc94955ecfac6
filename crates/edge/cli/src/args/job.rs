//! What a VM does in a study of several: a workload, or a load.

use virtbench_study::NamedJob;
use virtbench_units::{parse_bytes, parse_duration_ns};
use virtbench_workload::{AccessSpec, JobSpec, LoadSpec, parse_mix_line};

use super::read_workload;

/// Whose region is the whole disk: the study puts its size in.
const WHOLE_DISK: u64 = 1 << 50;

/// Reads a workload as `virtbench workload` does, or `load:KEY=VALUE,...`.
///
/// # Errors
/// What cannot be read, in words.
pub fn read_job(text: &str) -> Result<NamedJob, String> {
    let spec = match text.strip_prefix("load").filter(|rest| rest.is_empty() || rest.starts_with(':')) {
        Some(options) => JobSpec::Load(load(options.trim_start_matches(':'))?),
        None => JobSpec::Workload(read_workload(text)?),
    };
    Ok(NamedJob { name: text.to_owned(), spec })
}

/// A load of one line: the keys of `virtbench load --mix` less the share, and those of a whole load.
fn load(options: &str) -> Result<LoadSpec, String> {
    let (mut line, mut sized) = (vec!["share=100".to_owned()], false);
    let mut spec = LoadSpec::new(AccessSpec { lines: Vec::new() }, WHOLE_DISK);
    spec.time_ns = 10_000_000_000;
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let wrong = |error: &dyn std::fmt::Display| format!("{key}={value}: {error}");
        match key {
            "outstanding" => spec.outstanding = value.parse().map_err(|error| wrong(&error))?,
            "workers" => spec.workers = value.parse().map_err(|error| wrong(&error))?,
            "time" => spec.time_ns = parse_duration_ns(value).map_err(|error| wrong(&error))?,
            "ramp" => spec.ramp_ns = parse_duration_ns(value).map_err(|error| wrong(&error))?,
            "region" => spec.region_bytes = parse_bytes(value).map_err(|error| wrong(&error))?,
            _ => {
                sized |= key == "size";
                line.push(option.to_owned());
            }
        }
    }
    if !sized {
        line.push("size=4k".to_owned());
    }
    let line = parse_mix_line(&line.join(","))
        .map_err(|error| format!("{error}; a load also has outstanding, workers, time, ramp and region"))?;
    spec.access = AccessSpec { lines: vec![line] };
    spec.interval_ns = (spec.time_ns / 20).max(1_000_000);
    spec.validate().map_err(|error| error.to_string())?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_and_a_workload_are_told_apart() {
        let JobSpec::Load(load) = read_job("load:read=70,random=50,outstanding=4,time=2s").unwrap().spec
        else {
            panic!("no load");
        };
        let line = &load.access.lines[0];
        assert_eq!((line.size_bytes, line.read_percent, line.random_percent), (4096, 70.0, 50.0));
        assert_eq!((load.outstanding, load.time_ns), (4, 2_000_000_000));
        assert!(matches!(read_job("memory:threads=2").unwrap().spec, JobSpec::Workload(_)));
        assert!(matches!(read_job("load").unwrap().spec, JobSpec::Load(_)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in
            [("load:speed=9", "speed"), ("load:outstanding=x", "outstanding=x"), ("tape", "tape")]
        {
            let message = read_job(text).unwrap_err();
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
