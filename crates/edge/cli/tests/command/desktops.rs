//! `virtbench study desktops` for real: an X server that speaks VNC, a window manager, an editor in a terminal, and users.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::run_folder::run_json;
use crate::support::{build_appliances, finish, folder, virtbench};

/// Counts the pictures that the browser could decode, each of a whole screen.
const COUNT_PICTURES: &str = "<script>addEventListener('load', () => document.documentElement.setAttribute('data-pictures', \
     [...document.images].filter(image => image.naturalWidth >= 1000).length))</script>";

/// The document as the browser has it once its scripts have run.
fn in_browser(folder: &Path, page: &str) -> String {
    let copy = folder.join("page.html");
    // The page itself allows no other script than its own.
    let page = page.replacen("http-equiv=\"Content-Security-Policy\"", "name=\"policy\"", 1);
    fs::write(&copy, format!("{page}{COUNT_PICTURES}")).unwrap();
    let browser = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("file://{}", copy.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("chromium cannot be started ({error}); install it with: apt-get install chromium")
        });
    let finished = finish(browser);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    finished.stdout
}

#[test]
fn users_of_real_desktops_are_timed_by_what_they_see() {
    build_appliances(&["desktop-small"]);
    let temp = folder();
    let out = temp.path().join("run");
    let run = |more: &[&str]| {
        let mut command = virtbench();
        command.args(["study", "desktops", "--day", "small", "--desktops", "1,2", "--time", "16s", "--out"]);
        command.arg(&out).args(more);
        finish(command.spawn().unwrap())
    };
    let finished = run(&["--json"]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let summary = finished.json();
    let numbers = summary["numbers"].as_array().unwrap();
    assert_eq!(numbers.len(), 2, "{summary}");
    for at in numbers {
        assert_eq!((at["lost"].as_array().map(Vec::len), &at["errors"]), (Some(0), &0.0.into()), "{at}");
        assert!(at["echo_median_ns"].as_u64().is_some_and(|ns| ns > 0), "keys change the picture: {at}");
    }
    let provenance = run_json(&out);
    assert!(provenance["appliances"][0]["packages"]["jwm"].is_string(), "{provenance}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("data:image/png;base64,iVBOR"), "the worst moment has its picture");
    assert!(page.contains("desktops a processor"));
    let seen = in_browser(temp.path(), &page);
    assert!(page.matches("<svg class=\"chart").count() >= 2, "both figures are drawn");
    for said in ["data-pictures=\"", "Every operation of 2 desktops"] {
        assert!(seen.contains(said), "{said}");
    }
    assert!(!seen.contains("data-pictures=\"0\""), "the pictures of the worst moments are decoded");
    let table = fs::read_to_string(out.join("results.csv")).unwrap();
    assert!(table.contains(",editor,open,B,") && table.contains(",archiver,compress,B,"), "{table}");
    let results = fs::read_to_string(out.join("results.jsonl")).unwrap();
    for record in results.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()) {
        let timed = record["operations"].as_array().unwrap().iter().filter(|done| done["times"].is_object());
        let kinds: BTreeSet<u64> = timed.filter_map(|done| done["operation"].as_u64()).collect();
        assert!(kinds.len() >= 5, "operations of many kinds are seen to end: {record}");
    }
    let again = run(&["--resume"]);
    assert_eq!(again.code(), 0, "{again:?}");
    assert_eq!(fs::read_to_string(out.join("results.jsonl")).unwrap(), results, "nothing was missing");
}

#[test]
fn an_application_that_fails_is_an_error_of_its_user_with_a_picture() {
    build_appliances(&["desktop-small"]);
    let temp = folder();
    let (out, file) = (temp.path().join("run"), temp.path().join("day.toml"));
    let day = r#"
name = "broken"
recipe = "desktop-small"
think = { least = "100ms", most = "200ms" }
limits = { a = "1s", b = "2s", give_up = "8s" }

[[applications]]
name = "crash"
program = ["/bin/false"]
window = "None"
operations = [{ name = "open", group = "B", act = "start", until = "window" }]

[[applications]]
name = "silent"
program = ["/bin/sleep", "60"]
window = "None"
operations = [{ name = "open", group = "B", act = "start", until = "window" }]

[[applications]]
name = "archiver"
program = ["/bin/tar", "-czf", "/home/desktop/fonts.tar.gz", "/etc/fonts"]
window = "None"
operations = [{ name = "compress", group = "B", act = "start", until = "exit" }]
"#;
    fs::write(&file, day).unwrap();
    let mut command = virtbench();
    command.args(["study", "desktops", "--desktops", "1", "--time", "18s", "--json", "--day"]);
    let finished = finish(command.arg(&file).arg("--out").arg(&out).spawn().unwrap());
    assert_eq!(finished.code(), 5, "{finished:?}");
    let results = fs::read_to_string(out.join("results.jsonl")).unwrap();
    assert!(results.contains("/bin/false ended"), "{results}");
    assert!(results.contains("no window of the class"), "{results}");
    assert!(finished.json()["numbers"][0]["quality"] == "failed", "{finished:?}");
    let record: serde_json::Value = serde_json::from_str(results.lines().next().unwrap()).unwrap();
    assert!(record["pictures"].as_array().unwrap().len() >= 2, "failures have pictures");
    let compressed = record["operations"]
        .as_array()
        .unwrap()
        .iter()
        .any(|done| done["operation"] == 2 && done["times"].is_object());
    assert!(compressed, "the user goes on with the next application: {}", record["operations"]);
}

#[test]
fn what_a_study_of_desktops_cannot_do_is_refused_before_anything_is_measured() {
    let temp = folder();
    let out = temp.path().join("run");
    for (words, code, said) in [
        (&["--desktops", "few"][..], 2, "write auto, or such as 1,4,16"),
        (&["--day", "holiday"], 2, "a day is a file, or one of office, small"),
        (&["--day", "small", "--recipe", "redis"], 2, "the recipe redis is no desktop"),
        (&["--day", "small", "--errors", "200"], 2, "from 0 to 100"),
    ] {
        let mut command = virtbench();
        let finished =
            finish(command.args(["study", "desktops", "--out"]).arg(&out).args(words).spawn().unwrap());
        assert_eq!(finished.code(), code, "{words:?}: {finished:?}");
        assert!(finished.stderr.contains(said), "{words:?}: {finished:?}");
        assert!(!out.exists(), "{words:?}");
    }
}
