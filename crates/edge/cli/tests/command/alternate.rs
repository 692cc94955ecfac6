//! `virtbench compare --alternate`: two sides measured in turn, then compared.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::run_folder::records;
use crate::support::{children, finish, folder, is_alive, run, signal, virtbench, wait_for};

/// A file of a small study of two folders of this host, `place` and one in it.
fn study(folder: &Path, name: &str, place: &Path, names: [&str; 2]) -> String {
    let (path, grid, other) = (folder.join(name), folder.join("grid.toml"), place.join("other"));
    fs::write(&grid, "blocks = ['4k']\nreads = [100]\nrandoms = [100]\n").unwrap();
    let text = format!(
        "study = 'compare'\nenvironment = ['{}=native:{}', '{}=native:{}']\ngrid = '{}'\nsize = '8MiB'\nramp = '20ms'\n\
         time = '400ms'\nrepetitions = 2\noutstanding = 4\n",
        names[0],
        place.display(),
        names[1],
        other.display(),
        grid.display()
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// When each turn began, in the order of turns, side by side.
fn begun(out: &Path, turn: u32) -> [u64; 2] {
    ["before", "after"].map(|side| {
        let records = records(&out.join(side).join(turn.to_string()));
        records.iter().map(|record| record["started_unix_ns"].as_u64().unwrap()).min().unwrap()
    })
}

#[test]
fn a_change_for_the_worse_is_found_by_sides_measured_in_turn() {
    let folder = folder();
    // Memory is at least twice as fast as a disk at this depth. Eight turns show that on a busy host too: with four, the
    // interval of as many comparisons is some three times as wide, on a logarithmic scale.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let [fast, slow] = [("fast.toml", memory.path()), ("slow.toml", folder.path())]
        .map(|(name, place)| study(folder.path(), name, place, ["a", "b"]));
    let out = folder.path().join("out");
    let out_ = out.display().to_string();
    let words = ["compare", "--alternate", &fast, &slow, "--repetitions", "8", "--out", &out_];
    let failed = run(&[&words[..], &["--fail-on", "regression", "--json"]].concat());
    assert_eq!(failed.code(), 9, "{failed:?}");
    let json = failed.json();
    assert_eq!((&json["alternated"], &json["regression"]), (&true.into(), &true.into()), "{json}");
    assert_eq!(json["environments"][1]["points"][0]["repetitions"], serde_json::json!([8, 8]), "{json}");
    let [first, second] = [1, 2].map(|turn| begun(&out, turn));
    assert!(first[0] < first[1] && first[1] < second[1] && second[1] < second[0], "{first:?} {second:?}");
    assert!(out.join("report.html").exists());
    // The folders can be compared again by themselves.
    let [before, after] = ["before", "after"].map(|side| out.join(side).display().to_string());
    let again = run(&["compare", &before, &after]);
    assert!(again.code() == 0 && again.stdout.contains("It got worse"), "{again:?}");
    assert!(!again.stdout.contains("not measured in turn"), "{again:?}");
    let occupied = run(&words);
    assert!(occupied.code() == 7 && occupied.stderr.contains("--resume"), "{occupied:?}");
}

#[test]
fn equal_sides_are_not_called_worse() {
    let folder = folder();
    let file = study(folder.path(), "study.toml", folder.path(), ["a", "b"]);
    let out = folder.path().join("out").display().to_string();
    // What a busy host does to a tenth of a second is within this margin.
    let words = ["compare", "--alternate", &file, "--repetitions", "4", "--margin", "60%", "--out", &out];
    let done = run(&[&words[..], &["--fail-on", "regression"]].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(!done.stdout.contains("got worse") || done.stdout.contains("not "), "{}", done.stdout);
    assert!(!done.stdout.contains("not measured in turn"), "{}", done.stdout);
}

/// Another virtbench: it says that it ran, and is this one.
fn other_command(folder: &Path) -> PathBuf {
    let path = folder.join("other-virtbench");
    let log = folder.join("ran");
    let text = format!(
        "#!/bin/sh\necho ran >> '{}'\nexec '{}' \"$@\"\n",
        log.display(),
        env!("CARGO_BIN_EXE_virtbench")
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_kill_leaves_no_process_and_the_missing_turns_are_measured_afterwards() {
    let folder = folder();
    let file = study(folder.path(), "study.toml", folder.path(), ["a", "b"]);
    let (out, other) = (folder.path().join("out"), other_command(folder.path()));
    let [out_, other_] = [&out, &other].map(|path| path.display().to_string());
    let words =
        ["compare", "--alternate", &file, "--after-command", &other_, "--repetitions", "3", "--out", &out_];
    let mut child = virtbench().args(words).spawn().unwrap();
    wait_for("a turn of each side", || (!records(&out.join("after/1")).is_empty()).then_some(()));
    let measuring: Vec<u32> = children(child.id()).into_iter().map(|(process, _)| process).collect();
    signal(&child, "KILL");
    child.wait().unwrap();
    wait_for("its processes to end", || measuring.iter().all(|process| !is_alive(*process)).then_some(()));
    let first = fs::read(out.join("before/1/results.jsonl")).unwrap();
    let resume = ["compare", "--alternate", "--resume", "--out", &out_];
    let interrupted = virtbench().args(resume).spawn().unwrap();
    wait_for("another turn", || (!records(&out.join("before/2")).is_empty()).then_some(()));
    signal(&interrupted, "INT");
    let interrupted = finish(interrupted);
    assert!(interrupted.code() == 130 && interrupted.stderr.contains("--resume"), "{interrupted:?}");
    let done = run(&resume);
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(
        fs::read(out.join("before/1/results.jsonl")).unwrap(),
        first,
        "a whole turn was measured again"
    );
    for (side, turn) in ["before", "after"].iter().flat_map(|side| (1..=3).map(move |turn| (side, turn))) {
        assert_eq!(records(&out.join(side).join(turn.to_string())).len(), 2, "{side} {turn}");
    }
    assert!(fs::read_to_string(folder.path().join("ran")).unwrap().lines().count() >= 3);
    fs::remove_dir_all(out.join("after/3")).unwrap();
    fs::write(&other, "#!/bin/sh\nexit 0\n").unwrap();
    let replaced = run(&resume);
    assert!(replaced.code() == 7 && replaced.stderr.contains("not the program"), "{replaced:?}");
}

#[test]
fn sides_that_cannot_be_compared_are_refused() {
    let folder = folder();
    let file = study(folder.path(), "study.toml", folder.path(), ["a", "b"]);
    let strange = study(folder.path(), "strange.toml", folder.path(), ["c", "d"]);
    let sets = folder.path().join("sets.toml");
    fs::write(&sets, "study = 'neighbours'\n").unwrap();
    let out = folder.path().join("out").display().to_string();
    let refused = |words: &[&str], code: i32, said: &str| {
        let done = run(&[&["compare"], words].concat());
        assert!(done.code() == code && done.stderr.contains(said), "{words:?}: {done:?}");
    };
    refused(&["--alternate", &file, &strange, "--repetitions", "2", "--out", &out], 2, "no point in common");
    refused(&["--alternate", &sets.display().to_string(), "--out", "x"], 2, "points to compare");
    refused(&["--alternate", &file, "--repetitions", "1"], 2, "2..");
    refused(&["--alternate", &file, "--before-command", "/nonexistent"], 2, "its command");
    refused(&[&file], 2, "AFTER");
    refused(&[&file, &file, "--repetitions", "3"], 2, "--alternate");
    refused(&["--alternate", "--resume", "--out", &folder.path().display().to_string()], 7, "alternate.json");
    // A turn that cannot be measured ends with the code of its own command.
    let gone = folder.path().join("gone.toml");
    fs::write(
        &gone,
        "study = 'compare'\nenvironment = ['a=native:', 'b=ssh://127.0.0.1:1/tmp/x']\nsize = '8MiB'\n",
    )
    .unwrap();
    let other = folder.path().join("again").display().to_string();
    refused(&["--alternate", &gone.display().to_string(), "--out", &other], 6, "before, turn 1");
}
