//! Desktops of `virtbench study desktops` that freeze, and runs that are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::support::run_folder::{is_attached, mounted_loops, records};
use crate::support::{build_appliances, children, finish, folder, is_alive, signal_pid, virtbench, wait_for};
use serde_json::Value;

/// Comes to a fault soon: an operation is given up after three seconds.
fn impatient(folder: &Path) -> PathBuf {
    let file = folder.join("day.toml");
    let day = include_str!("../../../../pure/desktops/days/small.toml");
    let limits =
        "\nlimits = { a = \"1s\", b = \"2s\", give_up = \"3s\" }\n\n[[applications]]\nname = \"editor\"";
    fs::write(&file, day.replacen("\n[[applications]]\nname = \"editor\"", limits, 1)).unwrap();
    file
}

fn start(folder: &Path, desktops: &str, time: &str) -> (PathBuf, Child) {
    let out = folder.join("run");
    let mut command = virtbench();
    command.args(["study", "desktops", "--json", "--desktops", desktops, "--time", time, "--day"]);
    command.arg(impatient(folder)).arg("--out").arg(&out);
    (out, command.spawn().unwrap())
}

/// All processes that `pid` has started, and those in turn.
fn descendants(pid: u32) -> Vec<(u32, String)> {
    let own = children(pid);
    let more: Vec<_> = own.iter().flat_map(|(child, _)| descendants(*child)).collect();
    own.into_iter().chain(more).collect()
}

/// The X servers of a run once so many users have typed something there: an editor is open.
fn servers(study: &Child, count: usize) -> Vec<u32> {
    wait_for("desktops with an editor each", || {
        let all = descendants(study.id());
        let named =
            |name: &str| all.iter().filter(|(_, own)| own == name).map(|(pid, _)| *pid).collect::<Vec<_>>();
        (named("nano").len() >= count).then(|| named("Xtigervnc")).filter(|servers| servers.len() == count)
    })
}

#[test]
fn a_desktop_that_freezes_is_one_users_error_with_a_picture() {
    let temp = folder();
    build_appliances(&["desktop-small"]);
    let (out, study) = start(temp.path(), "2", "24s");
    let frozen = servers(&study, 2)[0];
    signal_pid(frozen, "STOP");
    let finished = finish(study);
    assert_eq!(finished.code(), 5, "{finished:?}");
    let record = &records(&out)[0];
    let gone = record["gone"].as_array().unwrap();
    assert_eq!(gone.len(), 1, "{gone:?}");
    assert!(gone[0]["why"].as_str().unwrap().contains("frozen"), "{gone:?}");
    let of = |user: &Value| {
        let operations = record["operations"].as_array().unwrap().iter();
        operations.filter(|done| &done["user"] == user && done["times"].is_object()).count()
    };
    let other = Value::from(1 - gone[0]["user"].as_u64().unwrap());
    assert!(of(&other) >= of(&gone[0]["user"]) + 5, "the other user goes on: {record}");
    let pictures = record["pictures"].as_array().unwrap();
    assert!(pictures.iter().any(|picture| picture["user"] == gone[0]["user"]), "{}", pictures.len());
    assert!(!is_alive(frozen), "a stopped X server is ended as well");
}

#[test]
fn a_killed_study_of_desktops_leaves_nothing_behind() {
    let temp = folder();
    build_appliances(&["desktop-small"]);
    let (_, mut study) = start(temp.path(), "2", "60s");
    let server = servers(&study, 2)[0];
    let all = descendants(study.id());
    assert!(
        all.len() >= 8,
        "two desktops, each with a server, a window manager, a session, an editor: {all:?}"
    );
    let network = fs::read_link(format!("/proc/{server}/ns/net")).unwrap();
    let devices = mounted_loops(all.iter().map(|(pid, _)| *pid));
    assert!(!devices.is_empty(), "the root is on a loop device");
    study.kill().unwrap();
    study.wait().unwrap();
    wait_for("all processes to be gone", || all.iter().all(|(pid, _)| !is_alive(*pid)).then_some(()));
    wait_for("the network to be gone", || {
        let mut others = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("ns/net"));
        (!others.any(|path| fs::read_link(path).is_ok_and(|other| other == network))).then_some(())
    });
    wait_for("the loop devices to be gone", || (!devices.iter().any(is_attached)).then_some(()));
}
