//! What happens meanwhile: silent unless asked for, and in the run folder's log.

use std::fs;
use std::path::Path;

use crate::support::fence::{Fence, PLAIN};
use crate::support::{Finished, finish, folder, run, signal, small_study, virtbench, wait_for};

/// A study of one point natively and in a guest.
fn study(folder: &Path, out: &Path, time: &str, more: &[&str]) -> std::process::Child {
    let words = small_study(folder, out, time, 1);
    virtbench().args(words).args(more).spawn().unwrap()
}

fn log(out: &Path) -> String {
    fs::read_to_string(out.join("virtbench.log")).unwrap_or_default()
}

/// Lines of a log among those of stderr.
fn traced(finished: &Finished) -> Vec<&str> {
    let levels = [" ERROR ", " WARN ", " INFO ", " DEBUG ", " TRACE "];
    finished.stderr.lines().filter(|line| levels.iter().any(|level| line.contains(level))).collect()
}

#[test]
fn a_quiet_run_says_no_more_than_before_and_keeps_its_log() {
    let folder = folder();
    let out = folder.path().join("run");
    let finished = finish(study(folder.path(), &out, "100ms", &[]));
    assert_eq!(finished.code(), 0, "{finished:?}");
    assert_eq!(traced(&finished), Vec::<&str>::new());
    let log = log(&out);
    for part in ["begins", "QEMU started", "the guest's agent answers", "the guest powers off", "measured"] {
        assert!(log.contains(part), "{part}\n{log}");
    }
    // What came before the folder is there, and a resumed run goes on with the same file.
    assert!(log.lines().next().is_some_and(|line| line.contains("begins")), "{log}");
    let again = finish(study(folder.path(), &out, "100ms", &["--resume"]));
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read_to_string(out.join("virtbench.log")).unwrap().matches(" begins ").count(), 2);
}

#[test]
fn verbose_shows_the_guest_s_start() {
    let folder = folder();
    let out = folder.path().join("run");
    let finished = finish(study(folder.path(), &out, "100ms", &["-v"]));
    assert_eq!(finished.code(), 0, "{finished:?}");
    let traced = traced(&finished).join("\n");
    assert!(traced.contains("QEMU started process=") && traced.contains("guest{name=\"vm\""), "{traced}");
    assert!(traced.contains("the guest's agent answers boot_ms=") && !traced.contains(" DEBUG "), "{traced}");
    assert!(finished.stdout.contains("report: "), "results are where they were: {finished:?}");
}

#[test]
fn the_log_of_a_killed_run_is_there() {
    let folder = folder();
    let out = folder.path().join("run");
    let mut child = study(folder.path(), &out, "60s", &[]);
    wait_for("the guest", || log(&out).contains("the guest's agent answers").then_some(()));
    child.kill().unwrap();
    finish(child);
    let log = log(&out);
    assert!(log.contains("QEMU started") && log.ends_with('\n'), "{log}");
}

#[test]
fn a_failure_is_in_the_log_and_a_start_that_fails_leaves_none() {
    let folder = folder();
    let out = folder.path().join("run");
    let none = folder.path().join("no kernel").display().to_string();
    let finished = finish(study(folder.path(), &out, "100ms", &["--kernel", &none, "-v"]));
    assert_eq!(finished.code(), 4, "{finished:?}");
    assert!(traced(&finished).iter().any(|line| line.contains(" ERROR ")), "{finished:?}");
    assert!(!out.exists(), "a start that fails leaves nothing");
}

/// Confined, as it is by default: the filter lets it write.
#[test]
fn a_daemon_tells_of_clients_and_not_of_requests() {
    let fence = Fence::formatted(PLAIN);
    let config = fence.path("fence.toml").display().to_string();
    let daemon = virtbench().args(["fence", "serve", &config, "-v"]).spawn().unwrap();
    wait_for("the socket", || fence.path("A").exists().then_some(()));
    let load = fence.load("A", &["--time", "2s", "-v"]);
    signal(&daemon, "TERM");
    let daemon = finish(daemon);
    assert_eq!((load.code(), daemon.code()), (0, 0), "{load:?} {daemon:?}");
    let told = traced(&daemon);
    for part in [
        "the daemon serves",
        "a vhost-user client has connected disk=\"a\"",
        "a vhost-user ring is agreed on",
        "a vhost-user client has gone",
        "the daemon has ended",
    ] {
        assert!(told.iter().any(|line| line.contains(part)), "{part}\n{}", daemon.stderr);
    }
    let requests = load.json()["total"]["operations"].as_u64().unwrap();
    assert!(
        told.len() < 30 && (told.len() as u64) < requests,
        "of {requests} requests none is an event: {}",
        daemon.stderr
    );
    assert!(
        traced(&load).iter().any(|line| line.contains("shaken hands with a vhost-user server")),
        "{load:?}"
    );
}

#[test]
fn what_is_to_be_shown_is_read_or_refused() {
    let null = ["load", "--target", "null", "--size", "1MiB", "--ramp", "0s", "--time", "100ms"];
    let with = |wanted: &str| finish(virtbench().args(null).env("VIRTBENCH_LOG", wanted).spawn().unwrap());
    let refused = with("loud");
    assert!(refused.code() == 2 && refused.stderr.contains("VIRTBENCH_LOG=loud"), "{refused:?}");
    assert!(traced(&with("info")).iter().any(|line| line.contains("begins")));
    assert!(traced(&with("")).is_empty() && traced(&run(&null)).is_empty());
    let after = run(&[&null[..], &["--verbose"]].concat());
    assert!(after.code() == 0 && !traced(&after).is_empty(), "it may stand behind the command: {after:?}");
}
