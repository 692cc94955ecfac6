//! `virtbench study tiles` for real: a store under a client, a database under transactions, and a member that stands by.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::libvirtd::Libvirtd;
use crate::support::run_folder::{loops_in, records, scratch};
use crate::support::{Finished, build_appliances, finish, folder, is_alive, run, virtbench, wait_for};

/// A tile of a store under a shell's script, which prints a number after `rate`, and of one that stands by. The script is
/// started with the address of the store.
fn tile(script: &str, levels: &str) -> String {
    format!(
        "name = 'test'\n[[member]]\nname = 'store'\nappliance = 'redis'\nreference = 50\nlevels = {{ {levels} }}\n\
         load = {{ kind = 'client', per_second = 'rate ([0-9.]+)', response_ms = 'took ([0-9.]+)', command = ['sh', '-c', \
         '''{script}'''] }}\n[[member]]\nname = 'standby'\nappliance = 'nginx'\nload = {{ kind = 'idle' }}\n"
    )
}

/// What a script does that does well.
const WELL: &str = "redis-cli -h {host} -p {port} set a b && sleep {seconds} && echo rate 50 took 2";

fn begin(folder: &Path, name: &str, text: &str, more: &[&str]) -> (PathBuf, Child) {
    build_appliances(&["nginx", "postgresql", "redis"]);
    let (file, out) = (folder.join(format!("{name}.toml")), folder.join(name));
    fs::write(&file, text).unwrap();
    let mut command = virtbench();
    command.args(["study", "tiles", "--time", "2s", "--ramp", "0s", "--repetitions", "1"]);
    command.arg("--tile").arg(&file).arg("--out").arg(&out).args(more);
    (out, command.spawn().unwrap())
}

fn study(folder: &Path, name: &str, text: &str, more: &[&str]) -> (PathBuf, Finished) {
    let (out, child) = begin(folder, name, text, more);
    (out, finish(child))
}

/// What is left of a run: loop devices over files in here, and copies of the data.
fn left(folder: &Path, out: &Path) -> Vec<String> {
    [loops_in(folder), scratch(out)].concat()
}

#[test]
fn tiles_of_different_members_are_scored_natively_and_what_is_there_is_not_measured_again() {
    let temp = folder();
    let native = ["--environment", "native", "--tiles", "1,2", "--json"];
    let (out, finished) = study(temp.path(), "run", &tile(WELL, "response = '1s', least = 40"), &native);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let steps = summary["tiles"]["steps"].as_array().unwrap();
    // Each tile does what the reference does, whatever the host.
    for (number, step) in (1..).zip(steps) {
        let score = step["score"]["value"].as_f64().unwrap();
        assert!((score - f64::from(number)).abs() < 1e-9, "{summary}");
    }
    assert_eq!((&summary["tiles"]["fits"], &summary["covers"]), (&2.into(), &"applications only".into()));
    assert!(summary["energy_unavailable"].as_str().is_some_and(|why| why.contains("no energy source")));
    assert!(summary["host"][1]["busy_percent"].as_f64().is_some_and(|busy| busy > 0.0), "{summary}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Every member kept its service levels") && page.contains("applications only"));
    // The table of the run is one that can be scored like any other.
    let table = out.join("results.csv").display().to_string();
    let analysed = run(&["analyse", &table, "--json"]).json();
    assert_eq!(analysed["configurations"][0]["steps"][1]["score"], steps[1]["score"], "{analysed}");
    let before = fs::read_to_string(out.join("results.jsonl")).unwrap();
    let again = run(&["study", "tiles", "--resume", "--out", &out.display().to_string()]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read_to_string(out.join("results.jsonl")).unwrap(), before, "nothing was missing");
    assert_eq!(left(temp.path(), &out), Vec::<String>::new());
}

