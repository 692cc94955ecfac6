//! What goes wrong around guests of User Mode Linux: each ends in a clear error, hangs nothing and leaves nothing.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{
    Environment, LabError, Machine, MachineError, TimeLimits, Uml, UmlConfig, UmlDisk, UmlDiskKind, UmlGuest,
    UmlImage, UmlKernel, measure, see_alone, usable_processors,
};
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const DISK_BYTES: u64 = 32 << 20;
/// Generous: a host that is busy with other tests.
const SOON: Duration = Duration::from_secs(30);

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn image(modules: &[&str]) -> UmlImage {
    or_mend(UmlImage::new(&or_mend(UmlKernel::find()), modules))
}

fn config(number: usize) -> UmlConfig {
    let processors = usable_processors().unwrap();
    UmlConfig::new(processors[number % processors.len()])
}

fn is_gone(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |text| text.contains(") Z"))
}

fn success(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    assert!(status.unwrap().success(), "{program} {arguments:?}");
}

fn wait_until_gone(processes: &[u32]) {
    let until = Instant::now() + SOON;
    while !processes.iter().all(|process| is_gone(*process)) {
        assert!(Instant::now() < until, "some of {processes:?} live");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A load of writes, as fast as they go.
fn writes(size_bytes: u64, outstanding: u32) -> LoadSpec {
    LoadSpec {
        outstanding,
        ramp_ns: 0,
        time_ns: 500_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(size_bytes, 0.0, 0.0)), DISK_BYTES)
    }
}

fn measured(machine: &mut dyn Machine, load: LoadSpec) -> Result<LoadOutcome, LabError> {
    let limits = TimeLimits { prepare: SOON, grace: SOON };
    measure(machine, load, limits, &AtomicBool::new(false)).map(|(_, measured)| measured.outcome)
}

/// Needs root, for a mount that this test alone sees.
#[test]
fn a_full_file_system_under_a_disk_fails_writes_and_the_guest_goes_on() {
    see_alone().unwrap_or_else(|error| panic!("{error}"));
    let directory = tempfile::tempdir().unwrap();
    let small = directory.path().to_str().unwrap();
    success("mount", &["-t", "tmpfs", "-o", "size=8m", "tmpfs", small]);
    for (name, kind) in UmlDiskKind::ALL {
        let path = directory.path().join("disk");
        File::create(&path).unwrap().set_len(DISK_BYTES).unwrap();
        let disks = vec![UmlDisk::new(kind, path)];
        let mut environment =
            Uml::new("uml", image(kind.modules()), "a test", UmlConfig { disks, ..config(0) });
        let mut machine = or_mend(environment.start());
        let outcome = or_mend(measured(&mut *machine, writes(65536, 4)));
        let why: Vec<&String> = outcome.error_kinds.keys().collect();
        let known = |why: &String| why.starts_with("No space left") || why.starts_with("I/O error");
        assert!(outcome.total.operations > 0 && outcome.errors > 0, "{name}: {outcome:?}");
        assert!(why.iter().all(|why| known(why)), "{name}: {why:?}");
        machine.connection().ping().unwrap();
        machine.shut_down();
    }
    success("umount", &[small]);
}

