//! Job files that run as fio runs them: the operations of both, as strace sees them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::folder;

/// An operation: its name, length and offset.
type Operation = (String, u64, u64);

const FILE: &str = "a.img";

/// Runs a command under strace and lists what it does to the file.
fn operations(folder: &Path, program: &str, arguments: &[&str]) -> Vec<Operation> {
    let log = folder.join("strace");
    let image = folder.join(FILE);
    let output = Command::new("strace")
        .current_dir(folder)
        .args(["-f", "-q", "-s", "0", "-e", "trace=pread64,pwrite64,pwritev2,fsync,fdatasync", "-P"])
        .arg(&image)
        .arg("-o")
        .arg(&log)
        .arg(program)
        .args(arguments)
        .output()
        .expect("strace and fio are needed: run scripts/setup.sh test");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {said}");
    fs::read_to_string(log).unwrap().lines().filter_map(operation).collect()
}

/// An operation out of a line such as `31 pwrite64(5, ""..., 4096, 8192) = 4096`, or out of that of two such
/// lines, where another thread's stands between, which has the numbers.
fn operation(line: &str) -> Option<Operation> {
    let (_, call) = line.split_once(' ')?;
    let (name, arguments) = match call.trim().strip_prefix("<... ") {
        Some(resumed) => resumed.split_once(" resumed>")?,
        None => call.trim().split_once('(')?,
    };
    if name.ends_with("sync") {
        return (!arguments.contains("unfinished")).then(|| (name.to_owned(), 0, 0));
    }
    let (arguments, result) = arguments.rsplit_once(" = ").unwrap_or((arguments, ""));
    let numbers: Vec<u64> = arguments.split([',', ' ', ')']).filter_map(|word| word.parse().ok()).collect();
    match (name, numbers.as_slice()) {
        ("pread64" | "pwrite64", [.., len, offset]) => Some((name.to_owned(), *len, *offset)),
        ("pwritev2", [.., offset]) => {
            let (_, flag) = arguments.split_once("RWF_")?;
            Some((format!("pwrite64 {}", flag.trim_end_matches(')')), result.trim().parse().ok()?, *offset))
        }
        _ => None,
    }
}

/// What fio and virtbench do for a job file on a file of so many bytes.
fn both(file_bytes: u64, options: &str) -> [Vec<Operation>; 2] {
    let folder = folder();
    let job = format!("[w]\nfilename={FILE}\nioengine=psync\nfallocate=none\noverwrite=1\n{options}\n");
    fs::write(folder.path().join("job.fio"), job).unwrap();
    let made =
        |fill: u8| fs::write(folder.path().join(FILE), vec![fill; usize::try_from(file_bytes).unwrap()]);
    made(1).unwrap();
    let theirs = operations(folder.path(), "fio", &["job.fio", "--output=fio.txt"]);
    made(1).unwrap();
    let ours = operations(
        folder.path(),
        env!("CARGO_BIN_EXE_virtbench"),
        &["load", "--spec", "job.fio", "--allow-overwrite", "--json"],
    );
    [theirs, ours]
}

/// The same operations in the same order.
#[track_caller]
fn alike(file_bytes: u64, options: &str) -> Vec<Operation> {
    let [theirs, ours] = both(file_bytes, options);
    assert!(!theirs.is_empty(), "fio did nothing: {options}");
    assert_eq!(theirs, ours, "fio, and virtbench, of: {options}");
    ours
}

/// As many operations of each length, which together cover the same bytes.
#[track_caller]
fn alike_at_random(file_bytes: u64, options: &str) {
    let [theirs, ours] = both(file_bytes, options);
    let lengths = |operations: &[Operation]| {
        let mut all: Vec<(String, u64)> =
            operations.iter().map(|(name, len, _)| (name.clone(), *len)).collect();
        all.sort();
        all
    };
    assert_eq!(lengths(&theirs), lengths(&ours), "fio, and virtbench, of: {options}");
    let end = |operations: &[Operation]| operations.iter().map(|(_, len, offset)| len + offset).max();
    let start = |operations: &[Operation]| operations.iter().map(|(.., offset)| *offset).min();
    assert_eq!(
        (start(&theirs), end(&theirs)),
        (start(&ours), end(&ours)),
        "fio, and virtbench, of: {options}"
    );
}

#[test]
fn a_size_that_is_no_multiple_of_a_block_leaves_the_rest_alone() {
    for rw in ["write", "read"] {
        assert_eq!(alike(9120, &format!("rw={rw}\nbs=4k\nsize=9120")).len(), 2);
    }
    alike_at_random(9120, "rw=randwrite\nbs=4k\nsize=9120");
    alike(1_000_000, "rw=write\nbs=64k");
}

#[test]
fn shares_of_a_file_reach_as_far_as_fio_s() {
    for size in
        ["size=100%", "size=50%", "size=99%", "offset=25%\nsize=50%", "offset=30%\nsize=50%", "offset=30%"]
    {
        alike(1_000_000, &format!("rw=write\nbs=64k\n{size}"));
        alike(1 << 20, &format!("rw=read\nbs=64k\n{size}"));
    }
}

#[test]
fn filesize_is_where_and_size_is_how_much() {
    assert_eq!(alike(16 << 20, "rw=read\nbs=64k\nfilesize=16m\nsize=4m").len(), 64);
    alike(1 << 20, "rw=read\nbs=64k\nfilesize=1m\nsize=4m");
    alike(1 << 20, "rw=write\nbs=64k\nfilesize=1m\nsize=256k\noffset=512k\nloops=2");
    alike(1 << 20, "rw=write\nbs=64k\nfilesize=1m\nsize=256k\nio_size=128k");
    let [theirs, ours] = both(16 << 20, "rw=randread\nbs=64k\nfilesize=16m\nsize=4m");
    assert_eq!((theirs.len(), ours.len()), (64, 64));
    for operations in [theirs, ours] {
        assert!(operations.iter().any(|(.., offset)| *offset >= 4 << 20), "all of the file");
    }
}

