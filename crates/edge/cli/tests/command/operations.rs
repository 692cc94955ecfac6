//! `virtbench study operations` for real: libvirtd with guests that answer, and a thousand domains of libvirt's test driver.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Child;

use crate::support::libvirtd::Libvirtd;
use crate::support::run_folder::records;
use crate::support::{Finished, finish, folder, run, signal, signal_pid, virtbench, wait_for};
use serde_json::Value;

const TEST_DRIVER: &str = "libvirt+test:///default?pool=default-pool";

/// Arguments of a small study on a libvirtd.
fn arguments(libvirtd: &Libvirtd, out: &Path) -> Vec<String> {
    let platform = format!("libvirt+{}", libvirtd.connection());
    let words = ["study", "operations", "--platform", &platform, "--accelerator", "tcg", "--disk", "2MiB"];
    let out = out.display().to_string();
    words.into_iter().chain(["--out", &out]).map(str::to_owned).collect()
}

fn study(libvirtd: &Libvirtd, out: &Path, more: &[&str]) -> Finished {
    finish(start(libvirtd, out, more))
}

fn start(libvirtd: &Libvirtd, out: &Path, more: &[&str]) -> Child {
    virtbench().args(arguments(libvirtd, out)).args(more).spawn().unwrap()
}

/// Two VMs and a client, in pieces of two seconds: at a rate a busy host would leave too few VMs for a result.
const SHORT_PIECES: [&str; 9] =
    ["--vms", "2", "--piece", "2s", "--ramp", "0s", "--leave-out", "--clients", "1"];

/// A domain and a volume that are somebody's own, with names like those of a run.
fn strangers(libvirtd: &Libvirtd) -> impl Fn() + '_ {
    let name = format!("virtbench-{}-{}-1-1-0-7", "0".repeat(10), "0".repeat(10));
    let xml = libvirtd.path("strange.xml");
    let description = format!(
        "<domain type='qemu'><name>{name}</name><memory unit='MiB'>16</memory><os><type arch='x86_64'>hvm</type></os></domain>"
    );
    fs::write(&xml, description).unwrap();
    assert!(libvirtd.virsh(&["define", &xml.display().to_string()]).status.success());
    fs::write(libvirtd.path("pool/virtbench-precious.qcow2"), "precious").unwrap();
    move || {
        assert_eq!(libvirtd.domains(), [name.as_str()], "another's domain is left alone");
        assert_eq!(libvirtd.volumes(), ["virtbench-precious.qcow2"], "another's volume is left alone");
    }
}

#[test]
fn operations_of_a_real_hypervisor_are_measured_until_their_guests_answer() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let only_strangers_are_left = strangers(&libvirtd);
    let (out, mix) = (temp.path().join("run"), temp.path().join("mix.toml"));
    let all = "power_on = 2\npower_off = 2\nclone = 1\nremove = 1\ncreate_snapshot = 1\ndelete_snapshot = 1\n\
               reconfigure = 1\nsuspend = 1\nresume = 1\nattach_disk = 1\ndetach_disk = 1\nconsole = 1\nlist = 1\n";
    fs::write(&mix, all).unwrap();
    let mix = mix.display().to_string();
    let short = ["--vms", "4", "--time", "14s", "--piece", "7s", "--ramp", "0s", "--clients", "3", "--json"];
    let finished = study(&libvirtd, &out, &[&short[..], &["--mix", &mix]].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    only_strangers_are_left();
    let summary = finished.json();
    let operations = summary["steps"][0]["operations"].as_object().unwrap();
    let failed = |one: &Value| one["failed"].as_object().unwrap().len();
    assert!(operations.values().all(|one| failed(one) == 0), "{summary}");
    assert_eq!(summary["steps"][0]["management"][0]["name"], "libvirtd", "{summary}");
    let kinds: BTreeSet<&str> = operations.keys().map(String::as_str).collect();
    for kind in ["power_on", "power_off", "clone", "remove", "create_snapshot", "reconfigure", "list"] {
        assert!(kinds.contains(kind), "{kind} was done: {kinds:?}");
    }
    // A guest takes longer to answer than libvirt to say that it is started.
    let on = &operations["power_on"]["phases_ns"];
    assert!(on["seen"].as_f64().unwrap() > 1e8 && on["running"].as_f64().unwrap() > 1e7, "{on}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Where the time of each operation goes") && page.contains("executed by tcg"));
    let logged = fs::read_dir(out.join("operations")).unwrap().flatten();
    let lines: usize = logged.map(|file| fs::read_to_string(file.path()).unwrap().lines().count()).sum();
    let done: u64 = operations.values().map(|one| one["done"].as_u64().unwrap()).sum();
    assert_eq!(lines as u64, done, "a line for each operation");
}

