//! `contrib/ci`: what a build server runs, with the variables that GitHub and GitLab set.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
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

/// Records of a run, with this rate in every measurement but for a percent more or less, so many hours later.
fn replayed(run: &Path, name: &str, bytes_per_second: f64, hours: u64) -> PathBuf {
    let folder = run.with_file_name(name);
    fs::create_dir(&folder).unwrap();
    fs::copy(run.join("run.json"), folder.join("run.json")).unwrap();
    let lines = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let lines = lines.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        let later = record["started_unix_ns"].as_u64().unwrap() + hours * 3_600_000_000_000;
        record["started_unix_ns"] = later.into();
        let wobble = 1.0 + 0.01 * (record["repetition"].as_f64().unwrap() % 3.0 - 1.0);
        record["outcome"]["total"]["bytes_per_second"] = (bytes_per_second * wobble).into();
        record.to_string() + "\n"
    });
    fs::write(folder.join("results.jsonl"), lines.collect::<String>()).unwrap();
    folder
}

/// A command whose study measures what stands in a folder; whatever else it is asked, virtbench answers.
fn measures(folder: &Path, measured: &Path) -> PathBuf {
    let path = folder.join(format!("measures-{}", measured.file_name().unwrap().display()));
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" != study ]; then exec '{}' \"$@\"; fi\n\
         while [ \"$1\" != --out ]; do shift; done\nexec cp -r '{}' \"$2\"\n",
        env!("CARGO_BIN_EXE_virtbench"),
        measured.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
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
}

#[test]
fn a_job_that_measured_a_regression_ends_with_9_and_its_summary_says_what_got_worse() {
    let folder = folder();
    let words = words(folder.path());
    let first = script(folder.path(), &[("VIRTBENCH_COMMAND", &words)], &[]);
    assert_eq!(first.code(), 0, "{first:?}");
    let run = folder.path().join("virtbench-run");
    replayed(&run, "base", 100e6, 0);
    let [worse, same] = [("worse", 70e6), ("same", 100e6)].map(|(name, rate)| {
        measures(folder.path(), &replayed(&run, &format!("measured-{name}"), rate, 1)).display().to_string()
    });
    let summary = folder.path().join("summary.md").display().to_string();
    let place = folder.path().display().to_string();
    for (at, (command, fail_on, code, verdict)) in [
        (&worse, "regression", 9, "It got worse: "),
        (&worse, "regression,undecided", 9, "It got worse: "),
        (&worse, "none", 0, "It got worse: "),
        (&same, "regression", 0, ""),
    ]
    .into_iter()
    .enumerate()
    {
        for (system, file) in [("GITHUB_STEP_SUMMARY", &summary), ("CI_PROJECT_DIR", &place)] {
            let out = format!("out-{system}-{at}");
            let variables = [
                (system, file.as_str()),
                ("VIRTBENCH", command),
                ("VIRTBENCH_COMMAND", &words),
                ("VIRTBENCH_OUT", &out),
                ("VIRTBENCH_BASE", "base"),
                ("VIRTBENCH_FAIL_ON", fail_on),
            ];
            let summary =
                if system == "CI_PROJECT_DIR" { folder.path().join("virtbench.md") } else { file.into() };
            fs::write(&summary, "").unwrap();
            let done = script(folder.path(), &variables, &[]);
            let told = fs::read_to_string(&summary).unwrap();
            assert_eq!(done.code(), code, "{done:?}\n{told}");
            let compared = told.split_once("### Against the base").expect(&told).1;
            assert!(compared.contains("| environment | point | throughput |"), "{told}");
            assert!(compared.contains(verdict), "{told}");
            assert_eq!(compared.contains("It got worse"), !verdict.is_empty(), "{told}");
            assert_eq!(compared.contains("| a | all | 0.70 ("), !verdict.is_empty(), "{told}");
            assert_eq!(done.stderr.contains("It got worse"), code == 9, "{}", done.stderr);
        }
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
