//! `virtbench load --live` on a real terminal, as a terminal emulator sees it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use crate::support::terminal::Terminal;
use crate::support::{finish, folder, run, signal, virtbench, wait_for};

/// stderr is the terminal; stdout stays a pipe.
fn end(child: Child) -> (i32, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stdout).unwrap())
}

const LOAD: [&str; 6] = ["load", "--target", "null", "--ramp", "200ms", "--live"];

/// What is shown, less what is said of other measurements on this host: other tests.
fn without_notes(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("note: ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn rates_and_a_heat_map_are_drawn_in_place_and_make_room_for_the_results() {
    let terminal = Terminal::new();
    let before = terminal.state();
    let child = terminal.start(&[&LOAD[..], &["--time", "3s", "--json"]].concat());
    let text = terminal.wait_for("latency (shade");
    let word_counts =
        ["IOPS, ", " MB/s; ", " left", " errors", "latency (shade"].map(|w| text.matches(w).count());
    assert_eq!(word_counts, [1; 5], "drawn in place:\n{text}");
    assert!(
        text.lines().filter(|line| line.contains('|') && line.contains(['░', '▒', '▓', '█'])).count() > 0,
        "{text}"
    );
    assert!(text.contains("measuring") || text.contains("ramp-up"), "{text}");
    let (code, stdout) = end(child);
    assert_eq!(code, 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert!(json["total"]["operations"].as_u64().unwrap() > 0);
    wait_for("an empty screen", || without_notes(&terminal.text()).trim().is_empty().then_some(()));
    assert_eq!(terminal.state(), before);
}

#[test]
fn every_frame_is_new_and_none_scrolls() {
    let terminal = Terminal::new();
    let child = terminal.start(&[&LOAD[..], &["--time", "60s"]].concat());
    let first = terminal.wait_for(" s left");
    let later = wait_for("another frame", || {
        Some(terminal.text()).filter(|text| *text != first && text.contains(" |"))
    });
    assert_eq!(later.matches(" s left").count(), 1, "{later}");
    let drawn = without_notes(&later);
    assert!(drawn.starts_with("measuring") || drawn.starts_with("ramp-up"), "the first line moved:\n{later}");
    signal(&child, "KILL");
    end(child);
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    for (name, expected) in [("INT", 130), ("TERM", 130), ("KILL", -1)] {
        let terminal = Terminal::new();
        let before = terminal.state();
        let child = terminal.start(&[&LOAD[..], &["--time", "60s"]].concat());
        terminal.wait_for("latency (shade");
        signal(&child, name);
        let (code, stdout) = end(child);
        assert_eq!(code, expected, "{name}");
        assert_eq!(terminal.state(), before, "{name}");
        if expected == 130 {
            let text = terminal.wait_for("interrupted");
            assert!(text.contains("virtbench: stopping") && text.contains("IOPS"), "{name}:\n{text}");
            assert!(stdout.contains("p99.9"), "{name}: {stdout}");
        }
    }
}

#[test]
fn without_a_terminal_there_is_a_line_a_second() {
    let done = run(&["load", "--target", "null", "--ramp", "0s", "--time", "2500ms", "--live", "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.json()["total"]["operations"].as_u64().unwrap() > 0);
    let stderr = without_notes(&done.stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    assert!((1..=4).contains(&lines.len()), "{lines:?}");
    for line in lines {
        assert!(line.contains("IOPS") && line.contains("p99 < ") && !line.contains('\x1b'), "{line}");
        assert!(!line.contains(" 0 IOPS"), "{line}");
    }
}

#[test]
fn a_load_is_the_same_whether_it_is_watched_or_not() {
    let verified = ["--live", "--size", "4MiB", "--time", "500ms", "--json", "--seed", "3"];
    let folder = folder();
    let target = folder.path().join("t.img");
    let words = ["load", "--verify", "--read", "50", "--ramp", "0s", "--target", target.to_str().unwrap()];
    let done = run(&[&words[..], &verified].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert!(json["verify"]["blocks_checked"].as_u64().unwrap() > 0 && json["errors"] == 0, "{json}");
}

#[test]
fn only_a_load_is_watched() {
    let done = finish(virtbench().args(["saturate", "--target", "null", "--live"]).spawn().unwrap());
    assert!(done.code() == 2 && done.stderr.contains("--live"), "{done:?}");
}

/// What takes an unknown time shows that it goes on, and leaves nothing of that behind; a pipe gets nothing of it.
#[test]
fn doctor_shows_on_a_terminal_that_it_looks_and_nothing_on_a_pipe() {
    let (terminal, folder) = (Terminal::new(), folder());
    let [qemu, go] = ["qemu", "go"].map(|name| folder.path().join(name));
    // It answers when the test has seen enough.
    let text = format!("#!/bin/sh\nuntil [ -e '{}' ]; do sleep 0.1; done\nexit 1\n", go.display());
    fs::write(&qemu, text).unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let before = terminal.state();
    let mut doctor = virtbench();
    doctor
        .arg("doctor")
        .env("VIRTBENCH_QEMU", &qemu)
        .stderr(Stdio::from(terminal.slave.try_clone().unwrap()));
    let doctor = doctor.spawn().unwrap();
    terminal.wait_for("looking at this machine");
    fs::write(&go, "").unwrap();
    assert_eq!(end(doctor).0, 4, "there is no QEMU that works");
    wait_for("the end of it", || (!terminal.text().contains("looking at")).then_some(()));
    assert_eq!(terminal.state(), before);
    let piped = finish(virtbench().arg("doctor").env("VIRTBENCH_QEMU", &qemu).spawn().unwrap());
    assert!(piped.code() == 4 && !piped.stderr.contains("looking at"), "{piped:?}");
}
