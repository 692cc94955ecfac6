//! `virtbench study desktops` where desktops are not sessions on this host: in a VM, there already, behind a slow link.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::run_folder::records;
use crate::support::{Finished, LIMIT, build_appliances, finish, folder, virtbench};
use serde_json::Value;

fn study(out: &Path, words: &[&str], password: Option<&str>) -> Finished {
    let mut command = virtbench();
    command.args(["study", "desktops", "--json", "--out"]).arg(out).args(words);
    command.env_remove("VIRTBENCH_VNC_PASSWORD");
    command.envs(password.map(|password| ("VIRTBENCH_VNC_PASSWORD", password)));
    finish(command.spawn().unwrap())
}

fn timed(record: &Value) -> Vec<&Value> {
    let operations = record["operations"].as_array().unwrap_or_else(|| panic!("{record}"));
    operations.iter().filter(|done| done["times"].is_object()).collect()
}

#[test]
fn a_desktop_in_a_vm_is_used_as_one_on_this_host() {
    build_appliances(&["desktop-small"]);
    let temp = folder();
    let out = temp.path().join("run");
    let words =
        ["--day", "small", "--desktops", "1", "--environment", "vm", "--accelerator", "tcg", "--time", "25s"];
    let finished = study(&out, &words, None);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let records = records(&out);
    let done = timed(&records[0]);
    let kinds: BTreeSet<u64> = done.iter().filter_map(|done| done["operation"].as_u64()).collect();
    assert!(kinds.len() >= 2, "an editor opens under emulation, and is typed into: {records:?}");
    assert_eq!(records[0]["gone"], Value::Array(Vec::new()), "{records:?}");
    let run: Value = serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    let command_line = run["guest"]["command_line"].as_array().unwrap();
    assert!(
        command_line.contains(&"-vnc".into()),
        "the user sits before the VM's own screen: {command_line:?}"
    );
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("in a VM each") && page.contains("tcg"), "the page says what executes it");
}

