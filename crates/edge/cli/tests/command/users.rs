//! `virtbench users` as a user runs it, on servers of the test's own.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Finished, finish, long_figures, run, signal, virtbench, wait_for};
use virtbench_record::{UsersOutcome, UsersService};
use virtbench_users::{LocalKind, LocalService, free_port};

const SHORT: [&str; 4] = ["--ramp", "100ms", "--time", "1s"];

fn users(service: &str, server: &LocalService, words: &[&str]) -> Finished {
    run(&[&["users", service, &server.address()], &SHORT[..], words].concat())
}

#[test]
fn pages_values_and_failures_are_told_by_command() {
    let (nginx, redis) =
        (LocalService::start(LocalKind::Nginx).unwrap(), LocalService::start(LocalKind::Redis).unwrap());
    let table =
        users("web", &nginx, &["--path", "/=3", "--path", "/16k", "--path", "/?id=42", "--users", "3"]);
    assert_eq!(table.code(), 0, "{table:?}");
    for words in
        ["nginx", "operations/s", "us of CPU an operation", "/16k", "p95 ms", "/=3 /16k=1 /?id=42=1", "all"]
    {
        assert!(table.stdout.contains(words), "{words}: {}", table.stdout);
    }
    let told =
        users("key-value", &redis, &["--json", "--rate", "200/s", "--keys", "50", "--value-size", "1KiB"]);
    assert_eq!(told.code(), 0, "{told:?}");
    let outcome: UsersOutcome = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (outcome.plan.service, outcome.plan.users, outcome.series.len()),
        (UsersService::KeyValue, 8, 1)
    );
    assert_eq!(outcome.details["value_bytes"], "1024");
    assert_eq!(outcome.target, format!("redis://{}", redis.address()));
    let open_loop = outcome.open_loop.as_ref().unwrap();
    assert_eq!(open_loop.offered, 200);
    // Of what begins within the second, all but the backlog and one operation a user end within it.
    let least = open_loop.offered - open_loop.backlog_end - u64::from(outcome.plan.users);
    // Those of the ramp-up may end within it too.
    let most = open_loop.offered + 20;
    assert!((least..=most).contains(&outcome.all.completed), "{outcome:?}");
    assert!(long_figures(&told.stdout).is_empty());
    let failed = users("web", &nginx, &["--path", "/broken", "--json", "--rate", "50/s"]);
    assert_eq!(failed.code(), 5, "{failed:?}");
    assert_eq!((failed.json()["all"]["completed"].as_u64(), failed.stdout.lines().count()), (Some(0), 1));
    assert!(failed.stderr.contains("x HTTP 500"), "{}", failed.stderr);
}

#[test]
fn what_cannot_be_asked_for_is_refused_in_words() {
    let nginx = LocalService::start(LocalKind::Nginx).unwrap();
    let (there, nobody) = (nginx.address(), format!("127.0.0.1:{}", free_port().unwrap()));
    let smtp = nobody.rsplit(':').next().unwrap();
    for (words, code, said) in [
        (&["web", &nobody][..], 3, "cannot connect to 127.0.0.1"),
        (&["key-value", &nobody], 3, "check that the server runs"),
        (&["mail", "127.0.0.1", "--smtp-port", smtp], 3, "cannot connect"),
        (&["key-value", &there], 3, "Redis's protocol"),
        (&["web", "https://127.0.0.1"], 2, "not encrypted"),
        (&["web", "127.0.0.1:x"], 2, "HOST:PORT"),
        (&["web", &there, "--path", "index.html"], 2, "is no path"),
        (&["web", &there, "--rate", "5/s", "--think", "1s"], 2, "cannot be used with"),
        (&["web", &there, "--users", "1", "--threads", "2"], 2, "no more threads than users"),
        (&["key-value", &there, "--mix", "0,0"], 2, "not all of them zero"),
        (&["mail", "127.0.0.1", "--user", "a", "--mailboxes", "2"], 2, "user{}"),
        (&["mail", "127.0.0.1", "--password-file", "/nowhere"], 2, "cannot read /nowhere"),
    ] {
        let refused = run(&[&["users"][..], words].concat());
        assert_eq!(refused.code(), code, "{words:?}: {refused:?}");
        assert!(refused.stderr.contains(said) && refused.stdout.is_empty(), "{words:?}: {refused:?}");
    }
}

#[test]
fn an_interrupted_load_tells_what_was_measured() {
    let nginx = LocalService::start(LocalKind::Nginx).unwrap();
    let mut command = virtbench();
    command.args([
        "users",
        "web",
        &nginx.address(),
        "--ramp",
        "0s",
        "--time",
        "60s",
        "--rate",
        "100/s",
        "--json",
    ]);
    let child = command.spawn().unwrap();
    let claim = format!("virtbench-measures/{}/users", child.id());
    wait_for("the load", || {
        std::fs::read_to_string("/proc/net/unix").unwrap().contains(&claim).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal(&child, "INT");
    let ended = finish(child);
    assert_eq!(ended.code(), 130, "{ended:?}");
    let outcome: UsersOutcome = serde_json::from_str(&ended.stdout).unwrap();
    assert!(outcome.interrupted && outcome.all.completed > 0 && outcome.all.failed == 0, "{ended:?}");
}

/// A control group of a test, which gives its processes 3 ms of processor in each 100.
struct Quota(std::path::PathBuf);

impl Quota {
    fn make() -> Self {
        let name = format!("virtbench-test-quota-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let (group, settings) = if first.exists() {
            (first.join(name), vec![("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "3000")])
        } else {
            let root = Path::new("/sys/fs/cgroup");
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+cpu");
            (root.join(name), vec![("cpu.max", "3000 100000")])
        };
        std::fs::create_dir(&group).expect("this test makes a control group: run it as root");
        for (setting, value) in settings {
            std::fs::write(group.join(setting), value).unwrap();
        }
        Self(group)
    }

    /// The same command in this group.
    fn hold(&self, command: &Command) -> Command {
        let mut held = Command::new("sh");
        held.args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""]).arg(&self.0);
        held.arg(command.get_program()).args(command.get_args());
        held.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        held
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_driver_that_a_quota_holds_back_is_named_as_the_limit_though_it_is_hardly_busy() {
    let redis = LocalService::start(LocalKind::Redis).unwrap();
    let quota = Quota::make();
    let mut command = virtbench();
    command.args(["users", "key-value", &redis.address(), "--keys", "10", "--json"]).args(SHORT);
    let held = finish(quota.hold(&command).spawn().unwrap());
    assert_eq!(held.code(), 0, "{held:?}");
    let outcome: UsersOutcome = serde_json::from_str(&held.stdout).unwrap();
    assert!(outcome.driver_is_limit && outcome.busiest_thread_percent < 50.0, "{held:?}");
    assert!(
        outcome.notes.iter().any(|note| note.contains("quota of its control group")),
        "{:?}",
        outcome.notes
    );
    let free = finish(command.spawn().unwrap());
    let outcome: UsersOutcome = serde_json::from_str(&free.stdout).unwrap();
    assert!(outcome.throttled_percent.is_none_or(|percent| percent < 5.0), "{free:?}");
}
