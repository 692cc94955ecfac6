//! Workloads on the command line: `virtbench workload`, and what a VM does in a study of several.

use std::path::PathBuf;

use clap::Args;
use virtbench_study::NamedJob;
use virtbench_units::{parse_bytes, parse_duration_ns};
use virtbench_workload::{AccessSpec, JobSpec, LoadSpec, WorkloadSpec, parse_mix_line};

use crate::say::tell;

/// `virtbench workload`
#[derive(Debug, Args)]
#[command(after_help = "\
A workload is written as in studies: NAME[:KEY=VALUE,...].

  memory   COPY, SCALE, ADD and TRIAD over arrays, as STREAM and RAMSMP measure
           threads   [one on each processor]
           array     size of each of three arrays [four times the last-level cache]
           kernel    how long each is repeated in a run [300ms]
           stores    regular, non-temporal or both [both]
  cpu      twelve computations in the kinds of SPECjvm2008; results are checked
           threads   [one on each processor]
           kernel    how long each is repeated in a run [1s]
           kernels   some of parse+compress+aes+sha+sign-verify+fft+lu+monte-carlo+sor+sparse+serial+xml
  bonnie   Bonnie++'s tests: characters, blocks, rewriting, seeks, small files
           size      of the large file [twice the memory]
           bs        size of a block [8KiB]
           chars     buffered, syscall (as from Bonnie++ 2.00 on) or none [buffered]
           threads, seeks, seek-writes   seekers, seeks of all, and how many write [5, 8000, 10%]
           files, file-size   small files and their size [16384, 0]
  iozone   Iozone's tests: write, rewrite, read, random, backward, strided, ...
           size      of the file [twice the memory]
           bs        sizes of a record [64KiB+128KiB]
           tests     some of write+rewrite+read+reread+random-read+random-write+backward-read+
                     record-rewrite+strided-read
           stride, flush   records a stride, whether flushing counts [17, yes]
  fileserver, mailserver, webserver   as in Filebench
           threads, files   [50, 10000; 16, 1000; 100, 1000]
  MODEL.f  a Filebench model; set=NAME:VALUE sets its variables, again and again
  dbench   clients that replay a loadfile
           file      [/usr/share/dbench/client.txt]
           threads, client-rate   clients, and bytes a second that each may move [1, no limit]
  command [:KEY=VALUE,...] -- PROGRAM WORDS   a program of yours, run in the folder: how long it takes, what the
           machine's processors do meanwhile, how it ends, the end of its output. Words are quoted as for a shell

All that work on files need --dir, and have:
  cache         between phases: drop, keep, or direct (bonnie and iozone) [drop]
  run           how long one run of a model or of dbench is [60s, or what MODEL.f says]
  rate          operations a second of all threads together [as fast as can be]
  arrivals      constant or poisson [constant]
  pace          limit, or open: what was missed is made up for, and response time counts from the
                intended start [limit]

Every workload has:
  warm-ups      how often it is run before measuring, so that what it reads is in memory [0]
  runs          how often it is run, a sample of each figure a time [5]
  time          instead of runs: again and again for this long
  ramp          run for this long before measuring [0s]
  limit         ended after this long at the latest [1h]
  interval      of the series [500ms]
  seed          of random choices [1]
  ballast       memory kept resident meanwhile [none]
  drop-caches   empty the page cache before each run; on this host only of the workload's own files

Examples:
  virtbench workload memory
  virtbench workload memory:threads=1,stores=regular
  virtbench workload cpu:kernel=500ms,runs=3 --json
  virtbench workload cpu:kernels=aes+fft,ballast=1GiB
  virtbench workload fileserver:threads=8,run=30s,runs=3 --dir /srv
  virtbench workload mailserver:rate=200/s --dir /srv
  virtbench workload bonnie:runs=1 --dir /srv
  virtbench workload dbench:threads=10 --dir /srv
  virtbench workload 'command:runs=3 -- make -j4' --dir /srv/source")]
pub struct WorkloadArgs {
    /// What is run: NAME[:KEY=VALUE,...], see below
    #[arg(value_name = "WORKLOAD", value_parser = read_workload)]
    pub workload: WorkloadSpec,
    /// Folder for workloads that need storage: they make one of their own in it, and remove it again
    #[arg(long, visible_alias = "dir", value_name = "DIR")]
    pub place: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Reads `NAME[:KEY=VALUE,...]`, `MODEL.f[:KEY=VALUE,...]` or `dbench[:KEY=VALUE,...]`.
pub fn read_workload(text: &str) -> Result<WorkloadSpec, String> {
    virtbench_study::read_workload(text, &mut |remark| tell!("{remark}"))
}

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