#[test]
fn sixteen_guests_boot_at_once_and_leave_nothing() {
    let image = image(&[]);
    let boot =
        |number| or_mend(UmlGuest::boot(&image, &UmlConfig { memory_bytes: 64 << 20, ..config(number) }));
    let mut guests: Vec<UmlGuest> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|number| scope.spawn(move || boot(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for guest in &mut guests {
        guest.connection().ping().unwrap();
    }
    let processes: Vec<u32> = guests.iter().flat_map(UmlGuest::process_ids).collect();
    assert!(processes.len() >= 32, "a kernel and its init each: {processes:?}");
    guests.into_iter().for_each(UmlGuest::shut_down);
    wait_until_gone(&processes);
}

/// Needs root, for mounts that this test alone sees.
#[test]
fn a_guest_for_whose_memory_there_is_no_room_is_refused_before_it_boots() {
    see_alone().unwrap_or_else(|error| panic!("{error}"));
    let image = image(&[]);
    let runtime = std::env::var("XDG_RUNTIME_DIR").ok().filter(|place| Path::new(place).is_dir());
    for place in ["/tmp".to_owned(), "/dev/shm".to_owned()].into_iter().chain(runtime) {
        success("mount", &["-t", "tmpfs", "-o", "noexec", "tmpfs", &place]);
    }
    let refused = |number, says: &[&str]| {
        let error = UmlGuest::boot(&image, &config(number)).unwrap_err();
        assert!(matches!(error, MachineError::Lacking { .. }), "{error}");
        let error = error.to_string();
        assert!(says.iter().all(|words| error.contains(words)), "{error}");
    };
    refused(0, &["/dev/shm is mounted noexec", "mount -t tmpfs", "--shm-size"]);
    success("mount", &["-t", "tmpfs", "-o", "size=400m", "tmpfs", "/dev/shm"]);
    // The first has touched a small part of its memory only.
    let first = or_mend(UmlGuest::boot(&image, &config(0)));
    refused(1, &["MiB left that no guest may still take", "mount -t tmpfs"]);
    first.shut_down();
    or_mend(UmlGuest::boot(&image, &config(1))).shut_down();
}

/// A kernel that a script starts.
fn scripted_kernel(folder: &Path, script: &str) -> UmlKernel {
    let kernel = or_mend(UmlKernel::find());
    let program = folder.join("linux");
    let text = script.replace("KERNEL", &kernel.program.display().to_string());
    // By another process: a test beside this one that forks meanwhile would hold it open for writing.
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#;
    success("sh", &["-c", write, "sh", &text, program.to_str().unwrap()]);
    UmlKernel { program, ..kernel }
}

#[test]
fn a_kernel_that_panics_at_boot_says_why_on_its_console() {
    let folder = tempfile::tempdir().unwrap();
    let rubbish = folder.path().join("rubbish");
    fs::write(&rubbish, vec![0x5a; 4096]).unwrap();
    let script = format!("exec KERNEL \"$@\" initrd={}", rubbish.display());
    let kernel = scripted_kernel(folder.path(), &script);
    let image = or_mend(UmlImage::new(&kernel, &[]));
    let error = UmlGuest::boot(&image, &config(0)).unwrap_err();
    assert!(matches!(error, MachineError::Panicked { .. }), "{error}");
    // Its console may end with a long trace of calls.
    assert!(error.to_string().contains("kernel panicked: VFS: Unable to mount root fs"), "{error}");
}

#[test]
fn a_load_that_a_guest_has_no_memory_for_is_refused_and_the_guest_goes_on() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(DISK_BYTES).unwrap();
    let disks = vec![UmlDisk::new(UmlDiskKind::Ubd { synchronous: false }, file.path().to_owned())];
    let config = UmlConfig { disks, memory_bytes: 96 << 20, ..config(0) };
    let mut machine = or_mend(Uml::new("uml", image(&[]), "a test", config).start());
    let error = measured(&mut *machine, writes(1 << 20, 200)).unwrap_err().to_string();
    assert!(error.contains("memory for buffers: Out of memory"), "{error}");
    assert!(or_mend(measured(&mut *machine, writes(4096, 1))).total.operations > 0);
    machine.shut_down();
}

#[test]
fn kill_9_of_the_host_s_process_alone_or_with_the_kernel_leaves_no_process() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(DISK_BYTES).unwrap();
    for with_kernel in [false, true] {
        let mut helper = Command::new(example("boot_and_wait"));
        let mut helper = helper.arg("uml").arg(file.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(helper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let processes: Vec<u32> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert!(processes.len() >= 3, "a kernel, its init and the server of a disk: {processes:?}");
        let kernel = processes[0].to_string();
        let own = helper.id().to_string();
        let killed = if with_kernel { vec![own.as_str(), kernel.as_str()] } else { vec![own.as_str()] };
        success("kill", &[&["-KILL"], killed.as_slice()].concat());
        helper.wait().unwrap();
        wait_until_gone(&processes);
    }
}

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}
