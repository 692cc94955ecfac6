//! `virtbench study operations` on a fake OpenStack.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::sshd::Sshd;
use crate::support::{begin_operations, finish, folder, run, texts, virtbench, wait_for};
use serde_json::{Value, json};
use virtbench_openstack::{Address, Limit, LocalOpenStack, OpenStack};

fn address(local: &LocalOpenStack) -> String {
    format!("{}&flavor=tiny&other-flavor=small&image=cirros", local.argument())
}

/// With a network, so that servers can have more ports.
fn with_network(local: &LocalOpenStack) -> String {
    format!("{}&network=private", address(local))
}

/// Names of servers, images and volumes.
fn names(local: &LocalOpenStack) -> Vec<String> {
    let limit = || Limit::at(Instant::now() + Duration::from_secs(60));
    let cloud = OpenStack::connect(&Address::parse(&local.argument()).unwrap(), limit()).unwrap();
    let (mut names, mut images) = (Vec::new(), Vec::new());
    cloud.each_server(limit(), |server| names.push(server.name)).unwrap();
    cloud.each_image(limit(), |image| images.push(image.name)).unwrap();
    cloud.each_volume(limit(), |volume| images.extend(volume.name)).unwrap();
    names.append(&mut images);
    names
}

#[test]
fn operations_of_openstack_are_measured_and_what_a_killed_run_has_left_is_swept() {
    let (local, temp) = (LocalOpenStack::start(0.0).unwrap(), folder());
    local.control(&json!({"fill": 2})).unwrap();
    let platform = with_network(&local);
    let words = ["--vms", "4", "--time", "10m", "--rate", "120/min"];
    let mut killed =
        begin_operations(&platform, &temp.path().join("killed"), &[&words[..], &["--leave-out"]].concat());
    let log = temp.path().join("killed/operations");
    wait_for("operations", || log.exists().then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(&local).len() > 4, "a kill leaves its servers, and the image that says that it lived");
    let out = temp.path().join("run");
    let mix = temp.path().join("mix.toml");
    let paper = "power_on = 8\npower_off = 8\nclone = 2\nmigrate = 8\nremove = 2\ncreate_snapshot = 1\ndelete_snapshot = 1\nreconfigure = 4";
    let besides = "attach_disk = 1\ndetach_disk = 1\nattach_port = 1\ndetach_port = 1\ncold_migrate = 2\nresize = 2\nrebuild = 2\nshelve = 2\nunshelve = 2\nreset = 2\nlist = 1";
    fs::write(&mix, format!("{paper}\n{besides}\n")).unwrap();
    let mix = mix.display().to_string();
    let words = ["--vms", "6", "--time", "8s", "--piece", "4s", "--clients", "4", "--json", "--mix", &mix];
    let finished = finish(begin_operations(&platform, &out, &words));
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let operations = summary["steps"][0]["operations"].as_object().unwrap();
    let failed = |one: &Value| one["failed"].as_object().unwrap().len();
    assert!(operations.values().all(|one| failed(one) == 0), "{summary}");
    let job = |name: &str| operations[name]["job"]["uncertainty_ns"].as_f64();
    assert!(job("power_on").is_some() && job("clone").is_some(), "{summary}");
    let mut left = names(&local);
    left.sort();
    assert_eq!(left, ["vm0", "vm1"], "only strangers are left");
    let told = texts(&out);
    assert!(told.contains("OpenStack, Nova API 2.90"), "{finished:?}");
    for secret in ["test-only-secret", "not-to-be-told", "token-"] {
        assert!(!told.contains(secret) && !finished.stderr.contains(secret), "{secret} is in the run folder");
    }
}

#[test]
fn a_server_of_openstack_is_a_machine_that_is_made_reached_and_removed() {
    let (local, sshd, temp) = (LocalOpenStack::start(0.0).unwrap(), Sshd::start(), folder());
    // Its fixed address leads nowhere from here.
    local.control(&json!({"floating": "127.0.0.1"})).unwrap();
    let (work, login) = (sshd.path("guest").display().to_string(), sshd.address("guest"));
    let config = login.split_once("?config=").unwrap().1;
    let port = sshd.port();
    let vm = format!(
        "vm={}&network=private&ssh-port={port}&ssh-folder={work}&ssh-config={config}",
        address(&local)
    );
    let grid = temp.path().join("grid.toml");
    fs::write(&grid, "blocks = [\"4k\"]\nreads = [100]\nrandoms = [100]\n").unwrap();
    let (grid, out) = (grid.display().to_string(), temp.path().join("run").display().to_string());
    let words = |time, out| {
        let study =
            ["study", "compare", "--grid", &grid, "--repetitions", "1", "--size", "4MiB", "--ramp", "0s"];
        let rest = ["--time", time, "--environment", "native:", "--environment", &vm, "--out", out, "--json"];
        [study.as_slice(), &rest].concat().into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let compared = words("200ms", &out);
    let compared = run(&compared.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(compared.code(), 0, "{compared:?}");
    let told = texts(Path::new(&out));
    assert!(told.contains("flavor=tiny") && told.contains("the image cirros"), "{compared:?}");
    assert!(!told.contains("test-only-secret"), "a password is in the run folder");
    assert_eq!(names(&local).len(), 0, "the server goes with the run");
    assert!(sshd.is_clean("guest"), "and nothing stays in its guest");
    let killed = words("10m", &temp.path().join("killed").display().to_string());
    let mut killed = virtbench().args(&killed).spawn().unwrap();
    wait_for("a server", || (names(&local).len() > 1).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(&local).len() > 1, "a kill leaves what it made");
    let swept = run(&["sweep", "--platform", &local.argument(), "--yes"]);
    assert_eq!((swept.code(), names(&local).len()), (0, 0), "{swept:?}");
}

#[test]
fn what_cannot_be_a_platform_of_openstack_is_said_before_anything_is_done() {
    let refused = |platform: &str, more: &[&str], word: &str| {
        let words = [&["study", "operations", "--platform", platform][..], more].concat();
        let finished = run(&words);
        assert!(finished.code() == 2 && finished.stderr.contains(word), "{finished:?}");
        assert!(!finished.stderr.contains("hunter2"), "{finished:?}");
    };
    refused("openstack:me:hunter2@h", &[], "as clouds.yaml names it");
    refused("openstack:c?flavour=x", &[], "no option");
    refused("openstack:c", &["--destination", "libvirt+qemu:///system"], "--destination");
    refused("openstack:c", &["--clone", "full,linked"], "--clone full");
}
