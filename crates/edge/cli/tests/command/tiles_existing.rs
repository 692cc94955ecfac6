//! `virtbench study tiles --environment existing`: members that somebody else has started.

use std::fs;
use std::path::Path;
use std::process::Child;

use crate::operations_proxmox::{names, with_template};
use crate::support::run_folder::records;
use crate::support::{Finished, finish, folder, virtbench, wait_for};
use virtbench_users::{LocalKind, LocalService, free_port};

/// A tile of a store at these addresses, and of one that stands by nowhere.
fn tile(addresses: &[String]) -> String {
    format!(
        "name = 'test'\n[[member]]\nname = 'store'\nappliance = 'redis'\nat = {addresses:?}\nreference = 40\n\
         load = {{ kind = 'key-value', users = 2, rate = 40 }}\nlevels = {{ least = 20 }}\n\
         [[member]]\nname = 'standby'\nappliance = 'nginx'\nload = {{ kind = 'idle' }}\n"
    )
}

fn study(folder: &Path, name: &str, text: &str, more: &[&str]) -> Finished {
    finish(begin(folder, name, text, more))
}

fn begin(folder: &Path, name: &str, text: &str, more: &[&str]) -> Child {
    let file = folder.join(format!("{name}.toml"));
    fs::write(&file, text).unwrap();
    let [file, out] = [file, folder.join(name)].map(|path| path.display().to_string());
    let words = ["study", "tiles", "--time", "2s", "--ramp", "1s", "--repetitions", "1", "--json"];
    virtbench().args([&words[..], &["--tile", &file, "--out", &out], more].concat()).spawn().unwrap()
}

#[test]
fn members_that_are_there_already_are_loaded_where_they_are_and_left_alone() {
    let stores = [(); 2].map(|()| LocalService::start(LocalKind::Redis).unwrap());
    let addresses = stores.each_ref().map(LocalService::address);
    let temp = folder();
    let finished = study(temp.path(), "run", &tile(&addresses), &["--environment", "existing"]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let tiles = &summary["tiles"];
    // As many as there are addresses, and the search ends there.
    assert_eq!((&tiles["configuration"], &tiles["fits"]), (&"existing".into(), &2.into()), "{summary}");
    let score = tiles["steps"][1]["score"]["value"].as_f64().unwrap();
    assert!(score > 1.0 && score < 3.0, "{summary}");
    let out = temp.path().join("run");
    let records = records(&out);
    // A run in which a generator had no processor when it was due is tried once more.
    let counts = |record: &&serde_json::Value| record["void"].as_array().is_none_or(Vec::is_empty);
    let counted: Vec<_> = records.iter().filter(counts).collect();
    assert_eq!(counted.len(), 2, "{records:?}");
    for (number, member) in (1..).zip(counted[1]["members"].as_array().unwrap()) {
        assert_eq!((&member["tile"], &member["member"]), (&number.into(), &"store".into()));
        assert!(member["done"]["completed"].as_u64().is_some_and(|completed| completed > 0), "{member}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Members were there already") && page.contains("The generators' host"));
    assert!(!page.contains("no hypervisor is in these figures"));
}

#[test]
fn members_that_are_nowhere_are_said_before_anything_is_measured() {
    let store = LocalService::start(LocalKind::Redis).unwrap();
    let temp = folder();
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    let existing = &["--environment", "existing"][..];
    for (name, addresses, more, code, said) in [
        (
            "few",
            vec![store.address()],
            &["--environment", "existing", "--tiles", "2"][..],
            2,
            "member store: at: 1 of 2 addresses",
        ),
        ("none", vec![], existing, 2, "member store: at: 0 of 1 addresses"),
        ("started", vec![store.address()], &["--environment", "native"], 2, "add --environment existing"),
        ("wrong", vec!["127.0.0.1:x".into()], existing, 2, "member store: at: \"127.0.0.1:x\" is no address"),
        ("gone", vec![nobody], existing, 4, "store of tile 1: nobody answers at 127.0.0.1"),
    ] {
        let finished = study(temp.path(), name, &tile(&addresses), more);
        assert_eq!(finished.code(), code, "{name}: {finished:?}");
        assert!(finished.stderr.contains(said), "{name}: {finished:?}");
    }
}

#[test]
fn members_are_vms_of_a_template_that_are_made_for_each_tile_and_removed() {
    let (store, cluster) = (LocalService::start(LocalKind::Redis).unwrap(), with_template());
    let port = store.address().rsplit_once(':').unwrap().1.to_owned();
    let at = |port: &str| vec![format!("{}&template=golden&service-port={port}", cluster.argument())];
    let temp = folder();
    let more = ["--environment", "existing", "--tiles", "2"];
    let mut child = begin(temp.path(), "run", &tile(&at(&port)), &more);
    let most = wait_for("a VM for each tile", || {
        // Beside each is what says that its run lives.
        let vms = names(&cluster).iter().filter(|name| name.ends_with("-1")).count();
        (vms == 2 || child.try_wait().unwrap().is_some()).then_some(vms)
    });
    let finished = finish(child);
    assert_eq!((finished.code(), most), (0, 2), "{finished:?}");
    let records = records(&temp.path().join("run"));
    let loaded = records.last().unwrap()["members"].as_array().unwrap().len();
    assert_eq!(loaded, 2, "a store of each tile: {records:?}");
    assert_eq!(names(&cluster), ["golden"], "the VMs go with the run");
    let none = at("x");
    let finished = study(temp.path(), "wrong", &tile(&none), &more);
    assert!(finished.code() == 2 && finished.stderr.contains("no such port"), "{finished:?}");
}
