//! `virtbench study tiles --environment ssh://...` and `libvirt+...`: members that run on a machine or a hypervisor of the user's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::bridge::{BRIDGE, Bridge};
use crate::support::libvirtd::Libvirtd;
use crate::support::run_folder::{loops_in, records};
use crate::support::sshd::Sshd;
use crate::support::{Finished, finish, folder, virtbench, wait_for};
use crate::tiles_joined::{ASK, tile, write};

/// Where members run that is not this host.
trait Elsewhere {
    /// Its name in results.
    const NAME: &str;
    /// How many tiles are tried.
    const TILES: u32;

    fn start(folder: &Path) -> Self;
    fn environment(&self) -> String;
    /// virtbench where it can be reached.
    fn within(&self) -> Command;
    /// What the members that run there now have.
    fn check_running(&self);
    /// What a killed run leaves, once nothing of it runs any more.
    fn check_after_kill(&self);
    /// Fails unless it is as it was at first.
    fn check_clean(&self);
    fn log(&self, folder: &Path) -> PathBuf;

    fn study(&self, folder: &Path, script: &str, tiles: u32) -> Command {
        let (file, out) = (write(folder, "tile", &tile(script)), folder.join("run"));
        let mut command = self.within();
        command.args(["study", "tiles", "--time", "2s", "--ramp", "0s", "--repetitions", "1", "--json"]);
        command.args(["--accelerator", "tcg", "--tiles", &tiles.to_string()]);
        command.args(["--environment", &self.environment(), "--tile"]).arg(file).arg("--out").arg(out);
        command
    }

    /// A run that is refused.
    fn refused(&self, place: &str, network: &str) -> Finished {
        let temp = folder();
        let mut command = self.within();
        command.args(["study", "tiles", "--tiles", "1", "--accelerator", "tcg", "--environment", place]);
        command.args(["--network", network, "--out"]).arg(temp.path().join("run"));
        finish(command.spawn().unwrap())
    }
}

