//! `virtbench run`: a study that stands in a file.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{folder, run};

/// A file of a small study of this host against itself.
fn file(folder: &Path) -> PathBuf {
    let (path, grid, other) = (folder.join("study.toml"), folder.join("grid.toml"), folder.join("other"));
    fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let text = format!(
        "study = 'compare'\nenvironment = ['a=native:', 'b=native:{}']\ngrid = '{}'\nsize = '8MiB'\nramp = '20ms'\n\
         time = '50ms'\nrepetitions = 2\n",
        other.display(),
        grid.display()
    );
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_file_is_run_and_its_run_can_be_resumed_and_told_as_a_file_again() {
    let folder = folder();
    let [file, out] = [file(folder.path()), folder.path().join("run")].map(|path| path.display().to_string());
    let dry = run(&["run", &file, "--dry-run"]);
    assert!(dry.code() == 0 && dry.stderr.contains("8 measurements, about "), "{dry:?}");
    assert!(!Path::new(&out).exists());
    let done = run(&["run", &file, "--out", &out, "--json"]);
    assert_eq!((done.code(), &done.json()["points_measured"]), (0, &8.into()), "{done:?}");
    // What a kill would have left: some of the lines.
    let results = Path::new(&out).join("results.jsonl");
    let lines = fs::read_to_string(&results).unwrap();
    let half: String = lines.lines().take(4).map(|line| format!("{line}\n")).collect();
    fs::write(&results, half).unwrap();
    let resumed = run(&["study", "compare", "--resume", "--out", &out]);
    assert_eq!(resumed.code(), 0, "{resumed:?}");
    assert_eq!(fs::read_to_string(&results).unwrap().lines().count(), 8);
    let again = run(&["run", &out, "--dry-run"]);
    assert_eq!((again.code(), &again.stdout), (0, &dry.stdout), "{again:?}");
}

#[test]
fn programs_that_watch_get_a_json_object_a_line() {
    let folder = folder();
    let [file, out] = [file(folder.path()), folder.path().join("run")].map(|path| path.display().to_string());
    let done = run(&["run", &file, "--out", &out, "--progress", "json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let parsed = |line: &str| -> serde_json::Value {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let events: Vec<serde_json::Value> = done.stderr.lines().map(parsed).collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!(of("planned")[0]["measurements"], 8);
    assert_eq!((of("measuring").len(), of("recorded").len()), (8, 8), "{events:?}");
    assert_eq!(of("measuring")[7]["done"], 7);
    assert!(of("recorded")[0]["host"]["processors"].as_u64().unwrap() > 0);
    assert_eq!(of("opened")[0]["folder"], out.as_str());
}

#[test]
fn a_wrong_file_is_refused_with_its_name_and_line() {
    let folder = folder();
    let path = folder.path().join("study.toml");
    for (text, said) in [
        ("study = 'compare'\nspeed = 1\n", "line 2: speed"),
        ("study = 'weather'\n", "there is no study"),
        ("study = 'compare'\nenvironment = ['a=native:', 'b=native:']\n# size\nsize = 'much'\n", "line 4: "),
        ("study = 'compare'\nenvironment = ['a=native:', 'b=native:']\nrepetitions = 0\n", "line 3: "),
        ("study = 'compare'\nenvironment = ['a=native:', 'b=native:']\nsize = 0\n", "line 3: "),
        (
            "study = 'compare'\nenvironment = ['a=native:', 'a=native:/tmp']\n",
            "two environments are called a",
        ),
        ("nonsense", "line 1"),
    ] {
        fs::write(&path, text).unwrap();
        let refused = run(&["run", &path.display().to_string(), "--dry-run"]);
        assert!(refused.code() == 2 && refused.stderr.contains(said), "{text}: {refused:?}");
        assert!(refused.stderr.contains("study.toml"), "{refused:?}");
    }
    assert_eq!(run(&["run", "/nonexistent.toml"]).code(), 2);
    assert_eq!(run(&["run", &folder.path().display().to_string()]).code(), 7);
}

#[test]
fn a_dry_run_of_every_study_says_how_much_there_is_to_do() {
    let folder = folder();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let case = |name: &str| {
        format!("[[case]]\nname = '{name}'\ncommand = ['true']\nmetric = 'elapsed'\nworkers = 1\n")
    };
    let cases = write("cases.toml", &(case("one") + &case("two")));
    for (name, text, said) in [
        ("desktops", "study = 'desktops'\ndesktops = '1,2'\ntime = '20s'\n", "2 measurements, about 45s"),
        (
            "elsewhere",
            "study = 'desktops'\nday = 'typing'\nenvironment = 'vnc://desk1,vnc://desk2'\ndesktops = '1,2'\ntime = '20s'\n",
            "2 measurements, about 40s",
        ),
        (
            "systems",
            "study = 'deviation'\nsystems = 'none,VirtualFence'\nworkload = 'load:size=4k,read=50'\npattern = '5,5'\n\
             repetitions = 1\ntime = '10s'\nramp = '1s'\n",
            "8 measurements of 2 VMs, about 2m 38s",
        ),
        (
            "predictions",
            &format!("study = 'predictions'\ncases = '{cases}'\ntrials = 3\n"),
            "6 measurements; each takes as long as its tests take and what pieces of work cost",
        ),
    ] {
        let file = write(&format!("{name}.toml"), text);
        let dry = run(&["run", &file, "--dry-run"]);
        assert!(dry.code() == 0 && dry.stderr.contains(said), "{name}: {dry:?}");
    }
}
