//! `contrib/ci`: what a build server runs, with the variables that GitHub and GitLab set.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Finished, finish, folder};

const CONTRIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../contrib/ci");

/// The script in this folder, with nothing in its environment that a build server may have set for these tests.
fn script(folder: &Path, variables: &[(&str, &str)], words: &[&str]) -> Finished {
    let mut command = Command::new("bash");
    command.arg(format!("{CONTRIB}/virtbench-ci.sh")).args(words).current_dir(folder);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder);
    command.env("VIRTBENCH", env!("CARGO_BIN_EXE_virtbench")).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap())
}

/// Words of a study of two environments at one point.
fn words(folder: &Path) -> String {
    fs::write(folder.join("grid.toml"), "blocks = ['4k']\nreads = [100]\nrandoms = [100]\n").unwrap();
    fs::create_dir_all(folder.join("other")).unwrap();
    "study compare --size 8MiB --ramp 20ms --time 60ms --repetitions 4 --environment a=native: \
     --environment b=native:other --grid grid.toml"
        .to_owned()
}

/// A base whose figures are so many times those of the run.
fn base(run: &Path, factor: f64) -> PathBuf {
    let base = run.with_file_name("base");
    fs::create_dir(&base).unwrap();
    fs::copy(run.join("run.json"), base.join("run.json")).unwrap();
    let lines = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        let earlier = record["started_unix_ns"].as_u64().unwrap() - 3_600_000_000_000;
        record["started_unix_ns"] = earlier.into();
        let rate = &mut record["outcome"]["total"]["bytes_per_second"];
        *rate = (rate.as_f64().unwrap() * factor).into();
        record.to_string() + "\n"
    });
    fs::write(base.join("results.jsonl"), lines.collect::<String>()).unwrap();
    base
}

#[test]
fn a_job_of_github_has_its_summary_its_outputs_and_virtbenchs_exit_code() {
    let folder = folder();
    let words = words(folder.path());
    let [summary, outputs] =
        ["summary.md", "outputs"].map(|name| folder.path().join(name).display().to_string());
    let github = [
        ("GITHUB_STEP_SUMMARY", summary.as_str()),
        ("GITHUB_OUTPUT", &outputs),
        ("VIRTBENCH_COMMAND", &words),
    ];
    let first = script(folder.path(), &[&github[..], &[("VIRTBENCH_BASE", "base")]].concat(), &[]);
    assert_eq!(first.code(), 0, "there is no base yet: {first:?}");
    let told = fs::read_to_string(&summary).unwrap();
    for part in
        ["### Storage of several machines", "|---|", "virtbench study compare", "No run to compare with"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let outputs = fs::read_to_string(&outputs).unwrap();
    assert!(outputs.contains("run=virtbench-run\n") && outputs.contains("exit-code=0\n"), "{outputs}");

    // What a later job does, with what this one measured: a thousandth of the base's rate, whatever the host was doing.
    base(&folder.path().join("virtbench-run"), 1000.0);
    for (variables, code) in [
        (&[("VIRTBENCH_BASE", "base"), ("VIRTBENCH_OUT", "again"), ("VIRTBENCH_FAIL_ON", "none")][..], 0),
        (&[("VIRTBENCH_BASE", "base"), ("VIRTBENCH_OUT", "worse")], 9),
    ] {
        fs::write(&summary, "").unwrap();
        let done = script(folder.path(), &[&github[..], variables].concat(), &[]);
        let told = fs::read_to_string(&summary).unwrap();
        // A host that others kept busier than the base's is said to be that, and nothing is judged then.
        let busier = code == 9 && done.code() == 10;
        assert!(done.code() == code || busier, "{done:?}\n{told}");
        assert!(told.contains("### Against the base") && told.contains("| environment |"), "{told}");
        assert!(told.contains("0.00") || busier, "{told}");
    }
}

#[test]
fn a_job_that_fails_says_what_was_said() {
    let folder = folder();
    let summary = folder.path().join("virtbench.md");
    let gitlab = [("CI_PROJECT_DIR", folder.path().to_str().unwrap())];
    let failed = script(folder.path(), &gitlab, &["study", "compare", "--environment", "nowhere://x"]);
    assert_eq!(failed.code(), 2, "{failed:?}");
    let told = fs::read_to_string(&summary).unwrap();
    assert!(told.contains("exit code 2") && told.contains("nowhere"), "{told}");
    let load = ["load", "--target", "t.img", "--size", "1MiB", "--time", "50ms", "--ramp", "0s"];
    let loaded = script(folder.path(), &gitlab, &load);
    assert_eq!(loaded.code(), 0, "{loaded:?}");
    let told = fs::read_to_string(&summary).unwrap();
    assert!(told.contains("IOPS") && !told.contains("nowhere"), "the file is that of this job: {told}");
    for (variables, code, word) in [
        (&[][..], 2, "VIRTBENCH_COMMAND"),
        (&[("VIRTBENCH_COMMAND", "load"), ("VIRTBENCH", "no-such-command")], 4, "no-such-command"),
        (&[("VIRTBENCH_COMMAND", "load"), ("VIRTBENCH_FAIL_ON", "worse")], 2, "VIRTBENCH_FAIL_ON"),
    ] {
        let done = script(folder.path(), variables, &[]);
        assert_eq!(done.code(), code, "{done:?}");
        assert!(done.stderr.contains(word), "{}", done.stderr);
    }
}

#[test]
fn what_the_systems_hand_over_is_what_the_script_reads() {
    let read = |name: &str| fs::read_to_string(format!("{CONTRIB}/{name}")).unwrap();
    let script = read("virtbench-ci.sh");
    let documented: BTreeSet<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split(' ').next())
        .filter(|word| word.starts_with("VIRTBENCH"))
        .collect();
    for file in ["action.yml", "virtbench.gitlab-ci.yml"] {
        let text = read(file);
        let handed = text.lines().filter_map(|line| line.trim().strip_prefix("VIRTBENCH")?.split_once(": "));
        let handed: Vec<String> = handed.map(|(rest, _)| format!("VIRTBENCH{rest}")).collect();
        assert!(handed.len() > 4, "{file}: {handed:?}");
        let own = ["VIRTBENCH_CI", "VIRTBENCH_CACHE"];
        for name in handed.iter().filter(|name| !own.contains(&name.as_str())) {
            assert!(documented.contains(name.as_str()), "{file}: {name}: {documented:?}");
        }
    }
    for name in documented {
        assert!(script.contains(&format!("${{{name}:-")), "{name} is documented and not read");
    }
}