#[test]
fn tiles_are_predicted_from_each_member_by_itself_and_stand_beside_what_was_measured() {
    let temp = folder();
    let more = ["--environment", "native", "--tiles", "1,2", "--predict", "--json"];
    let text = tile(WELL, "least = 40");
    let (out, finished) = study(temp.path(), "run", &text, &more);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let alone: Vec<serde_json::Value> = records(&out).iter().map(|record| record["alone"].clone()).collect();
    let wanted = [serde_json::json!("nobody"), serde_json::json!({ "member": 0 })];
    assert_eq!((&alone[..2], alone[2].is_null(), alone.len()), (&wanted[..], true, 4), "{alone:?}");
    let summary = finished.json();
    assert_eq!(
        summary["tiles"]["steps"].as_array().map(Vec::len),
        Some(2),
        "members by themselves are no tiles"
    );
    let predicted = summary["predicted"].as_array().unwrap();
    assert_eq!(predicted.len(), 2, "{summary}");
    for run in predicted {
        let store = &run["members"][0];
        assert_eq!(
            (&store["member"], &store["measured_per_second"]),
            (&"store".into(), &50.0.into()),
            "{run}"
        );
        // It hardly computes, but what other programs do is in the host's use.
        assert!(
            store["predicted_per_second"].as_f64().is_some_and(|rate| (40.0..50.1).contains(&rate)),
            "{run}"
        );
        assert!(store["predicted_response_ns"].as_u64().is_some_and(|ns| ns > 0), "{run}");
        // What it computes is less than what other programs do more or less from run to run.
        let busy = run["predicted_busy_percent"].as_f64();
        assert!(busy.is_some_and(|busy| (0.0..=100.0).contains(&busy)), "{run}");
    }
    assert_eq!(summary["prediction_errors"]["runs"], 2, "{summary}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("Predicted from each member by itself") && page.contains("store, predicted"),
        "{page}"
    );
    let elsewhere = ["study", "tiles", "--predict", "--environment", "ssh://root@metal/srv?bridge=br0"];
    let file = temp.path().join("run.toml").display().to_string();
    let refused = run(&[&elsewhere[..], &["--tile", &file]].concat());
    assert!(refused.code() == 2 && refused.stderr.contains("--predict: members run on"), "{refused:?}");
    assert_eq!(left(temp.path(), &out), Vec::<String>::new());
}

