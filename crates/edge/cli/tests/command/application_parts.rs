//! Applications that need more than one service of the agent's: the root's own init, and tiers that reach each other.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run_folder::{loops_in, records, scratch};
use crate::support::{Finished, build_appliances, finish, finish_within, folder, virtbench};
use serde_json::Value;
use std::time::Duration;

pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// Redis as its package runs it, and a unit of the recipe's own beside it.
const UNDER_SYSTEMD: &str = r#"
name = "redis-systemd"
description = "Redis as its package's unit, under the root's own systemd"
packages = ["systemd-sysv", "redis-server"]
memory = "256MiB"
init = "full"

[[files]]
path = "/etc/redis/redis.conf"
text = "bind 0.0.0.0\nprotected-mode no\nsupervised auto\ndir /var/lib/redis\nsave 3600 1\n"

[[services]]
name = "redis"
unit = "redis-server.service"
ready = { output = "Ready to accept connections" }
ports = [6379]

[[services]]
name = "beside"
command = ["/bin/sh", "-c", "echo \"as $(id -un) of 100%\"; exec sleep 1000"]
user = "redis"
ready = { output = "as redis of 100%" }

[data]
folder = "/var/lib/redis"
user = "redis"
prepare = []
size = "64MiB"
"#;

/// Connections that come here go to another tier.
pub(crate) const RELAY: &str = r#"
name = "relay"
description = "what comes in goes on to the host cache"
packages = ["busybox-static"]
memory = "128MiB"

[[services]]
name = "relay"
command = ["/bin/busybox", "nc", "-ll", "-p", "6390", "-e", "/bin/busybox", "nc", "cache", "6379"]
user = "nobody"
ready = { tcp = 6390 }
ports = [6390]
"#;

fn metric(script: &str, head: &str) -> String {
    format!(
        "{head}\nrepetitions = 1\nlimit = '60s'\nclient = ['sh', '-c', '''{script}''']\n\
         [[metric]]\nname = 'rate'\npattern = 'rate ([0-9.]+)'\nunit = '1/s'\nbetter = 'higher'\n"
    )
}

/// Runs a study of a recipe that is written beside it.
fn study(folder: &Path, name: &str, recipe: &str, text: &str, more: &[&str]) -> (PathBuf, Finished) {
    fs::write(folder.join("recipe.toml"), recipe).unwrap();
    let path = folder.join("recipe.toml");
    let built = virtbench().args(["appliance", "build"]).arg(&path).spawn().unwrap();
    let built = finish_within(built, BUILD_LIMIT);
    assert_eq!(built.code(), 0, "{built:?}");
    let (file, out) = (folder.join(format!("{name}.toml")), folder.join(name));
    fs::write(&file, text).unwrap();
    let mut command = virtbench();
    command.args(["study", "application"]).arg(&file).arg("--out").arg(&out);
    (out, finish(command.args(["--accelerator", "uml"]).args(more).spawn().unwrap()))
}

