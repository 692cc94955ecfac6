//! Sets of machines that live in environments: on several hosts over real ssh on loopback, on this one, and in guests.

use std::fs;
use std::path::Path;
use std::process::Child;

use crate::support::run_folder::{records, run_json, scratch};
use crate::support::sshd::Sshd;
use crate::support::{
    Finished, children, finish, folder, is_alive, run, signal, signal_pid, virtbench, wait_for,
};

const LOAD: &str = "load:size=4k,read=50,random=100,outstanding=1";

fn start(out: &Path, words: &[&str], environments: &[String]) -> Child {
    let mut command = virtbench();
    command.arg("study").args(words).args(["--json", "--out"]).arg(out);
    for environment in environments {
        command.args(["--environment", environment]);
    }
    command.spawn().unwrap()
}

fn study(out: &Path, words: &[&str], environments: &[String]) -> Finished {
    finish(start(out, words, environments))
}

fn members(record: &serde_json::Value) -> &[serde_json::Value] {
    record["members"].as_array().unwrap()
}

/// Nothing but the run's own files is left in it.
fn assert_clean(out: &Path) {
    assert_eq!(scratch(out), Vec::<String>::new());
}

/// Waits until something is so, in a run that goes on meanwhile.
fn wait_in<T>(child: &mut Child, what: &str, mut probe: impl FnMut(&Child) -> Option<T>) -> T {
    wait_for(what, || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "the run ended before {what}");
        probe(child)
    })
}

fn ssh_of(child: &Child) -> Vec<u32> {
    let all = children(child.id()).into_iter();
    all.filter(|(_, name)| name == "ssh").map(|(pid, _)| pid).collect()
}

