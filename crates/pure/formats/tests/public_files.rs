//! How many of other people's files run strictly: `make public-files PUBLIC_FILES=FOLDER` reads every `.fio` and `.icf` below a folder. They
//! are others' and not in this repository; docs/formats.md names those that were counted.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use virtbench_formats::{Format, Surroundings, import_within};

/// What scripts around the files put into their variables, where nothing beside them says more.
fn variable(name: &str) -> Option<String> {
    let value = match name.to_ascii_uppercase().as_str() {
        "DEV" => "/dev/nvme0n1",
        "DEVICE" => "nvme0n1",
        "BLKSIZE" | "BS" | "BLOCKSIZE" | "BLOCK_SIZE" | "FIO_BS" => "4k",
        "MISC" => "64k",
        "SIZE" | "FILE_SIZE" | "FILESIZE" => "1g",
        "IOENGINE" | "IO_ENGINE" => "libaio",
        "RW" | "RANDRW" | "FIO_RW" => "randrw",
        "FIO_DIR" | "MOUNT" | "DIRECTORY" | "PERF_FS" => "/mnt",
        "COMPPERCENT" | "PERF_COMPPERCENT" => "66",
        "COMPCHUNK" | "PERF_COMPCHUNK" => "4096",
        "RANDSEED" | "PERF_RANDSEED" => "1234",
        "URI" => "nbd+unix:///?socket=/tmp/nbd.sock",
        "OFFSET1"
        | "OFFSET2"
        | "TIME"
        | "RUNTIME"
        | "DEPTH"
        | "JOBS"
        | "RRATE"
        | "RAMPTIME"
        | "RAMP_TIME"
        | "RAMP_TIME_RANDWRITE"
        | "RAND_JOB_CNT"
        | "RAND_JOB_QD"
        | "SEQ_JOB_CNT"
        | "SEQ_JOB_QD"
        | "SIZE_GIB"
        | "JOB"
        | "APP_WORKERS"
        | "NJOBS"
        | "NUMJOB"
        | "RAMP"
        | "DEPTH1"
        | "DEPTH2"
        | "RATE1"
        | "RATE2"
        | "W1THINK"
        | "W2THINK"
        | "W3THINK"
        | "W4THINK"
        | "W5THINK"
        | "INCREMENT"
        | "FIO_IODEPTH"
        | "IODEPTH"
        | "RWMIXREAD"
        | "NUMJOBS" => "10",
        "DIRECT" | "SYNC_TYPE" => "1",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The values of FioSynth's suites (`wkldsuites` beside its `jobfiles`) by the file that they are for: those of the first suite that names it.
fn suites(jobfiles: &Path) -> BTreeMap<String, serde_json::Value> {
    let mut values = BTreeMap::new();
    let mut paths = Vec::new();
    if let Some(folder) =
        jobfiles.parent().map(|folder| folder.join("wkldsuites")).filter(|folder| folder.is_dir())
    {
        files(&folder, None, &mut paths);
    }
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(suite) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
        for load in ["def", "pre"].iter().filter_map(|part| suite[*part].as_array()).flatten() {
            // Some suites say 0 outstanding operations, which fio refuses.
            let is_possible = load["values"]["DEPTH"].as_u64() != Some(0);
            if let Some(file) = load["template"].as_str().filter(|_| is_possible) {
                values.entry(file.to_owned()).or_insert_with(|| load["values"].clone());
            }
        }
    }
    values
}

/// The files below a folder whose names end so.
fn files(folder: &Path, ending: Option<&str>, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, ending, found);
        } else if ending.is_none() || path.extension().and_then(|extension| extension.to_str()) == ending {
            found.push(path);
        }
    }
}

/// A complaint without what differs between files: its line, and the values of options.
fn cause(line: &str) -> String {
    let said =
        line.split_once(": ").map_or(line, |(at, rest)| if at.starts_with("line ") { rest } else { line });
    let said =
        said.split_once("] ").map_or(said, |(job, rest)| if job.starts_with('[') { rest } else { said });
    said.chars().take(100).collect()
}

