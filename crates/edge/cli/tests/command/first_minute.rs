//! What a newcomer sees: `virtbench` alone, and `doctor --fix`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{finish, folder, run, virtbench};

#[test]
fn virtbench_alone_says_what_it_answers_and_what_to_start_with() {
    let alone = run(&[]);
    assert_eq!((alone.code(), alone.stdout.as_str()), (2, ""), "{alone:?}");
    for words in [
        "What does virtualization cost my storage?",
        "virtbench doctor",
        "virtbench load --target",
        "virtbench help",
    ] {
        assert!(alone.stderr.contains(words), "{words}: {}", alone.stderr);
    }
    let help = run(&["--help"]);
    assert_eq!(help.code(), 0, "{help:?}");
}

#[test]
fn doctor_prints_what_installs_what_is_missing_and_runs_it_with_consent_alone() {
    let folder = folder();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let noted = folder.path().join("noted");
    // In place of the distribution's: it notes what it was asked for.
    for name in ["apt-get", "sudo"] {
        let text = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", noted.display());
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let doctor = |words: &[&str]| {
        let mut command = virtbench();
        command.args(["doctor", "--quiet"]).args(words).env("PATH", &bin);
        finish(command.env("VIRTBENCH_QEMU", "/nonexistent/qemu").spawn().unwrap())
    };
    let printed = doctor(&["--fix"]);
    assert_eq!(printed.code(), 4, "the accelerator is missing, which no package mends: {printed:?}");
    let install = printed.stdout.lines().find(|line| line.contains("apt-get install")).unwrap_or_default();
    assert!(install.contains(" qemu-system-x86") && install.contains(" qemu-utils"), "{printed:?}");
    assert!(!install.contains("fio") && printed.stderr.contains("--yes"), "{printed:?}");
    assert!(!noted.exists(), "nothing is run without consent");
    doctor(&["--fix", "--yes"]);
    let ran = fs::read_to_string(&noted).unwrap();
    assert_eq!(ran.lines().count(), 2, "{ran}");
    assert!(
        ran.contains("apt-get update") && ran.contains("--yes") && ran.contains(" qemu-system-x86"),
        "{ran}"
    );
    assert_eq!(run(&["doctor", "--yes"]).code(), 2, "consent to what?");
}