#[test]
fn desktops_in_guests_of_user_mode_linux_are_used_as_those_on_this_host() {
    build_appliances(&["desktop-small"]);
    let temp = folder();
    let out = temp.path().join("run");
    let words = ["--day", "small", "--environment", "vm", "--accelerator", "uml", "--time", "20s"];
    let two = study(&out, &[&words[..], &["--vcpus", "2"]].concat(), None);
    assert!(two.code() == 2 && two.stderr.contains("one processor"), "{two:?}");
    let finished = study(&out, &[&words[..], &["--desktops", "1,2"]].concat(), None);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let records = records(&out);
    assert_eq!(records.len(), 2, "{records:?}");
    for record in &records {
        let kinds: BTreeSet<u64> =
            timed(record).iter().filter_map(|done| done["operation"].as_u64()).collect();
        assert!(kinds.len() >= 4 && record["gone"] == Value::Array(Vec::new()), "{record}");
    }
    let run: Value = serde_json::from_str(&fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    let (guest, plan) = (&run["guest"], run["plan"].to_string());
    assert!(guest["qemu"].as_str().is_some_and(|name| name.starts_with("User Mode Linux ")), "{guest}");
    assert_eq!((&guest["accelerator"]["name"], &guest["vcpus"]), (&"uml".into(), &1.into()), "{guest}");
    assert!(plan.contains("\"accelerator\":\"uml\""), "{plan}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for words in
        ["in a VM each", "User Mode Linux runs the guest's user code", "each desktop serves VNC itself"]
    {
        assert!(page.contains(words), "the page says what the platform is: {words}");
    }
}

/// QEMU's own VNC server before its monitor, which asks for a password and echoes what is typed.
struct Monitor {
    qemu: Child,
    address: String,
}

impl Monitor {
    fn start(folder: &Path) -> Self {
        let password = folder.join("password");
        fs::write(&password, "secret").unwrap();
        let display =
            (20..99_u16).find(|display| TcpListener::bind(("127.0.0.1", 5900 + display)).is_ok()).unwrap();
        let secret = format!("secret,id=password,file={}", password.display());
        let server = format!("127.0.0.1:{display},password-secret=password");
        let qemu = Command::new("qemu-system-x86_64")
            .args([
                "-machine",
                "none",
                "-nodefaults",
                "-S",
                "-monitor",
                "vc",
                "-object",
                &secret,
                "-vnc",
                &server,
            ])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let (begun, monitor) = (Instant::now(), Self { qemu, address: format!("vnc://127.0.0.1:{display}") });
        while std::net::TcpStream::connect(("127.0.0.1", 5900 + display)).is_err() {
            assert!(begun.elapsed() < LIMIT, "QEMU does not serve VNC");
            thread::sleep(Duration::from_millis(20));
        }
        monitor
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

#[test]
fn users_of_existing_desktops_type_what_the_picture_answers() {
    let temp = folder();
    let (monitor, out) = (Monitor::start(temp.path()), temp.path().join("run"));
    // The second one's user finds nobody there.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = silent.local_addr().unwrap().port();
    drop(silent);
    let environment = format!("{},vnc://127.0.0.1::{closed}", monitor.address);
    let words = ["--day", "typing", "--desktops", "2", "--environment", &environment, "--time", "10s"];
    let words = [&words[..], &["--link", "delay=30ms,rate=20mbit,loss=1%"]].concat();
    let finished = study(&out, &words, Some("secret"));
    assert_eq!(finished.code(), 5, "{finished:?}");
    let records = records(&out);
    let done = timed(&records[0]);
    assert!(done.len() >= 3, "{records:?}");
    for one in done {
        let latency = one["times"]["latency_ns"].as_u64().unwrap();
        assert_eq!(one["times"]["last_change_ns"].as_u64(), Some(latency), "{one}");
        assert!(latency >= 60_000_000, "a key and its echo travel the link both ways: {one}");
        assert!(one["times"]["inside_ns"].is_null(), "nobody is inside: {one}");
    }
    let gone = records[0]["gone"].as_array().unwrap();
    assert!(gone.len() == 1 && gone[0]["user"] == 1, "{gone:?}");
    assert!(gone[0]["why"].as_str().unwrap().contains("cannot be reached"), "{gone:?}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("Desktops were there already")
            && page.contains("30ms later each way")
            && page.contains("1 % lost and sent again"),
        "{finished:?}"
    );
    assert!(!fs::read_to_string(out.join("run.json")).unwrap().contains("secret"));
}

#[test]
fn a_refused_password_is_the_error_of_that_user_with_the_next_step() {
    let temp = folder();
    let monitor = Monitor::start(temp.path());
    for (name, password, said) in
        [("wrong", Some("wrong"), "refuses the password"), ("none", None, "asks for a password")]
    {
        let out = temp.path().join(name);
        let finished =
            study(&out, &["--day", "typing", "--environment", &monitor.address, "--time", "2s"], password);
        assert_ne!(finished.code(), 0, "{finished:?}");
        assert!(finished.stderr.contains(said) && finished.stderr.contains("file"), "{finished:?}");
    }
}

#[test]
fn what_existing_desktops_and_links_cannot_do_is_refused_before_anything_is_measured() {
    let temp = folder();
    let out = temp.path().join("run");
    for (words, said) in [
        (&["--environment", "desk"][..], "write native, vm, or addresses"),
        (&["--environment", "vnc://desk:"], "write vnc://HOST"),
        (&["--environment", "vnc://desk", "--day", "small"], "nobody is inside existing desktops"),
        (&["--environment", "vnc://desk", "--day", "typing", "--desktops", "2"], "each user needs one"),
        (
            &["--environment", "vnc://desk", "--day", "typing", "--recipe", "desktop"],
            "--recipe is for desktops",
        ),
        (
            &["--environment", "vnc://desk", "--day", "typing", "--password-file", "/none"],
            "cannot read /none",
        ),
        (&["--password-file", "/none"], "is for existing desktops"),
        (&["--link", "delay=1ms,loss=60%"], "loss 50% at most"),
        (&["--link", "slow"], "write such as delay=50ms"),
    ] {
        let finished = study(&out, words, None);
        assert_eq!(finished.code(), 2, "{words:?}: {finished:?}");
        assert!(finished.stderr.contains(said), "{words:?}: {finished:?}");
        assert!(!out.exists(), "{words:?}");
    }
}