#[test]
fn a_level_that_cannot_be_met_leaves_no_tile_that_fits_and_is_named() {
    let temp = folder();
    let text = tile(WELL, "response = '1ms', least = 60");
    let (out, finished) = study(temp.path(), "run", &text, &["--environment", "native", "--json"]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    assert!(summary["tiles"]["fits"].is_null() && summary["tiles"]["too_many"] == 1, "{summary}");
    assert!(summary["tiles"]["steps"][0]["score"].is_null(), "{summary}");
    let first = &summary["broke_first"];
    assert_eq!((&first["member"], &first["tile"]), (&"store".into(), &1.into()));
    assert_eq!(first["beyond"], 2.0, "2 ms where 1 ms is allowed: {summary}");
    assert_eq!(records(&out).len(), 1, "two tiles are not tried where one is too many");
}

#[test]
fn a_member_that_is_killed_in_the_middle_ends_its_run_and_leaves_the_others() {
    let temp = folder();
    let mark = temp.path().join("mark");
    let script = format!(
        "if [ -e {0} ]; then redis-cli -h {{host}} -p {{port}} shutdown nosave; sleep 600; fi; touch {0}; echo rate 50 took 2",
        mark.display()
    );
    let more = ["--environment", "native", "--tiles", "1,2", "--json"];
    let (out, finished) = study(temp.path(), "run", &tile(&script, "least = 40"), &more);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let records = records(&out);
    assert_eq!((&records[0]["status"], &records[1]["status"]), (&"measured".into(), &"failed".into()));
    assert_eq!(records[1]["member"], "store");
    let why = records[1]["why"].as_str().unwrap();
    assert!(why.contains("redis"), "{why}");
    let summary = finished.json();
    assert_eq!((&summary["tiles"]["fits"], &summary["tiles"]["too_many"]), (&1.into(), &2.into()));
    assert_eq!(left(temp.path(), &out), Vec::<String>::new());
}

#[test]
fn tiles_that_cannot_be_are_refused_before_anything_starts() {
    let temp = folder();
    let well = tile(WELL, "least = 40");
    for (text, more, code, said) in [
        (well.replace("reference = 50", "speed = 50"), &[][..], 2, "unknown field `speed`"),
        (well.replace("reference = 50", "speed = 50"), &[], 2, "line 5"),
        (well.replace("'nginx'", "'weather'"), &[], 2, "there is no recipe weather"),
        (well.replace("'sh', '-c'", "'no-such-client', '-c'"), &[], 4, "no-such-client is not here"),
        (
            well.replace("kind = 'idle'", "kind = 'oltp'"),
            &[],
            2,
            "oltp loads postgresql or mariadb, not nginx",
        ),
        (well.clone(), &["--tiles", "900"], 2, "900 tiles need "),
        (well.clone(), &["--tiles", "900"], 2, " are available on this host"),
        (well.clone(), &["--energy", "wind"], 2, "write rapl, file:PATH or command:WORDS"),
        (well.clone(), &["--tiles", "none"], 2, "is no number of tiles"),
        (well.clone(), &["--platform", "qemu:///system"], 2, "give libvirt+URI"),
        (
            well.clone(),
            &["--platform", "qemu:///system", "--clone", "array"],
            2,
            "possible values: full, linked",
        ),
        (
            well.clone(),
            &["--platform", "libvirt+test:///default", "--pace", "12/min"],
            2,
            "raise --pace or --time",
        ),
    ] {
        let options = [&["--environment", "native"], more].concat();
        let (out, finished) = study(temp.path(), "run", &text, &options);
        assert_eq!(finished.code(), code, "{finished:?}");
        assert!(finished.stderr.contains(said), "{said}: {finished:?}");
        assert!(!out.exists(), "{said}");
    }
}

#[test]
fn a_killed_study_of_tiles_leaves_nothing_and_is_resumed() {
    let temp = folder();
    let place = temp.path().join("client");
    let script = format!(
        "echo $$ > {0}; while [ -e {0} ]; do sleep 0.1; done; sleep 2; echo rate 50 took 2",
        place.display()
    );
    let more = ["--environment", "native", "--tiles", "1"];
    let (out, mut child) = begin(temp.path(), "run", &tile(&script, "least = 40"), &more);
    let pid = wait_for("the client", || fs::read_to_string(&place).ok()?.trim().parse().ok());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the client and the members to be gone", || {
        (!is_alive(pid) && loops_in(temp.path()).is_empty()).then_some(())
    });
    fs::remove_file(&place).unwrap();
    let words = ["study", "tiles", "--resume", "--json", "--out"];
    let mut again = virtbench();
    let again = again.args(words).arg(&out).spawn().unwrap();
    wait_for("the client", || place.exists().then_some(()));
    fs::remove_file(&place).unwrap();
    let again = finish(again);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(again.json()["tiles"]["fits"], 1, "{again:?}");
    assert_eq!(left(temp.path(), &out), Vec::<String>::new(), "what the kill left went with the next run");
}

/// A meter writes 250 W every second, from before the run to long after it: one tile scores one, which is 4 for a kilowatt.
#[test]
fn a_score_for_each_kilowatt_comes_from_a_recorded_source() {
    let temp = folder();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let lines: String = (now - 5..now + 600).map(|second| format!("{second},250\n")).collect();
    let file = temp.path().join("watts.csv");
    fs::write(&file, format!("time,watts\n{lines}")).unwrap();
    let energy = format!("file:{}", file.display());
    let more = ["--environment", "native", "--tiles", "1", "--json", "--energy", &energy];
    let (_, finished) = study(temp.path(), "run", &tile(WELL, "least = 40"), &more);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let host = &finished.json()["host"][0];
    assert!((host["watts"].as_f64().unwrap() - 250.0).abs() < 1e-9, "{host}");
    assert!((host["score_per_kilowatt"].as_f64().unwrap() - 4.0).abs() < 1e-9, "{host}");
}

