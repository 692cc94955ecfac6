//! A reader that goes away is no defect, whatever the command.

use std::fs::File;
use std::io;
use std::process::Stdio;

use crate::support::{finish, folder, virtbench};

/// The writing end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    Stdio::from(writer)
}

fn check(arguments: &[&str], code: i32) {
    // Both, as in `virtbench ... 2>&1 | true`; then each alone.
    for (stdout, stderr) in [(true, true), (true, false), (false, true)] {
        let mut command = virtbench();
        command.args(arguments);
        if stdout {
            command.stdout(closed_pipe());
        }
        if stderr {
            command.stderr(closed_pipe());
        }
        let mut child = command.spawn().unwrap();
        // `finish` reads what is left to read.
        let null = || File::open("/dev/null").unwrap();
        child.stdout.get_or_insert_with(|| std::os::fd::OwnedFd::from(null()).into());
        child.stderr.get_or_insert_with(|| std::os::fd::OwnedFd::from(null()).into());
        let done = finish(child);
        assert_eq!(done.code(), code, "{arguments:?} with stdout {stdout}, stderr {stderr} closed: {done:?}");
    }
}

#[test]
fn no_command_panics_when_its_reader_goes_away() {
    let folder = folder();
    let man = folder.path().join("man");
    let fence = folder.path().join("fence.toml");
    std::fs::write(&fence, "nonsense").unwrap();
    let quick = ["load", "--target", "null", "--size", "1MiB", "--ramp", "0s", "--time", "20ms"];
    for shell in ["bash", "zsh", "fish"] {
        check(&["completions", shell], 0);
    }
    check(&["--help"], 0);
    check(&["--version"], 0);
    check(&["man", man.to_str().unwrap()], 0);
    check(&quick, 0);
    check(&[&quick[..], &["--json"]].concat(), 0);
    check(&[&quick[..], &["--live"]].concat(), 0);
    check(&["report", "/no/such/run"], 7);
    check(&["profile", "--no-trace", "echo", "said"], 3);
    for command in ["inspect", "calibrate", "serve", "format"] {
        check(&["fence", command, "--config", fence.to_str().unwrap()], 2);
    }
}