/// A job file of fio to run. What has global options alone is a template: FioSynth adds a job for each disk. What has no section at all is a
/// fragment that other files include.
fn with_a_job(format: Format, mut text: Vec<u8>) -> Option<Vec<u8>> {
    if format != Format::Fio {
        return Some(text);
    }
    let lines = || text.split(|byte| *byte == b'\n').map(|line| line.trim_ascii());
    if !lines().any(|line| line.starts_with(b"[")) {
        return None;
    }
    if !lines().any(|line| line.starts_with(b"[") && !line.starts_with(b"[global")) {
        text.extend(b"\n[disk]\nfilename=/dev/nvme0n1\n");
    }
    Some(text)
}

/// Files that run and files that do not, each content counted once; and the causes, each once a file. A file of an engine that is none
/// for blocks and files does not count.
fn count(folder: &Path, format: Format, ending: &str) -> (usize, usize) {
    let mut paths = Vec::new();
    files(folder, Some(ending), &mut paths);
    let mut seen = BTreeSet::new();
    let (mut run, mut other_engines, mut refused_by_fio, mut fragments, mut refused) =
        (0, 0, 0, 0, Vec::new());
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths {
        let text = std::fs::read(&path).unwrap();
        if !seen.insert(text.clone()) {
            continue;
        }
        let beside = |name: &str| {
            std::fs::read_to_string(path.with_file_name(name)).map_err(|error| error.to_string())
        };
        let Some(text) = with_a_job(format, text) else {
            fragments += 1;
            continue;
        };
        let suite = suites(path.parent().unwrap());
        let own = path.file_name().and_then(|name| suite.get(name.to_str()?));
        let variable = |name: &str| match own.map(|values| &values[name]) {
            Some(serde_json::Value::String(text)) => Some(text.clone()),
            Some(serde_json::Value::Number(number)) => Some(number.to_string()),
            _ => variable(name),
        };
        let surroundings = Surroundings {
            variable: &variable,
            size_of: &|_| Some(1 << 40),
            text_of: &beside,
            processors: 8,
            ..Surroundings::default()
        };
        match import_within(&text, Some(format), false, &surroundings).map_err(|error| error.to_string()) {
            Ok(_) => run += 1,
            Err(why) if why.contains("does neither block nor file I/O") => other_engines += 1,
            Err(why) if why.contains("fio has no such option") => refused_by_fio += 1,
            Err(why) => {
                let lines: BTreeSet<String> = why.lines().map(cause).collect();
                for line in lines.into_iter().filter(|line| !line.starts_with("with `lenient`")) {
                    *causes.entry(line).or_default() += 1;
                }
                refused.push((path, why));
            }
        }
    }
    println!(
        "{ending}: {run} of {} run; not counted: {other_engines} of other engines, {refused_by_fio} with options that fio has not, {fragments} fragments",
        run + refused.len()
    );
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
    for (cause, files) in causes {
        println!("{files:5} {cause}");
    }
    for (path, why) in &refused {
        println!("{}: {}", path.display(), why.lines().next().unwrap_or_default());
    }
    (run, run + refused.len())
}

#[test]
#[ignore = "needs other people's files: make public-files PUBLIC_FILES=FOLDER"]
fn nine_in_ten_public_fio_files_and_nearly_all_of_iometer_run_strictly() {
    let folder = std::env::var("PUBLIC_FILES").expect("PUBLIC_FILES names a folder with .fio and .icf files");
    let counts = [(Format::Fio, "fio", 90), (Format::Icf, "icf", 98)]
        .map(|(format, ending, percent)| (ending, percent, count(Path::new(&folder), format, ending)));
    for (ending, percent, (run, all)) in counts {
        assert!(run * 100 >= all * percent, "{ending}: {run} of {all}");
    }
}
