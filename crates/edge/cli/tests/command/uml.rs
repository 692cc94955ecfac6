//! Studies with guests of User Mode Linux on hosts that lack something. Needs root for mounts and users of the tests' own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use virtbench_lab::UmlKernel;

use crate::support::{Finished, finish, folder};

/// The words of a command that compares this host with a guest.
fn comparison(place: &Path) -> Vec<String> {
    fs::write(place.join("grid.toml"), "blocks = ['4k']\nreads = [0]\nrandoms = [100]\n").unwrap();
    let grid = place.join("grid.toml").display().to_string();
    let words =
        ["study", "compare", "--size", "8MiB", "--ramp", "20ms", "--time", "60ms", "--repetitions", "1"];
    let more = ["--environment", "native:", "--environment", "uml:", "--grid", &grid];
    words.into_iter().chain(more).map(str::to_owned).collect()
}

/// Compares this host with a guest, by a shell that first does `script` where it alone sees mounts.
fn compare(place: &Path, script: &str, out: &str) -> Finished {
    let words = comparison(place);
    by_shell(place, script, &words.iter().map(String::as_str).collect::<Vec<_>>(), out)
}

/// A command of virtbench, by a shell that first does `script` where it alone sees mounts.
fn by_shell(place: &Path, script: &str, words: &[&str], out: &str) -> Finished {
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-ec", script, "sh", env!("CARGO_BIN_EXE_virtbench")]).args(words);
    command.current_dir(place).arg("--out").arg(place.join(out));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.env_remove("XDG_RUNTIME_DIR").spawn().unwrap())
}

fn kernel() -> UmlKernel {
    UmlKernel::find().unwrap_or_else(|error| panic!("{error}"))
}

/// Commands that show `needed` to every user, whatever private folders they are in.
fn opened(needed: &[PathBuf]) -> String {
    let mut script = "mount -t tmpfs -o mode=755 none /mnt\n".to_owned();
    for (number, path) in needed.iter().enumerate() {
        script += &format!("mkdir /mnt/{number}; mount --rbind '{}' /mnt/{number}\n", path.display());
    }
    let is_closed = |path: &&Path| path.metadata().unwrap().permissions().mode() & 0o001 == 0;
    for (number, path) in needed.iter().enumerate() {
        let Some(closed) = path.ancestors().skip(1).filter(is_closed).last() else { continue };
        let (path, closed) = (path.display(), closed.display());
        script += &format!(
            "mountpoint -q '{closed}' && findmnt -n -o FSTYPE '{closed}' | grep -q tmpfs || \
             mount -t tmpfs -o mode=755 none '{closed}'\n\
             mkdir -p '{path}'; mount --rbind /mnt/{number} '{path}'\n"
        );
    }
    script + "umount -l /mnt\n"
}

/// How a shell's script ends that runs what it was given as nobody.
const NOBODY: &str = "exec setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent VIRTBENCH_UML=\"$UML\" \"$@\"";

/// Commands that put folders aside, and those that bring back what is in /tmp once something is mounted over that.
fn kept(needed: &[PathBuf]) -> (String, String) {
    let (mut aside, mut back) = ("mount -t tmpfs none /mnt\n".to_owned(), String::new());
    for (number, path) in needed.iter().enumerate().filter(|(_, path)| path.starts_with("/tmp")) {
        let path = path.display();
        aside += &format!("mkdir /mnt/{number}; mount --rbind '{path}' /mnt/{number}\n");
        back += &format!("mkdir -p '{path}'; mount --rbind /mnt/{number} '{path}'\n");
    }
    (aside, back + "umount -l /mnt\n")
}

#[test]
fn nobody_measures_in_a_guest_of_user_mode_linux() {
    let place = folder();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_virtbench")).parent().unwrap().to_owned();
    // Where the kernel has its modules, and the C library that it may need.
    let kernel = kernel().program.ancestors().nth(3).unwrap().to_owned();
    let script = opened(&[place.path().to_owned(), program, kernel]);
    let script = format!("UML='{}'\n{script}{NOBODY}", self::kernel().program.display());
    let done = compare(place.path(), &script, "run");
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stdout.contains("User Mode Linux"), "{done:?}");
    // Networks of its own, too.
    let words = ["study", "network", "--accelerator", "uml", "--paths", "native,tap", "--repetitions", "1"];
    let more = ["--time", "60ms", "--ramp", "20ms", "--json"];
    let done = by_shell(place.path(), &script, &[&words[..], &more].concat(), "network");
    assert_eq!(done.code(), 0, "{done:?}");
    let sides = done.json()["sides"].to_string();
    assert!(!sides.contains("is no network") && sides.matches("TCP to, 1 stream").count() > 1, "{sides}");
}

