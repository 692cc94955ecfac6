//! `virtbench study tiles --environment ssh://...`: members that run natively on a machine of the user's.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::bridge::{BRIDGE, Bridge};
use crate::support::run_folder::{loops_in, records};
use crate::support::sshd::Sshd;
use crate::support::{finish, folder, virtbench, wait_for};
use crate::tiles_joined::{ASK, tile, write};

/// A machine with a bridge.
struct Metal {
    sshd: Sshd,
    bridge: Bridge,
}

impl Metal {
    fn start(folder: &Path) -> Self {
        let bridge = Bridge::start(folder);
        Self { sshd: Sshd::within(&bridge.reach, "", ""), bridge }
    }

    fn study(&self, folder: &Path, script: &str, tiles: &str) -> Command {
        let (file, out) = (write(folder, "tile", &tile(script)), folder.join("run"));
        let place = format!("{}&bridge={BRIDGE}", self.sshd.address("srv"));
        let mut command = virtbench();
        command.args([
            "study",
            "tiles",
            "--tiles",
            tiles,
            "--time",
            "2s",
            "--ramp-up",
            "0s",
            "--repetitions",
            "1",
        ]);
        command.args(["--json", "--environment", &place]).arg("--tile").arg(file).arg("--out").arg(out);
        self.bridge.reach.run_there(&mut command);
        command
    }

    /// What is left there: files, loop devices, ports of the bridge.
    fn left(&self) -> (bool, Vec<String>, String) {
        let mut links = Command::new("ip");
        links.args(["-o", "link", "show", "type", "veth"]);
        self.bridge.reach.run_there(&mut links);
        let links = String::from_utf8(links.output().unwrap().stdout).unwrap();
        (self.sshd.is_clean("srv"), loops_in(&self.sshd.path("srv")), links)
    }
}

fn nothing() -> (bool, Vec<String>, String) {
    (true, Vec::new(), String::new())
}

/// A front end reads what lies in a store's data: it has found the store by its name, and the store a copy of its data. The members of
/// both tiles have the same ports.
#[test]
fn members_run_natively_on_a_machine_of_the_users_and_reach_each_other_there() {
    let temp = folder();
    let metal = Metal::start(temp.path());
    let finished = finish(metal.study(temp.path(), ASK, "2").spawn().unwrap());
    assert_eq!(finished.code(), 0, "{finished:?} {:?}", fs::read_to_string(temp.path().join("udhcpd.log")));
    assert_eq!(metal.left(), nothing());
    let summary = finished.json();
    let tiles = &summary["tiles"];
    assert_eq!((&tiles["configuration"], &tiles["fits"]), (&"ssh".into(), &2.into()), "{summary}");
    let score = tiles["steps"][0]["score"]["value"].as_f64().unwrap();
    assert!((score - 2.0).abs() < 1e-9, "each front end reads 7, its reference: {summary}");
    let out = temp.path().join("run");
    for member in records(&out)[0]["members"].as_array().unwrap() {
        assert!(member["ready_ns"].as_u64().is_some_and(|ready| ready > 0), "{member}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(&format!("members natively there, addresses by DHCP on bridge {BRIDGE}")));
    assert!(page.contains("Members ran natively on ssh://metal"), "whose processors are measured is said");
}

#[test]
fn nothing_of_a_killed_run_stays_on_the_machine() {
    let temp = folder();
    let metal = Metal::start(temp.path());
    let mark = temp.path().join("client");
    let script = format!("echo > {}; sleep 600", mark.display());
    let mut child = metal.study(temp.path(), &script, "1").spawn().unwrap();
    wait_for("a client", || mark.exists().then_some(()));
    assert_eq!(loops_in(&metal.sshd.path("srv")).len(), 4, "three roots, and the data of the store");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the machine to be as it was", || (metal.left() == nothing()).then_some(()));
}

#[test]
fn a_machine_that_cannot_run_members_is_said_before_anything_is_built() {
    let temp = folder();
    let metal = Metal::start(temp.path());
    let address = metal.sshd.address("srv");
    let closed = metal.sshd.address_with("srv", "key", 1);
    for (place, network, code, said) in [
        (address.clone(), "user", 2, "Add ?bridge=NAME"),
        (format!("{address}&bridge={BRIDGE}"), "tap", 2, "--network: on another machine members are on"),
        (format!("{address}&bridge=br7"), "user", 4, "it has no bridge br7; bridges there: virtbench-test."),
        (format!("{closed}&bridge=br0"), "user", 4, "cannot be reached"),
    ] {
        let out = temp.path().join("run").display().to_string();
        let mut command = virtbench();
        command.args([
            "study",
            "tiles",
            "--tiles",
            "1",
            "--out",
            &out,
            "--environment",
            &place,
            "--network",
            network,
        ]);
        metal.bridge.reach.run_there(&mut command);
        let finished = finish(command.spawn().unwrap());
        assert_eq!(finished.code(), code, "{place}: {finished:?}");
        assert!(finished.stderr.contains(said), "{place}: {finished:?}");
    }
    assert_eq!(metal.left(), nothing());
}
