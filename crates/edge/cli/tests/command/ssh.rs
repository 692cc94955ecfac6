//! Studies of machines that exist, over real ssh on loopback.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use crate::support::run_folder::{records, run_json};
use crate::support::sshd::Sshd;
use crate::support::{
    Finished, children, finish, folder, is_alive, run, signal, signal_pid, virtbench, wait_for,
};

/// Arguments of a small study of these environments into `out`.
fn arguments(
    folder: &Path,
    out: &Path,
    environments: &[String],
    time: &str,
    repetitions: &str,
) -> Vec<String> {
    let grid = folder.join("grid.toml");
    fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let mut words: Vec<String> = [
        "study",
        "compare",
        "--size",
        "8MiB",
        "--ramp",
        "20ms",
        "--time",
        time,
        "--repetitions",
        repetitions,
    ]
    .map(str::to_owned)
    .into();
    for environment in environments {
        words.extend(["--environment".to_owned(), environment.clone()]);
    }
    words.extend(["--grid".into(), grid.display().to_string(), "--out".into(), out.display().to_string()]);
    words
}

fn study(folder: &Path, out: &Path, environments: &[String], more: &[&str]) -> Finished {
    let mut words = arguments(folder, out, environments, "50ms", "2");
    words.extend(more.iter().map(|word| (*word).to_owned()));
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A study that goes on for long, in the middle of its points.
fn running(sshd: &Sshd, folder: &Path, out: &Path) -> Child {
    let environments = [format!("metal={}", sshd.address("far")), "native:".to_owned()];
    let child = virtbench().args(arguments(folder, out, &environments, "200ms", "300")).spawn().unwrap();
    wait_for("the first points", || (records(out).len() >= 3).then_some(()));
    child
}

fn ssh_of(child: &Child) -> u32 {
    children(child.id()).into_iter().find(|(_, name)| name == "ssh").unwrap().0
}

#[test]
fn machines_that_exist_are_compared_with_this_one_and_keep_nothing() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let [metal, vm] = ["metal", "a vm"].map(|name| sshd.address(&name.replace(' ', "%20")));
    let environments = [format!("metal={metal}"), format!("vm={vm}"), "native:".to_owned()];
    let done = study(folder.path(), &out, &environments, &["--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!((&json["points_measured"], &json["points_unavailable"]), (&12.into(), &0.into()), "{json}");
    for point in json["points"].as_array().unwrap() {
        for (side, name) in ["metal", "vm", "native"].iter().enumerate() {
            let side = &point["sides"][side];
            assert_eq!(side["environment"], *name);
            assert!(side["iops"]["value"].as_f64().unwrap() > 0.0, "{side}");
        }
    }
    let run = run_json(&out);
    let machines = run["machines"].as_array().unwrap();
    assert_eq!((&machines[0]["environment"], &machines[1]["environment"]), (&"metal".into(), &"vm".into()));
    assert!(
        machines.iter().all(|machine| machine["facts"]["processors"].as_u64().unwrap() > 0),
        "{machines:?}"
    );
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Machine metal") && page.contains("Storage of several machines"));
    assert!(page.contains("Processor by processor") && page.contains("Steal"), "the far side's processors");
    assert!(sshd.is_clean("metal") && sshd.is_clean("a vm"), "something is left");
}

#[test]
fn a_load_is_applied_on_a_machine_that_exists_and_on_this_host() {
    let (sshd, folder) = (Sshd::start(), folder());
    let here = format!("here=native:{}", folder.path().display());
    let metal = format!("metal={}", sshd.address("far"));
    let words = ["load", "--size", "8MiB", "--ramp", "20ms", "--time", "100ms", "--environment", &metal];
    let table = run(&words);
    assert!(table.code() == 0 && table.stdout.contains("[metal] on disk"), "{table:?}");
    let both = run(&[&words[..], &["--environment", &here, "--json", "--repeat", "2"]].concat());
    let json = both.json();
    assert_eq!(both.code(), 0, "{both:?}");
    for (index, name) in ["metal", "here"].iter().enumerate() {
        let job = &json["jobs"][index];
        assert!(job["job"] == *name && job["total"]["iops"].as_f64().unwrap() > 0.0, "{job}");
        assert_eq!(job["repetitions"].as_array().unwrap().len(), 2);
    }
    assert!(sshd.is_clean("far"));
    let unreachable = format!("gone={}", sshd.address_with("far", "key", 1));
    let mixed = run(&[&words[..], &["--environment", &unreachable]].concat());
    assert!(mixed.code() == 6 && mixed.stdout.contains("[metal] on disk"), "{mixed:?}");
    let refused = run(&["load", "--environment", &metal, "--target", "x"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
}

#[test]
fn what_a_login_prints_is_passed_over_and_names_come_from_a_file() {
    let chatter = "ForceCommand echo Welcome; echo; printf half; exec sh -c \"$SSH_ORIGINAL_COMMAND\"";
    let (sshd, folder) = (Sshd::with(chatter, ""), folder());
    let names = format!("[environments]\nmetal = \"{}\"\nhere = \"native:\"\n", sshd.address("far"));
    fs::write(folder.path().join("virtbench.toml"), names).unwrap();
    let out = folder.path().join("run");
    let words = arguments(folder.path(), &out, &["metal".to_owned(), "here".to_owned()], "50ms", "1");
    let done = finish(virtbench().args(words).current_dir(folder.path()).spawn().unwrap());
    assert_eq!((done.code(), records(&out).len()), (0, 4), "{done:?}");
    assert!(sshd.is_clean("far"));
}

#[test]
fn what_cannot_be_reached_or_used_is_said() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let refused = |address: &str, code: i32, words: &[&str]| {
        let done = study(folder.path(), &out, &[format!("metal={address}"), "native:".to_owned()], &[]);
        assert_eq!(done.code(), code, "{done:?}");
        for word in words {
            assert!(done.stderr.contains(word), "{word}: {}", done.stderr);
        }
        assert!(!out.exists(), "a failed start left a folder");
    };
    refused(&sshd.address_with("far", "stranger", 1), 6, &["cannot be reached", "`ssh -F "]);
    refused(
        &sshd.address_with("far", "stranger", sshd.port()),
        6,
        &["cannot be reached", "Permission denied"],
    );
    refused(&sshd.address("authorized/below"), 3, &["cannot make the folder"]);
    refused(&sshd.address("mistyped/below"), 3, &["cannot make the folder"]);
    assert!(!sshd.path("mistyped").exists());
    refused("ssh://metal", 2, &["names no folder"]);
    refused("telnet://metal/srv", 2, &["is no environment"]);
    fs::create_dir_all(sshd.path("held/.virtbench-agent")).unwrap();
    let held = fs::File::open(sshd.path("held/.virtbench-agent")).unwrap();
    held.lock().unwrap();
    refused(&sshd.address("held"), 3, &["in use by another run of virtbench", "name another folder"]);
}

#[test]
fn a_far_disk_without_room_or_execution_is_found_out() {
    assert!(rustix::process::geteuid().is_root(), "this test mounts file systems: run it as root");
    let small = "mount -t tmpfs -o size=2m,mode=700 small SMALL; mount -t tmpfs -o noexec none NOEXEC";
    let mounted = folder();
    let path = |name: &str| mounted.path().join(name);
    for name in ["small", "noexec"] {
        fs::create_dir(path(name)).unwrap();
    }
    let before = small
        .replace("SMALL", &path("small").display().to_string())
        .replace("NOEXEC", &path("noexec").display().to_string());
    let (sshd, folder) = (Sshd::with("", &before), folder());
    let out = folder.path().join("run");
    let address = |name: &str| {
        let config = sshd.address("x");
        format!("ssh://metal{}?{}", path(name).display(), config.split_once('?').unwrap().1)
    };
    let done = study(folder.path(), &out, &[format!("metal={}", address("small")), "native:".into()], &[]);
    assert_eq!(done.code(), 3, "{done:?}");
    assert!(done.stderr.contains("room") || done.stderr.contains("space"), "{}", done.stderr);
    let done = study(folder.path(), &out, &[format!("metal={}", address("noexec")), "native:".into()], &[]);
    assert_eq!(done.code(), 0, "{done:?}");
    let notes = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(notes.contains("this is memory, not a disk"), "{notes}");
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_on_the_machine_and_its_run_goes_on() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let mut child = running(&sshd, folder.path(), &out);
    let ssh = ssh_of(&child);
    assert!(!sshd.is_clean("far"), "nothing is there while it runs");
    signal(&child, "KILL");
    child.wait().unwrap();
    wait_for("the far side to be clean", || sshd.is_clean("far").then_some(()));
    wait_for("ssh to end", || (!is_alive(ssh)).then_some(()));
    let before = records(&out).len();
    let out_ = out.display().to_string();
    let again = virtbench().args(["study", "compare", "--resume", "--out", &out_]).spawn().unwrap();
    wait_for("points of the resumed run", || (records(&out).len() >= before + 3).then_some(()));
    signal(&again, "INT");
    let done = finish(again);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(out.join("report.html").exists() && sshd.is_clean("far"));
}

#[test]
fn a_connection_that_is_lost_is_an_error_of_its_machine_and_what_was_measured_stays() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let child = running(&sshd, folder.path(), &out);
    signal_pid(ssh_of(&child), "KILL");
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("metal: ssh was killed by signal 9"), "{}", done.stderr);
    assert!(records(&out).len() >= 3 && out.join("report.html").exists());
    wait_for("the far side to be clean", || sshd.is_clean("far").then_some(()));
}

#[test]
fn a_stop_while_a_far_test_file_is_written_ends_it_at_once() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments = [format!("metal={}", sshd.address("far")), format!("vm={}", sshd.address("vm"))];
    let mut words = arguments(folder.path(), &out, &environments, "50ms", "1");
    let size = words.iter().position(|word| word == "8MiB").unwrap();
    // Larger than what is written until the signal comes.
    words[size] = "6GiB".into();
    let child = virtbench().args(words).spawn().unwrap();
    let file = sshd.path("far/.virtbench-agent/disk.virtbench-partial");
    wait_for("the test file to grow", || (fs::metadata(&file).ok()?.len() > 0).then_some(()));
    signal(&child, "INT");
    let done = finish(child);
    assert_eq!(done.code(), 130, "{done:?}");
    wait_for("the far side to be clean", || sshd.is_clean("far").then_some(()));
}

