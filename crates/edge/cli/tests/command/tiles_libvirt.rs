//! `virtbench study tiles --environment libvirt+...`: members that a hypervisor of the user's runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::bridge::BRIDGE;
use crate::support::libvirtd::Libvirtd;
use crate::support::run_folder::records;
use crate::support::{finish, folder, run, wait_for};
use crate::tiles_joined::{ASK, tile, write};

fn study(libvirtd: &Libvirtd, folder: &Path, script: &str) -> Command {
    let (file, out) = (write(folder, "tile", &tile(script)), folder.join("run"));
    let place = format!("libvirt+{}&bridge={BRIDGE}", libvirtd.connection());
    let mut command = libvirtd.within();
    command.args(["study", "tiles", "--tiles", "1", "--time", "2s", "--ramp-up", "0s", "--repetitions", "1"]);
    command.args(["--json", "--accelerator", "tcg", "--environment", &place]);
    command.arg("--tile").arg(file).arg("--out").arg(out);
    command
}

/// A front end reads what lies in a store's data: it has found the store by its name, and the store a copy of its data.
#[test]
fn members_run_on_a_hypervisor_of_the_users_and_reach_each_other_there() {
    let (libvirtd, temp) = (Libvirtd::with_bridge(), folder());
    let finished = finish(study(&libvirtd, temp.path(), ASK).spawn().unwrap());
    assert_eq!(finished.code(), 0, "{finished:?} {:?}", fs::read_to_string(libvirtd.path("run/udhcpd.log")));
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
    let summary = finished.json();
    let tiles = &summary["tiles"];
    assert_eq!((&tiles["configuration"], &tiles["fits"]), (&"libvirt".into(), &1.into()), "{summary}");
    let score = tiles["steps"][0]["score"]["value"].as_f64().unwrap();
    assert!((score - 1.0).abs() < 1e-9, "each front end reads 7, its reference: {summary}");
    let out = temp.path().join("run");
    for member in records(&out)[0]["members"].as_array().unwrap() {
        assert!(member["ready_ns"].as_u64().is_some_and(|ready| ready > 0), "{member}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("TCG emulates") && page.contains(&format!("addresses by DHCP on bridge {BRIDGE}")));
}

#[test]
fn nothing_of_a_killed_run_stays_on_the_hypervisor() {
    let (libvirtd, temp) = (Libvirtd::with_bridge(), folder());
    let mark = temp.path().join("client");
    let script = format!("echo > {}; sleep 600", mark.display());
    let mut child = study(&libvirtd, temp.path(), &script).spawn().unwrap();
    wait_for("a client", || mark.exists().then_some(()));
    assert_eq!(libvirtd.domains().len(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    // libvirt ends domains with their connection; volumes are removed by whoever comes next.
    wait_for("the domains to end", || libvirtd.domains().is_empty().then_some(()));
    let left = libvirtd.volumes();
    assert!(left.iter().any(|name| name.ends_with("-initramfs")), "{left:?}");
    fs::remove_dir_all(temp.path().join("run")).unwrap();
    let finished = finish(study(&libvirtd, temp.path(), ASK).spawn().unwrap());
    assert_eq!(finished.code(), 0, "{finished:?}");
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
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
        let temp = folder();
        let out = temp.path().join("run").display().to_string();
        let words = ["study", "tiles", "--tiles", "1", "--accelerator", "tcg", "--out", &out];
        let finished = run(&[&words[..], &["--environment", &place, "--network", network]].concat());
        assert_eq!(finished.code(), code, "{place}: {finished:?}");
        assert!(finished.stderr.contains(said), "{place}: {finished:?}");
    }
}
