//! What goes wrong on machines with Windows, for which Wine stands.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::windows::{Shell, Windows};
use crate::support::{Finished, finish, folder, run, signal_pid, virtbench, wait_for};

/// Opens a file as soon as it is there, as a scanner for viruses does, and keeps it for so many milliseconds.
const SCANNER: &str = r#"
#include <windows.h>
#include <stdlib.h>
int main(int count, char **words) {
    HANDLE file;
    for (int i = 0; i < 600000; i++) {
        file = CreateFileA(words[1], GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
        if (file != INVALID_HANDLE_VALUE) {
            CloseHandle(CreateFileA(words[3], GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL));
            Sleep(atoi(words[2]));
            return 0;
        }
        Sleep(0);
    }
    return 1;
}
"#;

/// A load of 64 MiB, with more words.
fn load(machine: &Windows, folder: &str, more: &[&str]) -> Finished {
    let far = format!("far={}", machine.address(folder));
    let words = ["load", "--ramp", "20ms", "--time", "200ms", "--json", "--environment", &far];
    run(&[&words[..], more].concat())
}

fn is_tidied(machine: &Windows) {
    wait_for("the agent's file to be removed", || machine.left_at_home().is_empty().then_some(()));
}

#[test]
fn a_scanner_that_holds_the_file_is_waited_for_and_one_that_keeps_it_is_named() {
    let machine = Windows::start(Shell::Cmd);
    let (source, program) = (machine.drive().join("scanner.c"), machine.drive().join("scanner.exe"));
    fs::write(&source, SCANNER).unwrap();
    let made = Command::new("x86_64-w64-mingw32-gcc").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(made.success());
    let held = machine.drive().join("held");
    let file = "C:\\bench\\.virtbench-agent\\disk.virtbench-partial";
    let scan = |keeps_ms: &str| {
        let _ = fs::remove_file(&held);
        machine.wine().arg(&program).args([file, keeps_ms, "C:\\held"]).spawn().unwrap()
    };
    let mut scanner = scan("1500");
    let done = load(&machine, "/C:/bench", &["--size", "256MiB"]);
    assert!(held.exists(), "the scanner has not met the file: {done:?}");
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(scanner.wait().unwrap().success());
    is_tidied(&machine);
    assert!(machine.names("bench").is_empty(), "{:?}", machine.names("bench"));

    let mut scanner = scan("120000");
    let done = load(&machine, "/C:/bench", &["--size", "256MiB"]);
    assert!(held.exists(), "the scanner has not met the file: {done:?}");
    assert!(done.code() != 0 && done.stderr.contains("another program holds it"), "{done:?}");
    scanner.kill().unwrap();
    scanner.wait().unwrap();
    // What could not be removed goes with the next run.
    assert_eq!(load(&machine, "/C:/bench", &["--size", "4MiB"]).code(), 0);
    is_tidied(&machine);
    assert!(machine.names("bench").is_empty(), "{:?}", machine.names("bench"));
}

#[test]
fn a_drive_of_windows_that_fills_while_the_file_is_written_or_cannot_be_written_is_told() {
    let here = folder();
    let read_only = folder();
    let traced = here.path().join("bench/.virtbench-agent/disk.virtbench-partial");
    let full = format!(
        "exec strace -f -qq --seccomp-bpf -o /dev/null -P {} -e trace=pwrite64 -e inject=pwrite64:error=ENOSPC:when=3+ wine cmd.exe /c \"$line\"",
        traced.display()
    );
    let mounted = format!("mount -t tmpfs -o ro none {}", read_only.path().display());
    let machine = Windows::mounted(&full, &mounted);
    machine.has_drive('e', here.path());
    machine.has_drive('f', read_only.path());
    let done = load(&machine, "/E:/bench", &["--size", "64MiB"]);
    assert!(done.code() != 0 && done.stderr.contains("no room for 64 MiB"), "{done:?}");
    is_tidied(&machine);
    assert!(left_in(&here.path().join("bench")).is_empty(), "{:?}", left_in(&here.path().join("bench")));
    let done = load(&machine, "/F:/bench", &["--size", "4MiB"]);
    assert!(done.code() != 0 && done.stderr.contains("cannot use F:/bench"), "{done:?}");
    is_tidied(&machine);
}

fn left_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_killed_agent_is_told_and_what_it_left_goes_with_the_next_run() {
    let machine = Windows::start(Shell::Cmd);
    let far = format!("far={}", machine.address("/C:/bench"));
    let words = ["load", "--size", "4MiB", "--time", "600s", "--environment", &far];
    let child = virtbench().args(words).spawn().unwrap();
    wait_for("the agent's file", || {
        machine.names("bench/.virtbench-agent").contains(&"disk".to_owned()).then_some(())
    });
    signal_pid(machine.process("agent.exe"), "KILL");
    let ended = finish(child);
    assert_eq!(ended.code(), 6, "{ended:?}");
    assert!(ended.stderr.contains("far"), "{ended:?}");
    is_tidied(&machine);
    assert_eq!(load(&machine, "/C:/bench", &["--size", "4MiB"]).code(), 0);
    assert!(machine.names("bench").is_empty(), "{:?}", machine.names("bench"));
    is_tidied(&machine);
}

#[test]
fn whole_disks_of_windows_are_read_by_consent_and_the_other_engines_run() {
    let machine = Windows::start(Shell::Cmd);
    for (more, words) in [
        (&["--size", "8GiB", "--read", "100", "--random", "100"][..], "made valid at once"),
        (&["--size", "4MiB", "--engine", "psync", "--outstanding", "1"], ""),
        (&["--size", "4MiB", "--read", "0", "--random", "100", "--verify", "--outstanding", "4"], ""),
    ] {
        let done = load(&machine, "/C:/bench", more);
        assert_eq!(done.code(), 0, "{more:?}: {done:?}");
        let json = done.json();
        assert!(json["total"]["operations"].as_u64().unwrap() > 0 && json["errors"] == 0, "{json}");
        let checked = json["verify"]["blocks_checked"].as_u64();
        assert_eq!(checked.is_some_and(|blocks| blocks > 0), more.contains(&"--verify"), "{json}");
        assert!(json["notes"].to_string().contains(words), "{more:?}: {json}");
        is_tidied(&machine);
    }
    // Wine has whole disks by name, and does not say how large they are.
    for (drive, words) in [("PhysicalDrive0", "size of"), ("PhysicalDrive77", "cannot open")] {
        let far = format!("far={}&device={drive}", machine.address("/C:/bench"));
        let done = run(&["load", "--size", "4MiB", "--time", "100ms", "--environment", &far]);
        assert!(done.code() != 0 && done.stderr.contains(words), "{drive}: {done:?}");
        is_tidied(&machine);
    }
}

/// How often a process has called the system to read.
fn reads(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("syscr: ")?.parse().ok()).unwrap_or(0)
}

