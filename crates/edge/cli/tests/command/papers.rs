//! `virtbench papers`: runs beside what five papers conclude.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{finish, folder, run, two_environments};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// The document in `docs` is what the runs beside it say.
#[test]
fn the_document_is_current() {
    let child = Command::new(env!("CARGO_BIN_EXE_virtbench"))
        .args(["papers", "docs/papers"])
        .current_dir(ROOT)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let done = finish(child.unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    let kept = fs::read_to_string(Path::new(ROOT).join("docs/papers.md")).unwrap();
    assert!(done.stdout == kept, "target/release/virtbench papers docs/papers --out docs/papers.md");
}

#[test]
fn programs_read_each_finding() {
    let done = run(&["papers", &format!("{ROOT}/docs/papers"), "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let claims = json["claims"].as_array().unwrap();
    let findings = claims.iter().flat_map(|claim| claim["findings"].as_array().unwrap());
    let (counted, told): (usize, u64) =
        (findings.count(), ["hold", "fail", "open"].iter().map(|one| json[one].as_u64().unwrap()).sum());
    assert_eq!(counted as u64, told);
}

#[test]
fn runs_that_say_nothing_and_folders_without_runs_have_exit_codes_of_their_own() {
    let temp = folder();
    let empty = run(&["papers", temp.path().to_str().unwrap()]);
    assert_eq!(empty.code(), 7, "{empty:?}");
    assert!(empty.stderr.contains("there is no run in it"), "{empty:?}");
    let missing = run(&["papers", temp.path().join("none").to_str().unwrap()]);
    assert_eq!(missing.code(), 7, "{missing:?}");
    assert!(missing.stderr.contains("there is no such folder"), "{missing:?}");
    let compared = two_environments(temp.path(), "run", 1);
    let silent = run(&["papers", compared.to_str().unwrap()]);
    assert_eq!(silent.code(), 10, "{silent:?}");
    assert!(silent.stdout.contains("Not measured: `virtbench study oltp`"), "{silent:?}");
    fs::write(compared.join("run.json"), "{").unwrap();
    assert_eq!(run(&["papers", compared.to_str().unwrap()]).code(), 7);
}