#[test]
fn holes_are_left_out_until_all_has_been_moved() {
    assert_eq!(alike(1 << 20, "rw=read:12k\nbs=4k\nsize=1m").len(), 256);
    alike(72 << 10, "rw=write:12k\nbs=4k\nsize=72k");
    alike(72 << 10, "rw=write:-8k\nbs=4k\nsize=72k");
    alike(72 << 10, "rw=read:-16k\nbs=4k\nsize=72k\nloops=2");
}

#[test]
fn flushes_are_of_the_kind_and_number_of_fio_s() {
    let done = alike(64 << 10, "rw=write\nbs=4k\nsize=64k\nfsync=4");
    assert_eq!(done.iter().filter(|(name, ..)| name == "fsync").count(), 3);
    alike(64 << 10, "rw=write\nbs=4k\nsize=64k\nfdatasync=4");
    alike(64 << 10, "rw=write\nbs=4k\nsize=64k\nfsync=5\nend_fsync=1");
    alike(64 << 10, "rw=write\nbs=4k\nsize=64k\nfsync_on_close=1");
    alike(64 << 10, "rw=read\nbs=4k\nsize=64k\nfsync=1\nend_fsync=1");
}

#[test]
fn writes_are_as_durable_as_fio_s() {
    // fio opens the file so, virtbench says it with each write.
    for (option, flag) in [("sync=1", "SYNC"), ("sync=dsync", "DSYNC")] {
        let [theirs, ours] = both(64 << 10, &format!("rw=write\nbs=4k\nsize=64k\n{option}"));
        let expected: Vec<Operation> =
            theirs.iter().map(|(name, len, at)| (format!("{name} {flag}"), *len, *at)).collect();
        assert_eq!(ours, expected, "{option}");
    }
}

#[test]
fn a_file_that_is_named_twice_is_gone_over_twice() {
    for size in ["size=512k", "size=50%", ""] {
        alike(1 << 20, &format!("filename={FILE}\nrw=read\nbs=64k\n{size}"));
    }
}

#[test]
fn clones_begin_where_fio_s_do() {
    for options in ["offset_increment=25%", "offset_increment=256k", "size=30%\noffset_increment=10%"] {
        let [mut theirs, mut ours] = both(1 << 20, &format!("rw=read\nbs=64k\nnumjobs=2\n{options}"));
        theirs.sort();
        ours.sort();
        assert_eq!(theirs, ours, "{options}");
    }
}

#[test]
fn what_is_written_is_the_pattern_of_fio() {
    let folder = folder();
    let path = folder.path().join(FILE);
    for pattern in ["0xdeadbeef", "\"abcd\"", "1234", "\"ab\"0x0102"] {
        let [theirs, ours] = ["fio", env!("CARGO_BIN_EXE_virtbench")].map(|program| {
            fs::write(&path, [1; 8192]).unwrap();
            let options = format!(
                "--name=w --filename={FILE} --ioengine=psync --rw=write --bs=4k --size=8k --overwrite=1 '--buffer_pattern={pattern}'"
            );
            let mut command = Command::new(program);
            command.current_dir(folder.path());
            match program {
                "fio" => {
                    let options = options.replace('\'', "");
                    command.args(options.split(' '))
                }
                _ => command.args(["load", "--allow-overwrite", "--fio", &options]),
            };
            let output = command.output().expect("fio is needed: run scripts/setup.sh test");
            assert!(output.status.success(), "{output:?}");
            fs::read(&path).unwrap()
        });
        assert!(theirs == ours, "{pattern}: {:?} and {:?}", &theirs[..16], &ours[..16]);
    }
}

#[test]
fn a_command_line_of_fio_runs_as_its_job_file() {
    let folder = folder();
    fs::write(folder.path().join(FILE), vec![1; 1 << 20]).unwrap();
    let options =
        ["--name=w", "--filename=a.img", "--rw=read", "--bs=64k", "--size=512k", "--ioengine=psync"];
    let theirs = operations(folder.path(), "fio", &options);
    let line = format!("fio {} --output-format=json > out.json", options.join(" "));
    let ours =
        operations(folder.path(), env!("CARGO_BIN_EXE_virtbench"), &["load", "--fio", &line, "--json"]);
    assert_eq!((theirs.len(), &theirs), (8, &ours));
}

#[test]
fn sizes_end_where_fio_ends_them_and_rates_beyond_reach_limit_nothing() {
    alike(1 << 20, "rw=write\nbssplit=36k-60k/100");
    alike(1 << 20, "rw=read\nbs=64k-128k\nrate_iops=20000m");
    alike(1 << 20, "rw=write\nbs=4k/15:1024k:85");
    alike(1 << 20, "rw=write\nbs=64k\nsize=100%%\niodepth_batch=8");
    alike_at_random(1 << 20, "rw=randwrite\nbsrange=64k:64k");
}

#[test]
fn a_rate_and_pauses_leave_the_operations_as_they_are() {
    let done = alike(64 << 10, "rw=write\nbs=4k\nrate_iops=400\nthinktime=10ms\nthinktime_blocks=4");
    assert_eq!(done.len(), 16);
}