/// What stands in the way of programs that ask for the time.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

#[test]
fn a_clock_of_windows_that_jumps_is_seen() {
    assert!(Path::new(FAKETIME).exists(), "libfaketime: run `scripts/setup.sh test`");
    let here = folder();
    let offset = here.path().join("offset");
    fs::write(&offset, "+0").unwrap();
    let fakes = format!(
        "export LD_PRELOAD={FAKETIME} FAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1",
        offset.display()
    );
    let machine = Windows::with(Shell::Cmd, &fakes);
    let far = format!("far={}", machine.address("/C:/bench"));
    for (jump, is_seen) in [("+0", false), ("+7", true), ("-2", true)] {
        let words = ["load", "--size", "4MiB", "--time", "4s", "--json", "--environment", &far];
        let child = virtbench().args(words).spawn().unwrap();
        wait_for("the agent's file", || {
            machine.names("bench/.virtbench-agent").contains(&"disk".to_owned()).then_some(())
        });
        let agent = machine.process("agent.exe");
        let before = reads(agent);
        wait_for("the load's reads", || (reads(agent) > before + 1000).then_some(()));
        fs::write(&offset, jump).unwrap();
        let done = finish(child);
        assert_eq!(done.code(), 0, "{jump}: {done:?}");
        fs::write(&offset, "+0").unwrap();
        let notes = done.json()["notes"].to_string();
        assert_eq!(notes.contains("its clock ran"), is_seen, "{jump}: {notes}");
        is_tidied(&machine);
    }
}