#[test]
fn a_kept_agent_is_sent_once_and_a_damaged_one_again() {
    let (home, folder) = (folder(), folder());
    let sshd = Sshd::with(&format!("SetEnv XDG_CACHE_HOME={}", home.path().display()), "");
    let kept = |expected: usize| {
        let found: Vec<_> = fs::read_dir(home.path().join("virtbench")).unwrap().flatten().collect();
        assert_eq!(found.len(), expected, "{found:?}");
        found[0].path()
    };
    let measure = |name: &str| {
        let environments = [format!("metal={}&agent=keep", sshd.address("far")), "native:".to_owned()];
        let done = study(folder.path(), &folder.path().join(name), &environments, &[]);
        assert_eq!(done.code(), 0, "{done:?}");
    };
    measure("first");
    let agent = kept(1);
    let made = fs::metadata(&agent).unwrap().modified().unwrap();
    measure("second");
    assert_eq!(fs::metadata(kept(1)).unwrap().modified().unwrap(), made, "it was sent again");
    fs::write(&agent, "damaged").unwrap();
    measure("third");
    assert!(fs::metadata(kept(1)).unwrap().len() > 1 << 19);
    assert!(sshd.is_clean("far"));
}

/// A whole disk that this test made; it is gone with this value.
struct LoopDevice(String);

