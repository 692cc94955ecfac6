//! Machines that exist and cannot be used as they are: what is said, with which exit code, and that nothing is left.

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::support::sshd::Sshd;
use crate::support::{Finished, finish, folder, run, signal, virtbench, wait_for};

/// Applies a short load on a machine.
fn load(address: &str) -> Finished {
    let machine = format!("metal={address}");
    run(&["load", "--size", "4MiB", "--ramp", "20ms", "--time", "100ms", "--environment", &machine])
}

/// The address of a folder that is not the server's own.
fn elsewhere(sshd: &Sshd, folder: &Path) -> String {
    let settings = sshd.address("x");
    format!("ssh://metal{}?{}", folder.display(), settings.split_once('?').unwrap().1)
}

#[test]
fn a_machine_that_never_answers_is_given_up() {
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let sshd = Sshd::start();
    let refused = load(&sshd.address_with("far", "key", silent.local_addr().unwrap().port()));
    assert_eq!(refused.code(), 6, "{refused:?}");
    assert!(
        refused.stderr.contains("cannot be reached") && refused.stderr.contains("timed out"),
        "{refused:?}"
    );
}

#[test]
fn a_server_that_drops_logins_is_named_with_its_setting() {
    let sshd = Sshd::with("MaxStartups 1:100:1", "");
    // Somebody else who is about to log in, and is not dropped.
    let _other = wait_for("the server's greeting", || {
        let mut other = TcpStream::connect(("127.0.0.1", sshd.port())).ok()?;
        let mut greeting = [0; 4];
        other.read_exact(&mut greeting).ok()?;
        (greeting == *b"SSH-").then_some(other)
    });
    let refused = load(&sshd.address("far"));
    assert_eq!(refused.code(), 6, "{refused:?}");
    assert!(
        refused.stderr.contains("dropped the connection") && refused.stderr.contains("MaxStartups"),
        "{refused:?}"
    );
}

#[test]
fn a_read_only_folder_is_found_out() {
    assert!(rustix::process::geteuid().is_root(), "this test mounts file systems: run it as root");
    let mounted = folder();
    let sshd = Sshd::with("", &format!("mount -t tmpfs -o ro none '{}'", mounted.path().display()));
    for (name, said) in [("", "cannot write into"), ("below", "cannot make the folder")] {
        let refused = load(&elsewhere(&sshd, &mounted.path().join(name)));
        assert!(refused.code() == 6 && refused.stderr.contains(said), "{refused:?}");
    }
}

#[test]
fn an_agent_of_another_version_that_is_kept_there_is_neither_used_nor_removed() {
    let home = folder();
    let sshd = Sshd::with(&format!("SetEnv XDG_CACHE_HOME={}", home.path().display()), "");
    let other = home.path().join("virtbench").join(format!("agent-{}", "0".repeat(64)));
    fs::create_dir(other.parent().unwrap()).unwrap();
    fs::write(&other, "#!/bin/sh\necho another version\n").unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o700)).unwrap();
    let done = load(&format!("{}&agent=keep", sshd.address("far")));
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(fs::read_dir(other.parent().unwrap()).unwrap().count(), 2);
    assert!(other.exists() && sshd.is_clean("far"));
}

#[test]
fn what_a_login_left_that_was_cut_off_is_swept() {
    let sshd = Sshd::start();
    let path = |name: &str| sshd.path("far").join(name);
    fs::create_dir(sshd.path("far")).unwrap();
    for name in [".virtbench-agent-77.77", ".virtbench-probe-78", ".virtbench-agent-79", "theirs-1-2"] {
        let file = fs::File::create(path(name)).unwrap();
        if name != ".virtbench-agent-79" {
            file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
        }
    }
    let done = load(&sshd.address("far"));
    assert_eq!(done.code(), 0, "{done:?}");
    let mut left: Vec<_> =
        fs::read_dir(sshd.path("far")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    // One may still be logging in.
    assert_eq!(left, [".virtbench-agent-79", "theirs-1-2"]);
}

#[test]
fn a_folder_has_one_controller_and_the_other_is_told() {
    let sshd = Sshd::start();
    let far = format!("metal={}", sshd.address("far"));
    let words = ["load", "--size", "4MiB", "--ramp", "0s", "--time", "600s", "--environment", &far];
    let first = virtbench().args(words).spawn().unwrap();
    wait_for("the first controller's file", || sshd.path("far/.virtbench-agent/disk").exists().then_some(()));
    let second = load(&sshd.address("far"));
    assert!(second.code() == 6 && second.stderr.contains("in use by another run of virtbench"), "{second:?}");
    assert!(sshd.path("far/.virtbench-agent/disk").exists(), "the first one's file is gone");
    signal(&first, "INT");
    finish(first);
    wait_for("the far side to be clean", || sshd.is_clean("far").then_some(()));
}

#[test]
fn a_user_without_privileges_measures_the_same() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user: run it as root");
    // Where every user may look.
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let work = place.path().join("work");
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&work).unwrap();
    fs::set_permissions(&work, Permissions::from_mode(0o777)).unwrap();
    let as_nobody = "ForceCommand exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
                     env HOME=/nonexistent sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let sshd = Sshd::with(as_nobody, "");
    let (grid, out) = (place.path().join("grid.toml"), place.path().join("run"));
    fs::write(&grid, "blocks = ['4k']\nreads = [100]\nrandoms = [100]\nrepetitions = 2\n").unwrap();
    let far = format!("far={}", elsewhere(&sshd, &work));
    let [grid, out_] = [&grid, &out].map(|path| path.display().to_string());
    let words = ["study", "compare", "--environment", &far, "--environment", "native:", "--grid", &grid];
    let times = ["--size", "4MiB", "--ramp", "20ms", "--time", "100ms", "--out", &out_, "--json"];
    let child = virtbench().args([&words[..], &times].concat()).spawn().unwrap();
    let owner = wait_for("the agent's folder", || {
        Some(std::os::unix::fs::MetadataExt::uid(&fs::metadata(work.join(".virtbench-agent")).ok()?))
    });
    let done = finish(child);
    assert_eq!((done.code(), owner), (0, 65534), "{done:?}");
    let json = done.json();
    assert_eq!((&json["points_measured"], &json["points_unavailable"]), (&4.into(), &0.into()), "{json}");
    let records = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert!(records.lines().all(|line| line.contains("\"steal_percent\"")), "{records}");
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "something is left");
}

#[test]
fn more_machines_than_descriptors_are_refused_before_anything_starts() {
    let sshd = Sshd::start();
    let script = "ulimit -n 48; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_virtbench"), "load", "--size", "4MiB"]);
    for name in ["a", "b", "c"] {
        command.args(["--environment", &format!("{name}={}", sshd.address(name))]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let refused = finish(command.spawn().unwrap());
    assert_eq!(refused.code(), 4, "{refused:?}");
    assert!(
        refused.stderr.contains("3 machines need") && refused.stderr.contains("ulimit -n"),
        "{refused:?}"
    );
    assert!(["a", "b", "c"].iter().all(|name| sshd.is_clean(name)));
}