/// A front end reads what lies in a store's data: it has found the store by its name, and the store a copy of its data. Where there are
/// several tiles, their members have the same ports. A run that was killed comes first; nothing of it is left in the end.
fn killed_run_and_whole_one<E: Elsewhere>(said: &[&str]) {
    let temp = folder();
    let place = E::start(temp.path());
    let mark = temp.path().join("client");
    let script = format!("echo > {}; sleep 600", mark.display());
    let mut child = place.study(temp.path(), &script, 1).spawn().unwrap();
    wait_for("a client", || mark.exists().then_some(()));
    place.check_running();
    child.kill().unwrap();
    child.wait().unwrap();
    place.check_after_kill();
    fs::remove_dir_all(temp.path().join("run")).unwrap();

    let finished = finish(place.study(temp.path(), ASK, E::TILES).spawn().unwrap());
    assert_eq!(finished.code(), 0, "{finished:?} {:?}", fs::read_to_string(place.log(temp.path())));
    place.check_clean();
    let summary = finished.json();
    let tiles = &summary["tiles"];
    assert_eq!((&tiles["configuration"], &tiles["fits"]), (&E::NAME.into(), &E::TILES.into()), "{summary}");
    let score = tiles["steps"][0]["score"]["value"].as_f64().unwrap();
    assert!((score - f64::from(E::TILES)).abs() < 1e-9, "each front end reads 7, its reference: {summary}");
    let out = temp.path().join("run");
    for member in records(&out)[0]["members"].as_array().unwrap() {
        assert!(member["ready_ns"].as_u64().is_some_and(|ready| ready > 0), "{member}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(&format!("addresses by DHCP on bridge {BRIDGE}")));
    said.iter().for_each(|words| assert!(page.contains(words), "{words}"));
}

/// A machine with a bridge.
struct Metal {
    sshd: Sshd,
    bridge: Bridge,
}

impl Metal {
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

impl Elsewhere for Metal {
    const NAME: &str = "ssh";
    const TILES: u32 = 2;

    fn start(folder: &Path) -> Self {
        let bridge = Bridge::start(folder);
        Self { sshd: Sshd::within(&bridge.reach, "", ""), bridge }
    }

    fn environment(&self) -> String {
        format!("{}&bridge={BRIDGE}", self.sshd.address("srv"))
    }

    fn within(&self) -> Command {
        let mut command = virtbench();
        self.bridge.reach.run_there(&mut command);
        command
    }

    fn check_running(&self) {
        assert_eq!(loops_in(&self.sshd.path("srv")).len(), 4, "three roots, and the data of the store");
    }

    fn check_after_kill(&self) {
        wait_for("the machine to be as it was", || (self.left() == nothing()).then_some(()));
    }

    fn check_clean(&self) {
        assert_eq!(self.left(), nothing());
    }

    fn log(&self, folder: &Path) -> PathBuf {
        folder.join("udhcpd.log")
    }
}

impl Elsewhere for Libvirtd {
    const NAME: &str = "libvirt";
    const TILES: u32 = 1;

    fn start(_: &Path) -> Self {
        Self::with_bridge()
    }

    fn environment(&self) -> String {
        format!("libvirt+{}&bridge={BRIDGE}", self.connection())
    }

    fn within(&self) -> Command {
        Self::within(self)
    }

    fn check_running(&self) {
        assert_eq!(self.guests().len(), 3);
    }

    fn check_after_kill(&self) {
        // libvirt ends domains with their connection; volumes are removed by the next run.
        wait_for("the domains to end", || self.guests().is_empty().then_some(()));
        let left = self.volumes();
        assert!(left.iter().any(|name| name.ends_with("-initramfs")), "{left:?}");
    }

    fn check_clean(&self) {
        assert!(self.is_clean(), "{:?} {:?}", self.domains(), self.volumes());
    }

    fn log(&self, _: &Path) -> PathBuf {
        self.path("run/udhcpd.log")
    }
}

#[test]
fn members_run_natively_on_a_machine_of_the_users_and_nothing_of_a_killed_run_stays_there() {
    killed_run_and_whole_one::<Metal>(&["members natively there", "Members ran natively on ssh://metal"]);
}

#[test]
fn members_run_on_a_hypervisor_of_the_users_and_nothing_of_a_killed_run_stays_there() {
    killed_run_and_whole_one::<Libvirtd>(&["TCG emulates"]);
}

#[test]
fn a_machine_that_cannot_run_members_is_said_before_anything_is_built() {
    let temp = folder();
    let metal = Metal::start(temp.path());
    let address = metal.sshd.address("srv");
    let closed = metal.sshd.address_with("srv", "key", 1);
    for (place, network, code, said) in [
        (address.clone(), "user", 2, "Add ?bridge=NAME"),
        (metal.environment(), "tap", 2, "--network: on another machine members are on"),
        (format!("{address}&bridge=br7"), "user", 4, "it has no bridge br7; bridges there: virtbench-test."),
        (format!("{closed}&bridge=br0"), "user", 4, "cannot be reached"),
    ] {
        let finished = metal.refused(&place, network);
        assert_eq!(finished.code(), code, "{place}: {finished:?}");
        assert!(finished.stderr.contains(said), "{place}: {finished:?}");
    }
    metal.check_clean();
}

#[test]
fn a_hypervisor_that_cannot_run_members_is_said_before_anything_is_built() {
    let libvirtd = Libvirtd::start();
    let at = |more: &str| format!("libvirt+{}{more}", libvirtd.connection());
    for (place, network, code, said) in [
        (at("&memory=1GiB"), "user", 2, "memory=1GiB: pool, and network or bridge, can be set"),
        (at("&bridge=a&network=b"), "user", 2, "network and bridge: name one of both"),
        (at(""), "tap", 2, "--network: on another machine members are on network=NAME or bridge=NAME"),
        (at("&pool=none"), "user", 4, "no storage pool none"),
        ("libvirt+qemu:///system?socket=/nonexistent".to_owned(), "user", 4, "cannot be reached"),
        (
            "libvirtd".to_owned(),
            "user",
            2,
            "native, vm, existing, libvirt+URI?pool=NAME, or ssh://HOST/FOLDER?bridge=NAME",
        ),
    ] {
        let finished = libvirtd.refused(&place, network);
        assert_eq!(finished.code(), code, "{place}: {finished:?}");
        assert!(finished.stderr.contains(said), "{place}: {finished:?}");
    }
}
