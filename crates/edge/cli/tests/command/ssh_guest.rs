//! Guests that run Debian's OpenSSH server are machines that exist: an amd64 one and an arm64 one, both emulated.

use std::fs;
use std::path::Path;

use crate::support::run_folder::{records, run_json};
use crate::support::ssh_guest::{AMD64, ARM64, Kind, SshGuest};
use crate::support::{finish, folder, run, signal, virtbench, wait_for};

/// Records of the guest's.
fn of_guest(out: &Path) -> Vec<serde_json::Value> {
    records(out).into_iter().filter(|record| record["environment"] == "far").collect()
}

fn is_loaded_and_rebooted_in_the_middle(kind: &Kind) {
    let (mut guest, folder) = (SshGuest::boot(kind), folder());
    let far = format!("far={}", guest.address("/srv/work"));
    let words =
        ["load", "--size", "4MiB", "--ramp", "20ms", "--time", "300ms", "--environment", &far, "--json"];
    let loaded = run(&words);
    assert_eq!(loaded.code(), 0, "{loaded:?}");
    let json = loaded.json();
    assert!(json["total"]["iops"].as_f64().is_some_and(|iops| iops > 0.0), "{json}");

    let (out, grid) = (folder.path().join("run"), folder.path().join("grid.toml"));
    fs::write(&grid, "blocks = ['4k']\nreads = [100]\nrandoms = [100]\n").unwrap();
    let [out_, grid] = [&out, &grid].map(|path| path.display().to_string());
    let study = ["study", "compare", "--environment", &far, "--environment", "native:", "--grid", &grid];
    let times =
        ["--size", "4MiB", "--ramp", "20ms", "--time", "200ms", "--repetitions", "500", "--out", &out_];
    let mut child = virtbench().args([&study[..], &times].concat()).spawn().unwrap();
    wait_for("points of the guest", || (of_guest(&out).len() >= 2).then_some(()));
    // The agent's clock is a monotonic one: what is set there meanwhile changes nothing.
    guest.says("date -s '2031-01-01 00:00:00'");
    let before = of_guest(&out).len();
    wait_for("points after the clock was set", || (of_guest(&out).len() >= before + 2).then_some(()));
    let before = of_guest(&out).len();
    guest.reset();
    // One point may have been under way.
    let has_gone_on = wait_for("the end of the run, or points after the reboot", || {
        let is_over = child.try_wait().unwrap().is_some();
        (is_over || of_guest(&out).len() >= before + 2).then_some(!is_over)
    });
    if has_gone_on {
        signal(&child, "INT");
    }
    let ended = finish(child);
    assert_eq!(ended.code(), if has_gone_on { 130 } else { 6 }, "{ended:?}");
    // Its kernel refuses the old connection; or it counts as silent, and is back when it is tried again, or is not.
    let is_told = [
        "far: ssh ended",
        "far: ssh://root@guest/srv/work cannot be reached",
        "far hangs and is started anew",
    ];
    assert!(is_told.iter().any(|words| ended.stderr.contains(words)), "{}", ended.stderr);
    let kept = of_guest(&out).len();
    assert!(kept >= 2 && out.join("report.html").exists());

    let facts = run_json(&out);
    let facts = &facts["machines"][0]["facts"];
    guest.wait_for_ssh();
    assert_eq!(guest.says("uname -m"), kind.machine);
    assert_eq!(facts["kernel"], guest.says("uname -r"));
    assert_eq!((&facts["processors"], &facts["disk"]["filesystem"]), (&2.into(), &"ext4".into()), "{facts}");
    assert!(kind.machine == "x86_64" || facts["cpu"].as_str().unwrap().contains(kind.machine), "{facts}");
    for record in of_guest(&out) {
        let drift = record["clock"]["drift_ppm"].as_f64().unwrap();
        assert!(drift.abs() < 1e5, "the clock's jump was taken for drift: {record}");
        let host = &record["host"];
        assert!(host["processors"] == 2 && host["steal_percent"].as_f64().is_some(), "{record}");
    }

    let again = virtbench().args(["study", "compare", "--resume", "--out", &out_]).spawn().unwrap();
    wait_for("points after the reboot", || (of_guest(&out).len() >= kept + 2).then_some(()));
    signal(&again, "INT");
    let again = finish(again);
    assert_eq!(again.code(), 130, "{again:?}");
    assert_eq!(guest.says("ls -A /srv/work 2>/dev/null; true"), "", "something is left");
}

#[test]
fn a_guest_with_openssh_is_loaded_and_its_run_survives_a_reboot() {
    is_loaded_and_rebooted_in_the_middle(&AMD64);
}

#[test]
fn an_arm64_guest_with_openssh_is_loaded_and_its_run_survives_a_reboot() {
    is_loaded_and_rebooted_in_the_middle(&ARM64);
}