/// A run that is killed in the midst of its operations; the label of what it leaves.
fn killed(libvirtd: &Libvirtd, folder: &Path) -> String {
    let long = ["--vms", "3", "--time", "10m", "--leave-out", "--rate", "60/min"];
    let mut killed = start(libvirtd, &folder.join("killed"), &long);
    let log = folder.join("killed/operations");
    wait_for("operations", || log.exists().then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = libvirtd.domains();
    assert!(left.len() > 2, "a kill leaves its VMs: {left:?}");
    let keeper = left.iter().find_map(|name| name.strip_suffix(".shared")).unwrap();
    keeper.to_owned()
}

/// A domain with this disk and nothing of virtbench's in it.
fn foreign(name: &str, disk: &Path) -> String {
    format!(
        "<domain type='qemu'><name>{name}</name><memory unit='MiB'>16</memory><os><type arch='x86_64'>hvm</type></os><devices>\
         <disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='{}'/><target dev='vda' bus='virtio'/></disk>\
         </devices></domain>",
        disk.display()
    )
}

#[test]
fn what_a_killed_run_has_left_on_a_hypervisor_is_swept_by_the_next() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let only_strangers_are_left = strangers(&libvirtd);
    killed(&libvirtd, temp.path());
    let out = temp.path().join("next");
    let short = ["--vms", "2", "--time", "3s", "--ramp", "0s", "--leave-out", "--clients", "1"];
    let next = study(&libvirtd, &out, &short);
    assert_eq!(next.code(), 0, "{next:?}");
    let notes = fs::read_to_string(out.join("run.json")).unwrap();
    assert!(notes.contains("domains and volumes that killed runs had left there"), "{notes}");
    only_strangers_are_left();
}

#[test]
fn what_a_run_made_is_known_by_its_mark_and_never_by_a_name() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let label = killed(&libvirtd, temp.path());
    let of_run: Vec<String> =
        libvirtd.guests().into_iter().filter(|name| name.starts_with(&format!("{label}-"))).collect();
    let pool = |name: &str| libvirtd.path("pool").join(name);
    let strange = [
        format!("{label}-77.qcow2"),
        format!("{label}-2.qcow2.backup"),
        format!("{label}-notes"),
        "copy.qcow2".into(),
    ];
    strange.iter().for_each(|name| fs::write(pool(name), "theirs").unwrap());
    libvirtd.define(&foreign(&format!("{label}-77"), &pool(&strange[0])));
    // As virt-clone copies a VM: with what is written in it, and another name, UUID and disk.
    let (first, last) = (&of_run[0], &of_run[of_run.len() - 1]);
    let xml = libvirtd.xml(first);
    let uuid = xml.split("<uuid>").nth(1).unwrap().split("</uuid>").next().unwrap();
    let copy = xml
        .replace(&format!("<uuid>{uuid}</uuid>"), "<uuid>12345678-1234-4123-8123-123456789abc</uuid>")
        .replace(&format!("<name>{first}</name>"), &format!("<name>{label}-1-clone</name>"))
        .replace(&format!("/{first}.qcow2"), "/copy.qcow2");
    libvirtd.define(&copy);
    // Somebody looks into a disk of a run's. The path of the pool is the server's.
    libvirtd.define(&foreign("rescue", &pool(&format!("{last}.qcow2"))));
    let made = libvirtd.path("another");
    fs::create_dir(&made).unwrap();
    let said = libvirtd.virsh(&["pool-create-as", "another", "dir", "--target", &made.display().to_string()]);
    assert!(said.status.success(), "{said:?}");

    let platform = format!("libvirt+{}&pool=another", libvirtd.connection());
    let out = temp.path().join("next").display().to_string();
    let words = [
        "study",
        "operations",
        "--platform",
        &platform,
        "--accelerator",
        "tcg",
        "--disk",
        "2MiB",
        "--out",
        &out,
    ];
    let short = ["--vms", "2", "--time", "3s", "--ramp", "0s", "--leave-out", "--clients", "1"];
    let next = run(&[&words[..], &short].concat());
    assert_eq!(next.code(), 0, "{next:?}");
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let domains = [format!("{label}-77"), format!("{label}-1-clone"), "rescue".to_owned()];
    assert_eq!(
        sorted(libvirtd.domains()),
        sorted(domains.into()),
        "a run on another pool removes them all the same"
    );
    let used = [format!("{last}.qcow2"), format!("{label}-shared-disk")];
    assert_eq!(sorted(libvirtd.volumes()), sorted(strange.into_iter().chain(used).collect()));
}