#[test]
fn machines_on_two_hosts_begin_at_one_moment_and_each_host_is_named_with_its_facts() {
    let (one, other, folder) = (Sshd::start(), Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments = [format!("a={}*2", one.address("far")), format!("b={}", other.address("far"))];
    let words = [
        "neighbours",
        "--workload",
        LOAD,
        "--size",
        "4MiB",
        "--time",
        "400ms",
        "--ramp",
        "200ms",
        "--repetitions",
        "1",
    ];
    let done = study(&out, &words, &environments);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    assert_eq!((&json["sets_measured"], &json["members_without_figures"]), (&3.into(), &0.into()), "{json}");
    assert!(done.stderr.contains("machines: vm1, vm2 in a (ssh://metal"), "{}", done.stderr);
    for record in records(&out) {
        assert!(record["host"].is_null(), "none of them is on this host: {record}");
        let several = members(&record).len() > 1;
        assert_eq!(record["start"].is_object(), several, "{record}");
        for member in members(&record) {
            assert!(member["outcome"]["load"]["total"]["operations"].as_u64().unwrap() > 0, "{member}");
            assert!(member["host"]["processors"].as_u64().unwrap() > 0, "{member}");
            let start = &member["start"];
            assert!(
                start["late_ns"].is_i64() && start["offsets_measured"].as_u64().unwrap() >= 2,
                "{member}"
            );
            assert!(start["offset_uncertainty_ns"].as_u64().unwrap() > 0 && member["clock"].is_object());
        }
    }
    let facts = run_json(&out);
    let named: Vec<&str> = facts["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["environment"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["a", "b"], "each host once");
    let homes: Vec<&str> = facts["plan"]["homes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|home| home["environment"].as_str().unwrap())
        .collect();
    assert_eq!(homes, ["a", "a", "b"]);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Machines and their hosts") && page.contains("Machine b"));
    assert!(one.is_clean("far") && other.is_clean("far"), "something is left");
    assert_clean(&out);
}

#[test]
fn a_machine_over_ssh_and_a_guest_deviate_beside_each_other() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments = [format!("metal={}", sshd.address("far")), "guest=qemu:?memory=256MiB".to_owned()];
    let words = [
        "deviation",
        "--workload",
        LOAD,
        "--pattern",
        "10,20",
        "--size",
        "8MiB",
        "--time",
        "500ms",
        "--ramp",
        "200ms",
        "--repetitions",
        "1",
    ];
    let done = study(&out, &words, &environments);
    assert_eq!(done.code(), 0, "{done:?}");
    let all = records(&out);
    assert_eq!(all.len(), 4, "saturation, each alone, both");
    let together = all.iter().find(|record| record["set"] == "together").unwrap();
    assert!(
        together["host"].is_object() && together["start"]["needed_ns"].as_u64().unwrap() > 0,
        "{together}"
    );
    assert!(members(together)[0]["host"].is_object() && members(together)[1]["host"].is_null(), "{together}");
    let facts = run_json(&out);
    assert_eq!((&facts["machines"][0]["environment"], facts["guest"].is_object()), (&"metal".into(), true));
    let numbers = &done.json()["machines"];
    assert_eq!((&numbers[0]["environment"], &numbers[1]["environment"]), (&"metal".into(), &"guest".into()));
    assert!(sshd.is_clean("far"));
    assert_clean(&out);
}

#[test]
fn a_lost_connection_in_the_middle_of_a_set_leaves_the_others_their_results_and_the_next_set_has_all() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments = [format!("metal={}*4", sshd.address("far"))];
    let words = [
        "neighbours",
        "--workload",
        LOAD,
        "--vms",
        "4",
        "--size",
        "1MiB",
        "--time",
        "4s",
        "--ramp",
        "100ms",
        "--repetitions",
        "2",
    ];
    let mut child = start(&out, &words, &environments);
    let ssh = wait_in(&mut child, "four sessions", |child| Some(ssh_of(child)).filter(|all| all.len() == 4));
    wait_in(&mut child, "four agents", |_| (fs::read_dir(sshd.path("far")).ok()?.count() == 4).then_some(()));
    // All four have greeted when their machine is named; then they make their files and run for four seconds.
    wait_in(&mut child, "the machine's facts", |_| {
        fs::read_to_string(out.join("run.json")).ok()?.contains("\"machines\"").then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(2500));
    signal_pid(ssh[1], "KILL");
    let done = finish(child);
    assert_eq!(done.code(), 5, "{done:?}");
    assert!(
        done.stderr.contains("(metal), the others went on: ") && done.stderr.contains("signal 9"),
        "{}",
        done.stderr
    );
    let all = records(&out);
    let measured = |record: &serde_json::Value| {
        members(record).iter().filter(|member| member["status"] == "measured").count()
    };
    assert_eq!((all.len(), measured(&all[0]), measured(&all[1])), (2, 3, 4), "{:?}", done.stderr);
    assert!(done.json()["cautions"].to_string().contains("(metal) failed in 4"), "{done:?}");
    wait_for("the far side to be clean", || sshd.is_clean("far").then_some(()));
}

#[test]
fn a_host_that_cannot_be_reached_any_more_ends_the_run_and_what_was_measured_stays() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments = [format!("metal={}", sshd.address("far")), "native:".to_owned()];
    let words = ["neighbours", "--workload", LOAD, "--vms", "2", "--size", "1MiB", "--time", "300ms"];
    let more = ["--ramp", "50ms", "--repetitions", "100"];
    let mut child = start(&out, &[&words[..], &more].concat(), &environments);
    wait_in(&mut child, "some measurements", |_| (records(&out).len() >= 2).then_some(()));
    let ssh = ssh_of(&child);
    drop(sshd);
    signal_pid(ssh[0], "KILL");
    let done = finish(child);
    assert_eq!(done.code(), 6, "{done:?}");
    assert!(done.stderr.contains("vm1: ") && done.stderr.contains("cannot be reached"), "{}", done.stderr);
    assert!(records(&out).len() >= 2 && out.join("report.html").exists());
    assert_clean(&out);
}

#[test]
fn a_killed_controller_leaves_nothing_on_any_host_and_the_run_goes_on_with_the_same_machines() {
    let (one, other, folder) = (Sshd::start(), Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments =
        [format!("a={}", one.address("far")), format!("b={}", other.address("far")), "native:".to_owned()];
    let words = [
        "neighbours",
        "--workload",
        LOAD,
        "--vms",
        "2,3",
        "--size",
        "1MiB",
        "--time",
        "200ms",
        "--repetitions",
        "50",
    ];
    let mut child = start(&out, &[&words[..], &["--ramp", "50ms"]].concat(), &environments);
    wait_in(&mut child, "some measurements", |_| (records(&out).len() >= 2).then_some(()));
    let ssh = ssh_of(&child);
    assert_eq!(ssh.len(), 2);
    signal(&child, "KILL");
    child.wait().unwrap();
    wait_for("the far sides to be clean", || (one.is_clean("far") && other.is_clean("far")).then_some(()));
    wait_for("ssh to end", || ssh.iter().all(|pid| !is_alive(*pid)).then_some(()));
    let before = records(&out).len();
    let mut again = start(&out, &["neighbours", "--resume"], &[]);
    wait_in(&mut again, "measurements of the resumed run", |_| {
        (records(&out).len() >= before + 2).then_some(())
    });
    signal(&again, "INT");
    let done = finish(again);
    assert_eq!(done.code(), 130, "{done:?}");
    assert!(one.is_clean("far") && other.is_clean("far"));
    assert_clean(&out);
    let elsewhere = study(&out, &["neighbours", "--resume"], &environments[..1]);
    assert!(
        elsewhere.code() == 7 && elsewhere.stderr.contains("was started with --environment"),
        "{elsewhere:?}"
    );
}

#[test]
fn workloads_on_files_work_in_a_folder_of_their_own() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let environments = [format!("metal={}*2", sshd.address("far")), "native:".to_owned()];
    let words = [
        "neighbours",
        "--workload",
        "iozone:size=1MiB,bs=64k,tests=write,runs=1",
        "--vms",
        "3",
        "--size",
        "32MiB",
    ];
    let done = study(&out, &[&words[..], &["--repetitions", "1"]].concat(), &environments);
    assert_eq!(done.code(), 0, "{done:?}");
    let all = records(&out);
    assert!(
        members(&all[0]).iter().all(|member| member["outcome"]["workload"]["bytes"].as_u64().unwrap() > 0)
    );
    assert!(sshd.is_clean("far"));
    assert_clean(&out);
}

#[test]
fn what_cannot_be_spread_or_reached_is_said_and_a_dry_run_says_who_lives_where() {
    let (sshd, folder) = (Sshd::start(), folder());
    let out = folder.path().join("run");
    let words = ["neighbours", "--workload", LOAD, "--size", "1MiB", "--time", "100ms"];
    let gone = format!("gone={}", sshd.address_with("far", "key", 1));
    for (more, environments, code, said) in [
        (&["--vms", "2"][..], vec!["native:*3".to_owned()], 2, "room for 3 machines"),
        (&[], vec!["native:*0".to_owned()], 2, "*1 to *64"),
        (&["--adapter", "nvme"], vec!["native:*2".to_owned()], 2, "cannot be used with"),
        (&[], vec!["a=native:".to_owned(), "a=qemu:".to_owned()], 2, "two environments are called a"),
        (&[], vec!["native:".to_owned(), gone], 6, "cannot be reached"),
    ] {
        let done = study(&out, &[&words[..], more].concat(), &environments);
        assert_eq!(done.code(), code, "{done:?}");
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
        assert!(!out.exists(), "a failed start left a folder");
    }
    let file = folder.path().join("study.toml");
    let text = format!(
        "study = 'neighbours'\nworkload = '{LOAD}'\nvms = '1,3'\nenvironment = ['native:', 'b=native:/b']\n"
    );
    fs::write(&file, text).unwrap();
    let dry = run(&["run", &file.display().to_string(), "--dry-run"]);
    assert_eq!(dry.code(), 0, "{dry:?}");
    let said = dry.stderr.clone() + &dry.stdout;
    assert!(said.contains("vm1, vm3 in native (native:); vm2 in b (native:/b)"), "{said}");
    assert!(said.contains("environment = [\"native:\", \"b=native:/b\"]"), "{said}");
}