#[test]
fn what_a_guest_of_user_mode_linux_lacks_is_exit_code_4_with_the_next_step() {
    let place = folder();
    let program = Path::new(env!("CARGO_BIN_EXE_virtbench")).parent().unwrap().to_owned();
    let (aside, back) = kept(&[place.path().to_owned(), program]);
    let started = |script: &str| compare(place.path(), &format!("{aside}{script}\n{back}exec \"$@\""), "run");
    let lacks = |script: &str, says: &[&str]| {
        let done = started(script);
        assert_eq!(done.code(), 4, "{script}: {done:?}");
        assert!(says.iter().all(|words| done.stderr.contains(words)), "{script}: {done:?}");
        let _ = fs::remove_dir_all(place.path().join("run"));
    };
    let noexec = "for at in /tmp /dev/shm; do mount -t tmpfs -o noexec none $at; done";
    lacks(noexec, &["/dev/shm is mounted noexec, /tmp is mounted noexec", "mount -t tmpfs"]);
    fs::create_dir(place.path().join("empty")).unwrap();
    let empty = place.path().join("empty").display().to_string();
    let hidden = format!("for at in /tmp /dev/shm; do mount --bind '{empty}' $at; done");
    lacks(&hidden, &["/dev/shm is not tmpfs", "mount -t tmpfs"]);
    let docker = "mount -t tmpfs -o noexec none /tmp; mount -t tmpfs -o size=64m none /dev/shm";
    lacks(docker, &["/dev/shm has 64 MiB left", "--shm-size"]);
    lacks("export VIRTBENCH_UML=/nonexistent", &["no User Mode Linux kernel", "`make uml`"]);
    // What cannot be told from another program's.
    lacks("export VIRTBENCH_UML=/bin/true", &["is no User Mode Linux kernel that runs here"]);
    let tmp = "mount -t tmpfs -o noexec none /dev/shm; mount -t tmpfs -o mode=1777 none /tmp";
    let elsewhere = started(tmp);
    assert_eq!(elsewhere.code(), 0, "{elsewhere:?}");
}

/// Has the kernel refuse to put filters of system calls in place, and `others` as well, for a command and what it starts.
fn forbid_filters(command: &mut Command, others: &[i64]) {
    let mode = u64::try_from(libc::PR_SET_SECCOMP).unwrap();
    let mode = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, mode).unwrap();
    let mut rules = BTreeMap::from([
        (libc::SYS_seccomp, Vec::new()),
        (libc::SYS_prctl, vec![SeccompRule::new(vec![mode]).unwrap()]),
    ]);
    rules.extend(others.iter().map(|call| (*call, Vec::new())));
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap();
    let program = BpfProgram::try_from(filter).unwrap();
    let forbid = move || seccompiler::apply_filter(&program).map_err(std::io::Error::other);
    // SAFETY: between fork and exec it makes two system calls; it allocates only where one of them fails.
    unsafe { command.pre_exec(forbid) };
}

#[test]
fn where_the_host_forbids_filters_guests_are_traced_and_where_it_forbids_both_it_says_so() {
    let place = folder();
    let run = |others: &[i64], out: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtbench"));
        command.args(comparison(place.path())).arg("--out").arg(place.path().join(out));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        forbid_filters(&mut command, others);
        finish(command.spawn().unwrap())
    };
    let traced = run(&[], "traced");
    assert_eq!(traced.code(), 0, "{traced:?}");
    assert!(traced.stdout.contains("User Mode Linux"), "{traced:?}");
    let neither = run(&[libc::SYS_ptrace], "neither");
    assert_eq!(neither.code(), 4, "{neither:?}");
    assert!(neither.stderr.contains("this host forbids ptrace and"), "{neither:?}");
}