impl LoopDevice {
    fn attach(image: &Path) -> Self {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(image).output().unwrap();
        assert!(made.status.success(), "losetup needs root: {made:?}");
        Self(String::from_utf8(made.stdout).unwrap().trim().to_owned())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_whole_disk_of_a_machine_is_read_and_written_to_by_consent() {
    let (sshd, here) = (Sshd::start(), folder());
    let image = here.path().join("image");
    let precious = vec![0x5a_u8; 8 << 20];
    fs::write(&image, &precious).unwrap();
    let device = LoopDevice::attach(&image);
    let load = |setting: &str, more: &[&str]| {
        let far = format!("metal={}&{setting}", sshd.address("far"));
        let words =
            ["load", "--size", "4MiB", "--ramp", "20ms", "--time", "100ms", "--json", "--environment", &far];
        run(&[&words[..], more].concat())
    };
    let named = format!("device={}", device.0);
    let done = load(&named, &["--read", "100"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(done.json()["target"]["kind"], "block_device", "{done:?}");
    let done = load(&named, &["--read", "0"]);
    assert!(done.code() != 0 && done.stderr.contains("&overwrite=allow"), "{done:?}");
    assert_eq!(fs::read(&image).unwrap(), precious, "nothing was written without consent");
    let done = load(&format!("{named}&overwrite=allow"), &["--read", "0", "--random", "100", "--verify"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let found = &done.json()["verify"];
    // By chance some are never written.
    let (checked, unknown) = (found["blocks_checked"].as_u64(), found["blocks_unknown"].as_u64());
    assert_eq!(checked.zip(unknown).map(|(checked, unknown)| checked + unknown), Some(1024), "{done:?}");
    assert!(checked > Some(0), "{done:?}");
    let now = fs::read(&image).unwrap();
    assert!(now[..4 << 20] != precious[..4 << 20] && now[4 << 20..] == precious[4 << 20..]);
    for (setting, words) in [("device=/dev/null", "/dev/null"), ("device=/dev/no/such", "/dev/no/such")] {
        let done = load(setting, &["--read", "100"]);
        assert!(done.code() != 0 && done.stderr.contains(words), "{setting}: {done:?}");
    }
    assert!(sshd.is_clean("far"));
}