#[test]
fn a_database_under_transactions_is_a_member() {
    let temp = folder();
    let text = "name = 'test'\n[[member]]\nname = 'oltp'\nappliance = 'postgresql'\nreference = 4\n\
                load = { kind = 'oltp', users = 2, rate = 4 }\nlevels = { percentile = 90, response = '50s', errors = 50 }\n";
    let (out, finished) =
        study(temp.path(), "run", text, &["--environment", "native", "--tiles", "1", "--json"]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let done = &records(&out)[0]["members"][0]["done"];
    assert!(done["completed"].as_u64().is_some_and(|completed| completed > 0), "{done}");
    assert!(done["latency_ns"]["p90"].as_u64().is_some_and(|ns| ns > 0), "{done}");
    assert_eq!(done["series"].as_array().map(Vec::len), Some(2), "{done}");
    assert_eq!(finished.json()["tiles"]["fits"], 1);
    assert_eq!(left(temp.path(), &out), Vec::<String>::new());
}

#[test]
fn tiles_run_in_guests() {
    let temp = folder();
    let more = ["--tiles", "1", "--accelerator", "tcg", "--json"];
    let (out, finished) = study(temp.path(), "run", &tile(WELL, "least = 40"), &more);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    assert_eq!((&summary["tiles"]["configuration"], &summary["tiles"]["fits"]), (&"vm".into(), &1.into()));
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("TCG emulates") && !page.contains("No guest has booted."));
    assert_eq!(left(temp.path(), &out), Vec::<String>::new());
}

/// Libvirtds of the test's own, so that VMs can move; each kind of operation comes once in the measuring time, and the last may end after it.
#[test]
fn management_operations_beside_tiles_are_a_fifth_of_the_score() {
    build_appliances(&["nginx", "redis"]);
    let ((libvirtd, other, to), temp) = (Libvirtd::two(), folder());
    let (file, out) = (temp.path().join("tile.toml"), temp.path().join("run"));
    fs::write(&file, tile(WELL, "least = 40")).unwrap();
    let mut command = virtbench();
    command.args([
        "study",
        "tiles",
        "--environment",
        "native",
        "--tiles",
        "1",
        "--repetitions",
        "1",
        "--json",
    ]);
    command.args(["--time", "12s", "--ramp", "4s", "--pace", "35/min", "--accelerator", "tcg"]);
    command.arg("--platform").arg(format!("libvirt+{}", libvirtd.connection()));
    command.arg("--destination").arg(to);
    command.arg("--tile").arg(&file).arg("--out").arg(&out);
    let finished = finish(command.spawn().unwrap());
    assert_eq!(finished.code(), 0, "{finished:?}");
    assert!(libvirtd.is_clean(), "{:?} {:?}", libvirtd.domains(), libvirtd.volumes());
    assert!(other.domains().is_empty(), "{:?}", other.domains());
    let summary = finished.json();
    let covers = summary["covers"].as_str().unwrap();
    assert!(covers.starts_with("applications 80 %, infrastructure 20 % (power_on, "), "{covers}");
    assert!(covers.contains("migrate") && !covers.contains("without"), "{covers}");
    let step = &summary["tiles"]["steps"][0];
    let value = |name: &str| step[name]["value"].as_f64().unwrap_or_else(|| panic!("{name}: {summary}"));
    let (sum, infrastructure) = (value("sum"), value("infrastructure"));
    assert!((sum - 1.0).abs() < 1e-9 && infrastructure > 0.0 && infrastructure <= 1.0, "{summary}");
    assert!((value("score") - 0.8 * sum - 0.2 * infrastructure).abs() < 1e-6, "{summary}");
    let operations = &records(&out)[0]["infrastructure"]["operations"];
    for kind in ["power_on", "power_off", "clone", "remove", "migrate", "create_snapshot", "delete_snapshot"]
    {
        assert_eq!(operations[kind]["done"], 1, "{kind}: {operations}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("Management operations beside the tiles") && page.contains("infrastructure 20\u{a0}%")
    );
    // The table of the run scores the same.
    let table = out.join("results.csv").display().to_string();
    let analysed = run(&["analyse", &table, "--json"]).json();
    assert_eq!(analysed["configurations"][0]["steps"][0]["score"], step["score"], "{analysed}");
    assert_eq!(left(temp.path(), &out), Vec::<String>::new());
}
