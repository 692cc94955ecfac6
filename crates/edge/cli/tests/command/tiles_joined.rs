//! Members of a tile that keep their data in another member.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::application_parts::{BUILD_LIMIT, RELAY};
use crate::support::run_folder::{loops_in, records, scratch};
use crate::support::{build_appliances, finish, finish_within, folder, is_alive, virtbench, wait_for};

/// Two front ends with the same port, which pass on what they are asked to a store. The first has put the number 7 into it.
pub fn tile(script: &str) -> String {
    let front = |name: &str| {
        format!(
            "[[member]]\nname = '{name}'\nappliance = './relay.toml'\nuses = {{ cache = 'store' }}\nreference = 7\n\
             levels = {{ least = 6 }}\nload = {{ kind = 'client', per_second = 'rate ([0-9.]+)', \
             command = ['sh', '-c', '''{script}'''] }}\n"
        )
    };
    format!(
        "name = 'joined'\n{}{}[[member]]\nname = 'store'\nappliance = 'redis'\nprepare_by = 'front'\n\
         prepare = [['/bin/busybox', 'sh', '-c', 'printf \"set kept 7\\r\\n\" | /bin/busybox nc cache 6379']]\n\
         load = {{ kind = 'idle' }}\n",
        front("front"),
        front("second")
    )
}

/// Reads it through a front end.
pub const ASK: &str = "sleep {seconds}; echo rate $(redis-cli -h {host} -p {port} get kept)";

/// Writes such a tile as `name.toml`, and builds what its members are made of.
pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    build_appliances(&["redis"]);
    let recipe = folder.join("relay.toml");
    fs::write(&recipe, RELAY).unwrap();
    let built = virtbench().args(["appliance", "build"]).arg(&recipe).spawn().unwrap();
    let built = finish_within(built, BUILD_LIMIT);
    assert_eq!(built.code(), 0, "{built:?}");
    let file = folder.join(format!("{name}.toml"));
    fs::write(&file, text).unwrap();
    file
}

fn begin(folder: &Path, name: &str, text: &str, more: &[&str]) -> (PathBuf, Child) {
    let (file, out) = (write(folder, name, text), folder.join(name));
    let mut command = virtbench();
    command.args(["study", "tiles", "--time", "2s", "--ramp", "0s", "--repetitions", "1", "--json"]);
    (out.clone(), command.arg("--tile").arg(&file).arg("--out").arg(&out).args(more).spawn().unwrap())
}

#[test]
fn members_keep_their_data_in_another_one_natively_and_in_guests() {
    let temp = folder();
    for (name, more) in [
        ("native", &["--environment", "native", "--tiles", "2"][..]),
        ("guests", &["--tiles", "1", "--accelerator", "tcg"]),
        ("guests of User Mode Linux", &["--tiles", "1", "--accelerator", "uml"]),
        ("guests on taps", &["--tiles", "1", "--accelerator", "uml", "--network", "tap"]),
    ] {
        let (out, child) = begin(temp.path(), name, &tile(ASK), more);
        let finished = finish(child);
        assert_eq!(finished.code(), 0, "{name}: {finished:?}");
        let summary = finished.json();
        let step = &summary["tiles"]["steps"][0];
        let score = step["score"]["value"].as_f64().unwrap_or_else(|| panic!("{name}: {finished:?}"));
        let tiles = step["tiles"].as_f64().unwrap();
        assert!((score - tiles).abs() < 1e-9, "each member reads 7, its reference: {summary}");
        assert_eq!(records(&out).len(), 1);
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert_eq!(page.contains("reached by the network tap"), name == "guests on taps");
        assert_eq!((loops_in(temp.path()), scratch(&out)), Default::default());
    }
}

#[test]
fn a_killed_study_of_joined_members_leaves_no_process_no_disk_and_no_cable() {
    let temp = folder();
    let mark = temp.path().join("client");
    let script = format!("echo $$ > {}; sleep 600", mark.display());
    let more = ["--environment", "native", "--tiles", "1"];
    let (_, mut child) = begin(temp.path(), "run", &tile(&script), &more);
    let pid = wait_for("the client", || fs::read_to_string(&mark).ok()?.trim().parse::<u32>().ok());
    let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let users = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|entry| fs::read_link(entry.path().join("ns/net")).is_ok_and(|own| own == namespace))
            .count()
    };
    wait_for("the client, the members and their networks to be gone", || {
        (!is_alive(pid) && loops_in(temp.path()).is_empty() && users() == 0).then_some(())
    });
    assert!(!fs::read_to_string("/proc/net/dev").unwrap().contains("cable"), "the host's network has none");
}
