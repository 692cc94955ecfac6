//! Whoever else uses the host is said, in `load` and in what it leaves.
//!
//! A program of its own: tests of others that measure at the same time would be the ones that are named.

#![allow(clippy::unwrap_used)]

#[path = "command/support/mod.rs"]
mod support;

use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

use support::{finish, run, virtbench, wait_for};

/// Ends with the test, whatever becomes of it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Only three others are named, and the tests of this file are others to each other.
static ALONE: Mutex<()> = Mutex::new(());

const SECONDS: [&str; 9] = ["load", "--target", "null", "--size", "1MiB", "--ramp", "0s", "--time", "2s"];

#[test]
fn other_programs_on_the_host_are_said() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let processors = std::thread::available_parallelism().unwrap().get();
    let spin = |_| Ended(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
    // Other programs are those that virtbench did not start, so that these may be our children.
    let _spinning: Vec<Ended> = (0..processors).map(spin).collect();
    let said = run(&SECONDS);
    assert_eq!(said.code(), 0, "{said:?}");
    assert!(said.stderr.contains("note: other programs use "), "{}", said.stderr);
    assert!(said.stdout.contains("of other programs"), "{}", said.stdout);
    assert!(said.stdout.contains("note: Other programs used "), "{}", said.stdout);
    let json = run(&[&SECONDS[..], &["--json"]].concat()).json();
    let others = json["host_cpu"]["others_percent"].as_f64().unwrap();
    assert!(others > 10.0 * processors as f64, "{others}");
    assert!(json["notes"].to_string().contains("Measure again on a quiet host"), "{}", json["notes"]);
}

#[test]
fn two_measurements_find_each_other_and_a_killed_one_is_forgotten() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let long = |time: &str| {
        let words = ["load", "--target", "null", "--size", "1MiB", "--ramp", "0s", "--json", "--time", time];
        Ended(virtbench().args(words).spawn().unwrap())
    };
    let mut killed = long("60s");
    let name = |child: &Ended| format!("@virtbench-measures/{}/load", child.0.id());
    let is_listed = |name: &str| std::fs::read_to_string("/proc/net/unix").unwrap().contains(name);
    wait_for("the first to claim the host", || is_listed(&name(&killed)).then_some(()));
    let process_of = |child: &Ended| format!("virtbench load (process {})", child.0.id());
    // The second finds the first, and the first the second: it looks again and again.
    let first = long("5s");
    wait_for("the second to claim the host", || is_listed(&name(&first)).then_some(()));
    let second = long("3s");
    let (first_words, second_words) = (process_of(&first), process_of(&second));
    let finished = |mut child: Ended| {
        let spare = Command::new("true").spawn().unwrap();
        finish(std::mem::replace(&mut child.0, spare))
    };
    let second = finished(second);
    assert!(second.json()["notes"].to_string().contains(&first_words), "{second:?}");
    assert!(second.stderr.contains(&first_words), "{}", second.stderr);
    let first = finished(first);
    assert!(first.json()["notes"].to_string().contains(&second_words), "{first:?}");
    // A kill leaves no claim.
    let words = process_of(&killed);
    assert!(first.json()["notes"].to_string().contains(&words), "{first:?}");
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let after = run(&[&SECONDS[..], &["--json"]].concat());
    assert!(!after.json()["notes"].to_string().contains(&words), "{after:?}");
}