/// Control groups of version 2 that a process which is gone has left.
fn groups_left() -> Vec<String> {
    let groups = fs::read_dir("/sys/fs/cgroup/unified").into_iter().flatten().flatten();
    let names = groups.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_left = |name: &String| {
        let owner =
            name.strip_prefix("virtbench-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists())
    };
    names.filter(is_left).collect()
}

#[test]
fn a_root_with_its_own_systemd_runs_natively_and_in_a_guest_and_is_stopped_in_order() {
    let temp = folder();
    // What Redis keeps in memory is on disk only if it was stopped in order when the data were prepared.
    let prepare = "prepare = [['redis-cli', '-h', '{host}', '-p', '{port}', 'set', 'kept', '42']]";
    let head = format!("appliance = './recipe.toml'\n{prepare}");
    let text = metric("echo rate $(redis-cli -h {host} -p {port} get kept)", &head);
    let (out, finished) = study(temp.path(), "run", UNDER_SYSTEMD, &text, &[]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let all = records(&out);
    let sides: Vec<&str> = all.iter().filter_map(|line| line["side"].as_str()).collect();
    assert_eq!(sides, ["native", "vm"]);
    for line in &all {
        assert_eq!(line["values"]["rate"], 42.0, "{line}");
        let services: Vec<&str> = line["appliance"]["services"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|service| service["service"].as_str())
            .collect();
        assert_eq!(services, ["redis", "beside"]);
    }
    // A unit that ends is told, although its package would have it started again.
    let gone = "redis-cli -h {host} -p {port} shutdown nosave; sleep 60";
    let head = "appliance = './recipe.toml'\nsides = ['native']";
    let (out, finished) = study(temp.path(), "gone", UNDER_SYSTEMD, &metric(gone, head), &[]);
    assert_eq!(finished.code(), 5, "{finished:?}");
    let why = records(&out)[0]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("redis: it ended with exit code 0"), "{why}");
    assert_eq!((loops_in(temp.path()), scratch(&out), groups_left()), Default::default());
}

#[test]
fn a_unit_that_does_not_start_says_why() {
    let temp = folder();
    let started = "\"/bin/sh\", \"-c\", \"echo \\\"as $(id -un) of 100%\\\"; exec sleep 1000\"";
    let recipe = UNDER_SYSTEMD.replace(started, "\"/bin/none\"");
    assert_ne!(recipe, UNDER_SYSTEMD);
    let head = "appliance = './recipe.toml'\nsides = ['native']";
    let (out, finished) = study(temp.path(), "run", &recipe, &metric("echo rate 1", head), &[]);
    assert_ne!(finished.code(), 0, "{finished:?}");
    let is_said = finished.stderr.contains("beside: it ended with exit code 203 before it was ready");
    assert!(is_said && finished.stderr.contains("/bin/none"), "{finished:?}");
    assert_eq!((loops_in(temp.path()), groups_left()), Default::default());
    // Where the data were not prepared before, that is what failed, and the run has taken its folder with it.
    assert!(!out.exists() || scratch(&out).is_empty());
}

#[test]
fn a_tier_is_reached_by_its_name_natively_and_between_guests_by_every_network() {
    build_appliances(&["redis"]);
    let temp = folder();
    let script = "redis-cli -h {host} -p {port} set a 7 && echo rate $(redis-cli -h {host} -p {port} get a)";
    let tier = "[[tier]]\nname = 'cache'\nappliance = 'redis'\n";
    let text = metric(script, "appliance = './recipe.toml'") + tier;
    for (network, sides) in [("user", &["native", "vm"][..]), ("tap", &["vm"])] {
        let text = if network == "tap" { format!("sides = ['vm']\n{text}") } else { text.clone() };
        let (out, finished) = study(temp.path(), network, RELAY, &text, &["--network", network, "--json"]);
        assert_eq!(finished.code(), 0, "{network}: {finished:?}");
        let all = records(&out);
        assert_eq!(all.iter().filter_map(|line| line["side"].as_str()).collect::<Vec<_>>(), sides);
        for line in &all {
            assert_eq!(
                (&line["values"]["rate"], &line["tiers"][0]["name"]),
                (&7.0.into(), &"cache".into()),
                "{line}"
            );
            let trip = line["tiers"][0]["path"]["round_trip_median_ns"].as_u64().unwrap();
            assert!(trip > 1000, "{line}");
            let words = line["appliance"]["command_line"].to_string();
            assert_eq!(
                words.contains("vec1:transport=fd"),
                network == "user" && line["side"] == "vm",
                "{words}"
            );
        }
        let summary = finished.json();
        let path = summary.pointer("/sides/0/tier_paths/cache/to_bytes_per_s").and_then(Value::as_f64);
        assert!(path.is_some_and(|rate| rate > 1e4), "{summary}");
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("Path from vm to its tier cache"));
        assert_eq!((loops_in(temp.path()), scratch(&out)), Default::default());
    }
    let gone = "redis-cli -h {host} -p {port} shutdown nosave; sleep 60";
    let text = metric(gone, "appliance = './recipe.toml'\nsides = ['native']") + tier;
    let (out, finished) = study(temp.path(), "gone", RELAY, &text, &[]);
    assert_eq!(finished.code(), 5, "{finished:?}");
    let why = records(&out)[0]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("tier cache of native: redis: it ended with exit code 0"), "{why}");
}
