//! `virtbench report --format`: one form of a run folder, to stdout or to where it is asked for.

use std::fs;

use crate::support::{folder, run, two_environments};

#[test]
fn a_run_folder_is_written_in_every_form() {
    let folder = folder();
    let out = two_environments(folder.path(), "run", 3).display().to_string();
    for (format, begins, part) in [
        ("markdown", "### Storage of several machines", "```sh\n"),
        ("text", "Storage of several machines\n====", "│"),
        ("csv", "environment,block_bytes", "\na,4096,"),
        ("html", "<!DOCTYPE html>", "</html>"),
    ] {
        let told = run(&["report", &out, "--format", format]);
        assert_eq!(told.code(), 0, "{told:?}");
        assert!(told.stdout.starts_with(begins) && told.stdout.contains(part), "{format}: {}", told.stdout);
        let path = folder.path().join(format).display().to_string();
        let saved = run(&["report", &out, "--format", format, "--out", &path]);
        assert_eq!(saved.stdout.trim_end(), path, "{saved:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), told.stdout, "{format}");
    }
    let drawn = run(&["report", &out, "--format", "svg"]);
    assert_eq!(drawn.code(), 0, "{drawn:?}");
    assert!(drawn.stdout.lines().count() >= 4, "{}", drawn.stdout);
    for path in drawn.stdout.lines() {
        assert!(path.starts_with(&out) && fs::read_to_string(path).unwrap().starts_with("<svg "), "{path}");
    }
    assert_eq!(run(&["report", &out, "--out", "x"]).code(), 2, "--out says where a form goes");
    let unwritable = run(&["report", &out, "--format", "text", "--out", "/nonexistent/x"]);
    assert!(unwritable.code() != 0 && unwritable.stderr.contains("/nonexistent/x"), "{unwritable:?}");
}
