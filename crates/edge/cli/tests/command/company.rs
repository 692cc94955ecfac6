//! Other users of the host are named, in `load` and in what it leaves.
//!
//! Measurements find each other within a network namespace, so that one of the test's own keeps out those of other tests.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Finished, finish, run, virtbench, wait_for};

/// Ends with the test, whatever becomes of it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace, for as long as a process that does nothing lives in it.
struct OwnNetwork(Ended);

impl OwnNetwork {
    fn new() -> Self {
        let holder =
            Command::new("unshare").args(["--user", "--map-root-user", "--net", "sleep", "300"]).spawn();
        let holder = Ended(holder.unwrap());
        let network = |pid: &str| std::fs::read_link(Path::new("/proc").join(pid).join("ns/net")).ok();
        let pid = holder.0.id().to_string();
        wait_for("a network namespace", || (network(&pid)? != network("self")?).then_some(()));
        Self(holder)
    }

    fn inside(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--preserve-credentials", "--net", "--target", &self.0.0.id().to_string()]);
        command.arg("--").arg(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn load(&self, words: &[&str]) -> Ended {
        Ended(self.inside(virtbench().get_program()).args(words).spawn().unwrap())
    }

    /// Sockets of the namespace.
    fn sockets(&self) -> String {
        finish(self.inside("cat").arg("/proc/net/unix").spawn().unwrap()).stdout
    }
}

fn finished(mut child: Ended) -> Finished {
    let spare = Command::new("true").spawn().unwrap();
    finish(std::mem::replace(&mut child.0, spare))
}

const SECONDS: [&str; 9] = ["load", "--target", "null", "--size", "1MiB", "--ramp", "0s", "--time", "2s"];

#[test]
fn other_programs_on_the_host_are_said() {
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
    let network = OwnNetwork::new();
    let long = |time: &str| {
        network
            .load(&["load", "--target", "null", "--size", "1MiB", "--ramp", "0s", "--json", "--time", time])
    };
    let mut killed = long("60s");
    let name = |child: &Ended| format!("@virtbench-measures/{}/load", child.0.id());
    let is_listed = |name: &str| network.sockets().contains(name);
    wait_for("the first to claim the host", || is_listed(&name(&killed)).then_some(()));
    let process_of = |child: &Ended| format!("virtbench load (process {})", child.0.id());
    // The second finds the first, and the first the second: it looks again and again.
    let first = long("5s");
    wait_for("the second to claim the host", || is_listed(&name(&first)).then_some(()));
    let second = long("3s");
    let (first_words, second_words) = (process_of(&first), process_of(&second));
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
    let after = finished(network.load(&[&SECONDS[..], &["--json"]].concat()));
    assert!(!after.json()["notes"].to_string().contains(&words), "{after:?}");
}