#[test]
fn an_interrupted_run_of_operations_keeps_its_pieces_removes_its_vms_and_goes_on() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let out = temp.path().join("run");
    let child = start(&libvirtd, &out, &[&SHORT_PIECES[..], &["--time", "6s"]].concat());
    wait_for("a piece", || (!records(&out).is_empty()).then_some(()));
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
    let before = fs::read_to_string(out.join("results.jsonl")).unwrap();
    let resumed = run(&[
        "study",
        "operations",
        "--resume",
        "--out",
        &out.display().to_string(),
        "--platform",
        &format!("libvirt+{}", libvirtd.connection()),
    ]);
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    let after = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert!(after.starts_with(&before) && records(&out).len() == 3, "{after}");
    assert!(libvirtd.is_clean());
}

#[test]
fn a_thousand_domains_are_managed() {
    let temp = folder();
    let out = temp.path().join("run").display().to_string();
    let words =
        ["study", "operations", "--platform", TEST_DRIVER, "--leave-out", "--vms", "1000", "--time", "3s"];
    let more = ["--ramp", "0s", "--rate", "6000/min", "--disk", "1MiB", "--out", &out, "--json"];
    let finished = run(&[&words[..], &more, &["--fail-on", "failures=1%"]].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let step = &summary["steps"][0];
    assert!(step["management_unavailable"][0].as_str().unwrap().contains("within virtbench"), "{step}");
    let (intended, missed) = (step["intended"].as_u64().unwrap(), step["not_issued"].as_u64().unwrap());
    assert!((200..400).contains(&intended) && missed == 0, "{step}");
    let operations = step["operations"].as_object().unwrap();
    assert!(operations.values().all(|one| one["failed"].as_object().unwrap().is_empty()), "{step}");
    // virtbench's own share of each operation.
    for (kind, one) in operations {
        let own = one["phases_ns"]["client"].as_f64().unwrap_or(0.0);
        assert!(own < 50e6, "{kind}: {one}");
    }
}

#[test]
fn what_a_study_of_operations_cannot_do_is_refused_before_anything_is_made() {
    let temp = folder();
    let out = temp.path().join("run");
    let mix = |text: &str| {
        let path = temp.path().join("mix.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let unknown = mix("power_up = 1\n");
    let refused = |words: &[&str], code: i32, said: &str| {
        let mut command = virtbench();
        command.args(["study", "operations", "--out"]).arg(&out).args(words);
        let finished = finish(command.spawn().unwrap());
        assert_eq!(finished.code(), code, "{words:?}: {finished:?}");
        assert!(finished.stderr.contains(said), "{words:?}: {finished:?}");
        assert!(!out.exists(), "{words:?}");
    };
    let on = ["--platform", TEST_DRIVER];
    refused(&["--platform", "qemu:///system"], 2, "give libvirt+URI");
    refused(&["--platform", "libvirt+test:///default?pools=x"], 2, "no setting pools");
    refused(&[&on[..], &["--mix", &unknown]].concat(), 2, "power_up is no operation");
    refused(&[&on[..], &["--mix", "/nowhere.toml"]].concat(), 2, "/nowhere.toml");
    refused(&[&on[..], &["--rate", "100"]].concat(), 2, "is no rate");
    refused(&on, 2, "migrate: there is nowhere to migrate to");
    let tenant = ["--tenant", "qemu:", "--tenant-workload", "fileserver"];
    refused(&[&on[..], &tenant].concat(), 2, "a tenant's disk has no file system");
    refused(
        &[&on[..], &["--destination", TEST_DRIVER]].concat(),
        2,
        "it is the hypervisor that VMs are to leave",
    );
    let nobody = format!("libvirt+qemu:///system?socket={}", temp.path().join("nobody").display());
    refused(&["--platform", &nobody], 6, "cannot be reached");
    let half = mix("power_on = 2\npower_off = 1\n");
    refused(&[&on[..], &["--mix", &half]].concat(), 2, "same share");
}

/// A mix of clones that are removed again.
fn of_clones(folder: &Path) -> String {
    let mix = folder.join("clones.toml");
    fs::write(&mix, "clone = 1\nremove = 1\n").unwrap();
    mix.display().to_string()
}

#[test]
fn ways_to_clone_take_turns_on_one_pool_and_are_compared() {
    // The file system, and the loop device beneath it, go with the server's namespace.
    let xfs = "truncate -s 400M xfs.img\nmkfs.xfs -q -m reflink=1 xfs.img\nmount -o loop xfs.img pool";
    let (libvirtd, temp) = (Libvirtd::with(xfs), folder());
    let (out, mix) = (temp.path().join("run"), of_clones(temp.path()));
    // What an array would be told is told to the file system here: no byte is copied.
    let array = format!(
        "nsenter --mount --target {} cp --reflink=always -- \"$SOURCE_PATH\" \"$TARGET_PATH\"",
        libvirtd.server()
    );
    let words = ["--vms", "3", "--time", "10s", "--piece", "5s", "--ramp", "0s", "--clients", "1", "--json"];
    let ways = ["--clone", "full,linked,reflink,array", "--array-command", &array, "--mix", &mix];
    let finished = study(&libvirtd, &out, &[&words[..], &ways].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let clones = summary["clones"].as_array().unwrap();
    let names: Vec<&str> = clones.iter().map(|one| one["way"].as_str().unwrap()).collect();
    assert_eq!(names, ["full", "linked", "reflink", "array"], "{summary}");
    for one in clones {
        assert!(one["clone"]["done"].as_u64().unwrap() > 0, "{one}");
        assert_eq!(one["clone"]["failed"].as_object().unwrap().len(), 0, "{one}");
        let is_first = one["way"] == "full";
        assert_eq!(one["ratio"]["value"].as_f64().is_none_or(|ratio| ratio <= 0.0), is_first, "{one}");
    }
    // Only then is it the storage that clones, and the hypervisor that is told.
    let array = &clones[3]["clone"]["phases_ns"];
    assert!(array["running"].as_f64().unwrap() > 0.0 && array["done"].as_f64().unwrap() > 0.0, "{array}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("Clones by the way their disks are made")
            && page.contains("full, linked, reflink, array")
    );
    let left = libvirtd.virsh(&["vol-list", "default"]);
    assert!(!String::from_utf8_lossy(&left.stdout).contains("virtbench"), "{left:?}");
    assert!(libvirtd.domains().is_empty(), "{:?}", libvirtd.domains());
}

#[test]
fn what_cannot_be_cloned_in_a_way_is_said_before_the_run() {
    let (libvirtd, temp) = (Libvirtd::with("mount -t tmpfs none pool"), folder());
    let (out, mix) = (temp.path().join("run"), of_clones(temp.path()));
    let refused = |words: &[&str], code: i32, said: &str| {
        let finished = study(&libvirtd, &out, words);
        assert_eq!(finished.code(), code, "{words:?}: {finished:?}");
        assert!(finished.stderr.contains(said), "{words:?}: {finished:?}");
        assert!(!out.exists(), "{words:?}");
    };
    refused(&["--mix", &mix, "--clone", "full,reflink"], 2, "cannot share blocks between two files");
    refused(&["--clone", "array", "--array-command", "true"], 2, "create_snapshot: its disks are raw");
    refused(&["--mix", &mix, "--clone", "array"], 2, "belong together");
    refused(&["--mix", &mix, "--clone", "full,full"], 2, "each way once");
    // A command that fails is each clone's failure, with its words; one that does nothing leaves no volume to be found.
    let words = [
        "--vms",
        "2",
        "--time",
        "2s",
        "--ramp",
        "0s",
        "--clients",
        "1",
        "--mix",
        &mix,
        "--clone",
        "full,array",
    ];
    let failing = ["--array-command", "echo no such array >&2; exit 3"];
    let finished = study(&libvirtd, &out, &[&words[..], &failing].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    let words_of = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert!(words_of.contains("ended with exit code 3: no such array"), "{words_of}");
    let left = libvirtd.virsh(&["vol-list", "default"]);
    assert!(!String::from_utf8_lossy(&left.stdout).contains("virtbench"), "{left:?}");
}

#[test]
fn a_pool_that_fills_up_is_a_failure_of_its_clones_alone() {
    let (libvirtd, temp) = (Libvirtd::with("mount -t tmpfs -o size=176M none pool"), folder());
    let (out, mix) = (temp.path().join("run"), temp.path().join("mix.toml"));
    fs::write(&mix, "clone = 4\nremove = 4\n").unwrap();
    let mix = mix.display().to_string();
    // One or two of these fit beside what the guests boot.
    let words = ["--vms", "4", "--time", "8s", "--ramp", "0s", "--clients", "1", "--disk", "32MiB", "--json"];
    let platform = format!("libvirt+{}", libvirtd.connection());
    let out_text = out.display().to_string();
    let first = ["study", "operations", "--platform", &platform, "--accelerator", "tcg", "--out", &out_text];
    let finished = run(&[&first[..], &words[..], &["--mix", &mix]].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let clone = &summary["steps"][0]["operations"]["clone"];
    assert!(clone["failed"]["no_room"].as_u64().unwrap_or_default() > 0, "{summary}");
    assert!(clone["done"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(clone["failed"].as_object().unwrap().len(), 1, "{summary}");
    let left = libvirtd.virsh(&["vol-list", "default"]);
    assert!(!String::from_utf8_lossy(&left.stdout).contains("virtbench"), "{left:?}");
}

#[test]
fn latency_is_fitted_against_the_number_of_real_guests() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let (out, mix) = (temp.path().join("run"), temp.path().join("mix.toml"));
    fs::write(&mix, "power_on = 1\npower_off = 1\n").unwrap();
    let words =
        ["--vms", "2,3,4", "--time", "3s", "--piece", "3s", "--ramp", "0s", "--clients", "2", "--json"];
    let finished = study(&libvirtd, &out, &[&words[..], &["--mix", &mix.display().to_string()]].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let vms: Vec<u64> =
        summary["steps"].as_array().unwrap().iter().map(|step| step["vms"].as_u64().unwrap()).collect();
    assert_eq!(vms, [2, 3, 4], "{summary}");
    for kind in ["power_on", "power_off"] {
        let found = &summary["density"][kind];
        assert!(found["factor"].as_f64().unwrap() > 0.0 && found["exponent"].as_f64().is_some(), "{summary}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Growth with the number of VMs") && page.contains("Over the number of VMs"));
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
}

#[test]
fn guests_move_between_two_hypervisors_that_share_storage() {
    let ((one, two, to), temp) = (Libvirtd::two(), folder());
    let (out, mix) = (temp.path().join("run"), temp.path().join("mix.toml"));
    fs::write(&mix, "power_on = 1\npower_off = 1\nmigrate = 3\n").unwrap();
    let mix = mix.display().to_string();
    let what = ["--mix", &mix, "--destination", &to, "--json"];
    // A move takes seconds on a busy host, and there have to be two. One that hangs is to be told with its reason. VMs of the second density
    // have the names of those of the first, which the other hypervisor has removed.
    let times = ["--vms", "3,2", "--clients", "2", "--time", "20s", "--ramp", "0s", "--limit", "50s"];
    let finished = study(&one, &out, &[&what[..], &times].concat());
    assert_eq!(finished.code(), 0, "{finished:?}");
    let migrate = &finished.json()["steps"][0]["operations"]["migrate"];
    assert!(migrate["done"].as_u64().unwrap() >= 2, "{migrate}");
    let record = || fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert_eq!(migrate["failed"].as_object().unwrap().len(), 0, "{}", record());
    // Both hypervisors tell of it before the answer comes: the destination has a process first, then the guest runs in that.
    let job = |figure: &str| migrate["job"][figure].as_f64().unwrap_or_default();
    assert!(job("elapsed_ns") > 0.0 && job("downtime_ns") > 0.0 && job("moved_bytes") > 1e6, "{migrate}");
    assert!(job("downtime_ns") <= job("elapsed_ns"), "{migrate}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("What the platform says of its jobs"));
    let phases = &migrate["phases_ns"];
    assert!(
        ["accepted", "running", "done"].iter().all(|phase| phases[phase].as_f64().unwrap() > 1e5),
        "{phases}"
    );
    assert!(one.is_clean() && two.domains().is_empty(), "{:?} {:?}", one.domains(), two.domains());
}

#[test]
fn tenants_are_measured_with_and_without_operations() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let out = temp.path().join("run");
    let tenant = format!("a={}", libvirtd.environment(""));
    let mix = temp.path().join("mix.toml");
    fs::write(&mix, "reconfigure = 1\n").unwrap();
    let more = ["--time", "8s", "--json", "--tenant-size", "8MiB", "--tenant", &tenant];
    let workload = "load:size=16k,read=100,outstanding=2";
    let open =
        ["--vms", "12", "--piece", "2s", "--ramp", "0s", "--rate", "120/min", "--mix", mix.to_str().unwrap()];
    let more = [&open[..], &more, &["--tenant-workload", workload]].concat();
    let finished = study(&libvirtd, &out, &more);
    assert_eq!(finished.code(), 0, "{finished:?}");
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
    let summary = finished.json();
    let iops = summary["tenants"][0]["iops"]["value"].as_f64().unwrap();
    assert!(iops > 0.0 && summary["tenants"][0]["per_minute"] == 120.0, "{summary}");
    let records = records(&out);
    let rates: Vec<f64> = records.iter().map(|one| one["per_minute"].as_f64().unwrap()).collect();
    assert_eq!(rates, [0.0, 120.0, 0.0, 120.0]);
    assert!(records.iter().all(|one| one["tenants"][0]["iops"].as_f64().unwrap() > 0.0), "{records:?}");
    assert!(
        records.iter().step_by(2).all(|one| one["intended"] == 0),
        "no operation while tenants are alone"
    );
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("What it costs the tenants") && page.contains(workload));
}

#[test]
fn operations_that_do_not_end_are_given_up_in_time_and_the_run_goes_on() {
    let (libvirtd, temp) = (Libvirtd::start(), folder());
    let out = temp.path().join("run");
    let words = ["--vms", "4", "--time", "8s", "--ramp", "0s", "--leave-out", "--rate", "240/min", "--json"];
    let mut child = start(&libvirtd, &out, &[&words[..], &["--limit", "8s"]].concat());
    let log = out.join("operations");
    wait_for("operations", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before the first operation");
        log.exists().then_some(())
    });
    let server = libvirtd.server();
    signal_pid(server, "STOP");
    std::thread::sleep(std::time::Duration::from_secs(10));
    signal_pid(server, "CONT");
    let finished = finish(child);
    // While its VMs waited, more than a tenth of what was due was not issued: that is no result.
    assert_eq!(finished.code(), 10, "{finished:?}");
    assert!(finished.stderr.contains("pieces are no result"), "{finished:?}");
    let summary = &records(&out)[0];
    assert_eq!(summary["status"], "incomplete", "{summary}");
    let operations = summary["partly"]["operations"].as_object().unwrap();
    let late: u64 = operations.values().filter_map(|one| one["failed"]["timed_out"].as_u64()).sum();
    let done: u64 = operations.values().map(|one| one["done"].as_u64().unwrap()).sum();
    assert!(late > 0 && done > 0, "{summary}");
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
}
