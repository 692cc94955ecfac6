//! Machines that exist and cannot be used as they are: what is said, with which exit code, and that nothing is left.

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use virtbench_mark::{MARK_FILE, Mark, RunId};

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
        assert!(refused.code() == 3 && refused.stderr.contains(said), "{refused:?}");
    }
}

#[test]
fn a_folder_without_room_is_the_target_that_cannot_be_used() {
    assert!(rustix::process::geteuid().is_root(), "this test mounts file systems: run it as root");
    let mounted = folder();
    let sshd = Sshd::with("", &format!("mount -t tmpfs -o size=2m none '{}'", mounted.path().display()));
    let refused = load(&elsewhere(&sshd, mounted.path()));
    assert!(refused.code() == 3 && refused.stderr.contains("no room"), "{refused:?}");
}

#[test]
fn files_of_the_user_stay_whatever_they_are_called() {
    let sshd = Sshd::start();
    let far = sshd.path("far");
    fs::create_dir_all(far.join(".virtbench-agent/sub")).unwrap();
    for name in [".virtbench-my-notes", ".virtbench-agent/thesis.txt", ".virtbench-agent/sub/x"] {
        let file = fs::File::create(far.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    }
    let refused = load(&sshd.address("far"));
    assert_eq!(refused.code(), 3, "{refused:?}");
    assert!(
        refused.stderr.contains("is not virtbench's") && refused.stderr.contains("another folder"),
        "{refused:?}"
    );
    fs::rename(far.join(".virtbench-agent"), far.join("theirs")).unwrap();
    assert_eq!(load(&sshd.address("far")).code(), 0);
    assert!(far.join("theirs/thesis.txt").exists() && far.join("theirs/sub/x").exists());
    assert!(far.join(".virtbench-my-notes").exists() && !far.join(".virtbench-agent").exists());
}

#[test]
fn a_way_through_another_machine_that_is_dead_is_named() {
    let sshd = Sshd::start();
    let address = sshd.address("far");
    let (_, config) = address.split_once("config=").unwrap();
    let text = fs::read_to_string(config).unwrap();
    let through = sshd.path("through");
    fs::write(
        &through,
        format!("Host jump\n  HostName 127.0.0.1\n  Port 1\nHost metal\n  ProxyJump jump\n{text}"),
    )
    .unwrap();
    let refused = load(&address.replace(config, &through.display().to_string()));
    assert_eq!(refused.code(), 6, "{refused:?}");
    assert!(refused.stderr.contains("ProxyJump") && !refused.stderr.contains("MaxStartups"), "{refused:?}");
}

#[test]
fn what_a_users_configuration_says_for_logins_by_hand_is_overridden() {
    let sshd = Sshd::start();
    let address = sshd.address("far");
    let (_, config) = address.split_once("config=").unwrap();
    let text = fs::read_to_string(config).unwrap();
    for line in
        ["RemoteCommand tmux attach", "StdinNull yes", "SessionType none", "ForkAfterAuthentication yes"]
    {
        let other = sshd.path("other");
        fs::write(&other, format!("{line}\n{text}")).unwrap();
        let done = load(&address.replace(config, &other.display().to_string()));
        assert_eq!(done.code(), 0, "{line}: {done:?}");
    }
}

#[test]
fn a_stop_during_a_login_ends_it_at_once() {
    // Its login never speaks.
    let sshd = Sshd::with("ForceCommand sleep 600", "");
    let machine = format!("metal={}", sshd.address("far"));
    let child = virtbench().args(["load", "--size", "4MiB", "--environment", &machine]).spawn().unwrap();
    let far = sshd.path("log");
    wait_for("the login", || {
        fs::read_to_string(&far).is_ok_and(|log| log.contains("Accepted")).then_some(())
    });
    let asked = Instant::now();
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    // Of the login's own limit of two minutes.
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
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
fn what_killed_logins_and_agents_left_is_swept_by_its_mark() {
    let sshd = Sshd::start();
    let far = sshd.path("far");
    let mark = Mark::new(RunId::new_random(), "login").to_string();
    // One of a process that never was, one of this process, and one that somebody else made.
    for (name, written) in [("gone", format!("{mark}1")), ("alive", mark), ("theirs", "virtbench".to_owned())]
    {
        let folder = far.join(format!(".virtbench-login-{name}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("program"), "x").unwrap();
        fs::write(folder.join(MARK_FILE), written).unwrap();
    }
    let done = load(&sshd.address("far"));
    assert_eq!(done.code(), 0, "{done:?}");
    let mut left: Vec<_> = fs::read_dir(far).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".virtbench-login-alive", ".virtbench-login-theirs"]);
}

#[test]
fn a_folder_has_one_controller_and_the_other_is_told() {
    let sshd = Sshd::start();
    let far = format!("metal={}", sshd.address("far"));
    let words = ["load", "--size", "4MiB", "--ramp", "0s", "--time", "600s", "--environment", &far];
    let first = virtbench().args(words).spawn().unwrap();
    wait_for("the first controller's file", || sshd.path("far/.virtbench-agent/disk").exists().then_some(()));
    let second = load(&sshd.address("far"));
    assert!(second.code() == 3 && second.stderr.contains("in use by another run of virtbench"), "{second:?}");
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
