//! `virtbench appliance`: roots of the distribution's own packages. It needs root, mmdebstrap and, once for each target folder,
//! the servers of the distribution; `make test` sets up the rest.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{
    Finished, build_appliances, finish, folder, is_alive, run, signal, virtbench, wait_for,
};
use serde_json::Value;
use tempfile::TempDir;
use virtbench_samples::this_run::{OfThisRun, of_this_run};

const RECIPE: &str = r#"
name = "tiny"
description = "a test's own"
packages = ["busybox-static"]
memory = "128MiB"

[build]
exclude = ["/usr/share/common-licenses/*", "/usr/lib/*/gconv/*"]
run = ["/bin/busybox cat /etc/tiny/greeting > /etc/tiny/copied", "id -un > /etc/tiny/who; ls /sys/class/net > /etc/tiny/nets"]

[[files]]
path = "/etc/tiny/greeting"
text = "good morning\n"
mode = "0640"
owner = "tiny"

[[files]]
path = "/etc/tiny/early"
text = "before\n"
before_packages = true

[[users]]
name = "tiny"
home = "/var/lib/tiny"

[[services]]
name = "tiny"
command = ["/bin/busybox", "nc", "-lk", "-p", "7"]
user = "tiny"
ready = { tcp = 7 }

[data]
folder = "/var/lib/tiny/data"
user = "tiny"
prepare = []
size = "64MiB"
"#;

fn shared() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("appliance-packages")
}

/// A cache whose packages all tests share, so that they are fetched once.
struct Cache {
    folder: PathBuf,
    _kept: Kept,
}

/// What ends with a cache.
enum Kept {
    Folder { _removed: TempDir },
    Turn { _let_go: OfThisRun },
    Nothing,
}

impl Cache {
    /// One of a test's own.
    fn new() -> Self {
        let folder = folder();
        Self::within(folder.path().to_owned(), Kept::Folder { _removed: folder })
    }

    fn within(folder: PathBuf, kept: Kept) -> Self {
        let own = Self { folder, _kept: kept };
        let shared = shared();
        fs::create_dir_all(&shared).unwrap();
        fs::create_dir(own.path("appliances")).unwrap();
        symlink(shared, own.path("appliances/packages")).unwrap();
        fs::write(own.path("tiny.toml"), RECIPE).unwrap();
        own
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn recipe(&self) -> String {
        self.path("tiny.toml").display().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = virtbench();
        command.arg("appliance").args(words);
        self.here(command)
    }

    fn here(&self, mut command: Command) -> Command {
        command.env("VIRTBENCH_CACHE", &self.folder).env("XDG_CONFIG_HOME", self.path("config"));
        command
    }

    fn run(&self, words: &[&str]) -> Finished {
        finish(self.command(words).spawn().unwrap())
    }

    /// The same by a command that makes the world in which it runs.
    fn run_by(&self, world: &[&str], words: &[&str]) -> Finished {
        let mut command = Command::new(world[0]);
        command.args(&world[1..]).arg(env!("CARGO_BIN_EXE_virtbench")).arg("appliance").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(self.here(command).spawn().unwrap())
    }

    /// A build that has come so far that it is unpacking, in namespaces of its own.
    fn begin(&self) -> std::process::Child {
        let log = self.path("appliances/tiny.log");
        let _ = fs::remove_file(&log);
        let mut child = self.command(&["build", &self.recipe()]).spawn().unwrap();
        wait_for("packages to be unpacked", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended before that");
            fs::read_to_string(&log).is_ok_and(|said| said.contains("I: extracting archives")).then_some(())
        });
        child
    }

    fn built(&self) -> Vec<Value> {
        let listed = self.run(&["list", "--json"]).json();
        listed["others"].as_array().unwrap().clone()
    }

    /// What is mounted from here, by anybody who still lives.
    fn mounts(&self) -> Vec<String> {
        let place = self.folder.display().to_string();
        let of =
            |process: fs::DirEntry| fs::read_to_string(process.path().join("mounts")).unwrap_or_default();
        let all = fs::read_dir("/proc").unwrap().flatten().map(of);
        all.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.contains(&place))
            .collect()
    }

    /// Processes that run something from here.
    fn processes(&self) -> Vec<u32> {
        let place = self.folder.display().to_string();
        let is_here = |id: &u32| {
            fs::read(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&place) && is_alive(*id))
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_here).collect()
    }

    fn is_left_alone(&self) {
        wait_for("processes and mounts to be gone", || {
            (self.processes().is_empty() && self.mounts().is_empty()).then_some(())
        });
    }
}

/// The cache in which the recipe is built once for all tests of a run, with what the build printed.
fn built() -> (Cache, Value) {
    let shared = of_this_run(Path::new(env!("CARGO_TARGET_TMPDIR")), "appliance-built", |made| {
        let cache = Cache::within(made.to_owned(), Kept::Nothing);
        let done = cache.run(&["build", &cache.recipe(), "--json", "--progress", "lines"]);
        assert_eq!(done.code(), 0, "{done:?}");
        for phase in ["resolving", "configuring", "finishing", "image"] {
            assert!(done.stderr.contains(&format!("tiny: {phase}")), "{phase}: {}", done.stderr);
        }
        fs::write(cache.path("answer"), done.stdout).unwrap();
    });
    let folder = shared.folder.clone();
    let answer = serde_json::from_slice(&fs::read(folder.join("answer")).unwrap()).unwrap();
    (Cache { folder, _kept: Kept::Turn { _let_go: shared } }, answer)
}

#[test]
fn a_recipe_becomes_a_root_of_its_packages_files_users_and_scripts() {
    let (cache, answer) = built();
    assert_eq!(answer["new"], true);
    let packages = answer["manifest"]["packages"].as_object().unwrap();
    assert!(packages.contains_key("busybox-static") && packages.contains_key("libc6"), "{answer}");
    assert_eq!(cache.built()[0]["built"], answer["manifest"]);
    let again = cache.run(&["build", &cache.recipe(), "--json"]);
    assert_eq!((again.json()["new"].as_bool(), again.code()), (Some(false), 0), "{again:?}");

    let script = "cat /etc/tiny/copied /etc/tiny/early /etc/tiny/who /etc/tiny/nets /etc/hostname; \
        stat -c '%U %a' /etc/tiny/greeting /var/lib/tiny/data /var/lib/tiny; ls -A /usr/share/doc /var/cache/apt /dev/shm; \
        touch /written; exit 7";
    let said = cache.run(&["shell", "tiny", "--", "sh", "-c", script]);
    assert_eq!(said.code(), 7, "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().filter(|line| !line.is_empty()).collect();
    let wanted = ["good morning", "before", "root", "lo", "tiny", "tiny 640", "tiny 755", "tiny 755"];
    assert_eq!(
        lines,
        [&wanted[..], &["/dev/shm:", "/usr/share/doc:", "/var/cache/apt:"]].concat(),
        "{said:?}"
    );
    let gone = cache.run(&["shell", "tiny", "--", "test", "!", "-e", "/written"]);
    assert_eq!(gone.code(), 0, "a copy is thrown away: {gone:?}");
    cache.is_left_alone();
    let image = answer["image"].as_str().unwrap();
    let loops = Command::new("losetup").args(["-j", image]).output().unwrap();
    assert!(loops.stdout.is_empty(), "{loops:?}");
}

#[test]
fn an_appliance_runs_to_be_tried_and_leaves_nothing() {
    // Services are no part of a root.
    let (cache, _) = built();
    let serving = RECIPE
        .replace("\"nc\", \"-lk\", \"-p\", \"7\"", "\"httpd\", \"-f\", \"-p\", \"8007\"")
        .replace("tcp = 7", "tcp = 8007")
        .replace("\n[data]", "ports = [8007]\n\n[data]");
    fs::write(cache.path("serving.toml"), &serving).unwrap();
    let recipe = cache.path("serving.toml").display().to_string();
    let left = || fs::read_dir(cache.path("appliances/tried")).map_or(0, Iterator::count);
    let timed = cache.run(&["run", &recipe, "--native", "--time", "1s", "--logs"]);
    assert_eq!(timed.code(), 0, "{timed:?}");
    for words in [
        "service  tiny, ready after",
        "port     8007 at 127.0.0.1:8007",
        "nsenter --net",
        "tiny ended by signal 15",
    ] {
        assert!(timed.stdout.contains(words), "{words}: {timed:?}");
    }
    assert!(timed.stderr.contains("the end of tiny's log"), "{timed:?}");
    assert_eq!(left(), 0);
    let mut child = cache.command(&["run", &recipe, "--native", "--json"]).spawn().unwrap();
    let mut line = String::new();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let answer: Value = loop {
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "{line}");
        if let Ok(answer) = serde_json::from_str(&line) {
            break answer;
        }
    };
    assert_eq!((answer["ports"]["8007"].as_str(), left()), (Some("127.0.0.1:8007"), 1), "{answer}");
    let agent = u32::try_from(answer["process"].as_u64().unwrap()).unwrap();
    // A kill leaves the data, which the next one removes.
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the appliance to end with its command", || (!is_alive(agent)).then_some(()));
    assert_eq!(left(), 1);
    let child = cache.command(&["run", &recipe, "--native"]).spawn().unwrap();
    wait_for("the second one", || {
        let folder = fs::read_dir(cache.path("appliances/tried")).unwrap().flatten().next();
        folder.filter(|folder| folder.path().join("data.ext4").exists()).map(drop)
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!((stopped.code(), left()), (0, 0), "{stopped:?}");
    let dies = serving.replace(
        "\"/bin/busybox\", \"httpd\"",
        "\"/bin/busybox\", \"timeout\", \"5\", \"/bin/busybox\", \"httpd\"",
    );
    fs::write(cache.path("dies.toml"), dies).unwrap();
    let died = cache.run(&["run", &cache.path("dies.toml").display().to_string(), "--native"]);
    assert!(died.code() == 6 && died.stderr.contains("tiny"), "{died:?}");
    assert_eq!(left(), 0);
    cache.is_left_alone();
}

/// What a server that runs like this says to a client, whose words and which are the same wherever it runs.
fn said_by(recipe: &str, more: &[&str], client: &[&str]) -> String {
    said_by_run(virtbench(), recipe, more, client).1
}

/// The same where this command is virtbench, for what it runs, after what virtbench says, and what the path costs.
fn said_by_run(mut command: Command, recipe: &str, more: &[&str], client: &[&str]) -> (Value, String) {
    let mut child = command.args(["appliance", "run", recipe, "--json"]).args(more).spawn().unwrap();
    let mut line = String::new();
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    while !line.ends_with("}\n") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0, "{recipe} {more:?}");
    }
    child.stdout = Some(said.into_inner());
    let mut answer: Value = serde_json::from_str(&line).unwrap();
    let network = format!("--net={}", answer["network"].as_str().unwrap());
    let mut path = Command::new("nsenter");
    path.arg(&network).arg(env!("CARGO_BIN_EXE_virtbench")).args(["appliance", "path", "--json"]);
    let path = path.arg(answer["agent"].as_str().unwrap()).output().unwrap();
    answer["path"] = serde_json::from_slice(&path.stdout).unwrap_or_else(|_| panic!("{path:?}"));
    let (_, address) = answer["ports"].as_object().unwrap().iter().next().unwrap();
    let (host, port) = address.as_str().unwrap().split_once(':').unwrap();
    let mut command = Command::new("nsenter");
    command.arg(&network).arg(client[0]);
    let output = command.args(["-h", host, "-p", port]).args(&client[1..]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    signal(&child, "INT");
    let ended = finish(child);
    assert_eq!(ended.code(), 0, "{ended:?}");
    (answer, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn real_servers_in_guests_of_user_mode_linux_say_what_they_say_natively() {
    build_appliances(&["redis", "postgresql"]);
    let script = "redis.call('set', 'a', 6); return {redis.call('incr', 'a'), redis.sha1hex('a'), #redis.call('keys', '*')}";
    let sql = "select sum(i), md5(string_agg(i::text, '-')), sqrt(2::numeric), current_setting('server_version') \
               from generate_series(1, 50000) i";
    let clients: [(&str, &[&str]); 2] = [
        ("redis", &["redis-cli", "eval", script, "0"]),
        ("postgresql", &["psql", "-U", "postgres", "-A", "-c", sql]),
    ];
    for (recipe, client) in clients {
        let natively = said_by(recipe, &["--native"], client);
        assert!(natively.len() > 40, "{natively}");
        assert_eq!(said_by(recipe, &["--accelerator", "uml"], client), natively);
    }
    for (more, why) in [
        (&["--vcpus", "2"][..], "2 processors: a guest of User Mode Linux has one"),
        (&["--kernel", "/none"], "VIRTBENCH_UML names one"),
    ] {
        let mut command = virtbench();
        command.args(["appliance", "run", "redis", "--accelerator", "uml"]).args(more);
        let refused = finish(command.spawn().unwrap());
        assert!(refused.code() != 0 && refused.stderr.contains(why), "{refused:?}");
    }
}

#[test]
fn a_guest_of_user_mode_linux_is_reached_without_rights_and_without_a_tap_device() {
    build_appliances(&["redis"]);
    // A user with number 0 maps it with this right alone (user_namespaces(7)); others need none.
    let no_rights = "exec setpriv --bounding-set=-all,+setfcap --inh-caps=-all \"$0\" \"$@\"";
    for before in ["true", "mount -t tmpfs none /dev/net"] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{before} && {no_rights}")]);
        command.arg(env!("CARGO_BIN_EXE_virtbench")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // Long values are cut into frames, and their checksums are looked at.
        let script =
            "redis.call('set', 'a', string.rep('x', 3000000)); return {redis.call('get', 'a'), 'whole'}";
        let client = ["redis-cli", "eval", script, "0"];
        let (answer, said) = said_by_run(command, "redis", &["--accelerator", "uml"], &client);
        assert!(said.len() > 3_000_000 && said.trim().ends_with("whole"), "{before}: {} bytes", said.len());
        let [to, from] = ["to", "from"].map(|way| answer["path"][format!("{way}_bytes_per_s")].as_f64());
        assert!(to > Some(1e5) && from > Some(1e5), "{before}: {answer}");
    }
}

#[test]
fn an_appliance_without_rights_is_refused_at_once_where_it_needs_them() {
    let cache = Cache::new();
    let unable = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"];
    let natively = cache.run_by(&unable, &["run", &cache.recipe(), "--native"]);
    assert!(natively.code() == 4 && natively.stderr.contains("as root"), "{natively:?}");
    // A host that allows nobody a user namespace.
    let forbids = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" \"$@\"";
    let world = ["unshare", "--user", "--map-root-user", "sh", "-c", forbids];
    let refused = cache.run_by(&world, &["run", &cache.recipe(), "--accelerator", "uml"]);
    assert_eq!(refused.code(), 4, "{refused:?}");
    let why = "user.max_user_namespaces is 0; run as root";
    assert!(refused.stderr.contains(why), "{refused:?}");
    assert_eq!(cache.built(), Vec::<Value>::new(), "nothing was built for it");
}

#[test]
fn the_same_packages_make_the_same_bytes_without_a_network() {
    let (_cache, first) = built();
    let other = Cache::new();
    let second = other.run_by(&["unshare", "--net"], &["build", &other.recipe(), "--json"]);
    assert_eq!(second.code(), 0, "{second:?}");
    let second = second.json();
    for field in ["digest", "recipe_digest", "image_digest", "packages"] {
        assert_eq!(first["manifest"][field], second["manifest"][field], "{field}");
    }
    let [a, b] = [&first["image"], &second["image"]].map(|image| image.as_str().unwrap().to_owned());
    assert!(Command::new("cmp").args([&a, &b]).status().unwrap().success());
    let checked = Command::new("/sbin/e2fsck").args(["-f", "-n", &b]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let removed = other.run(&["remove", "tiny"]);
    assert!(removed.stdout.contains("1 roots"), "{removed:?}");
    assert!(!Path::new(&b).exists());
    let none = other.run(&["remove", "tiny"]);
    assert!(none.code() == 2 && none.stderr.contains("was not built"), "{none:?}");
}

/// What mmdebstrap would leave outside the folder of a build that is killed.
fn scratch_of_mmdebstrap() -> BTreeSet<String> {
    let files = fs::read_dir("/tmp").unwrap().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("mmdebstrap.")).collect()
}

#[test]
fn a_killed_build_leaves_a_folder_that_the_next_one_removes_and_a_stopped_one_nothing() {
    let cache = Cache::new();
    let left = cache.path("appliances/building/tiny");
    let before = scratch_of_mmdebstrap();
    let mut child = cache.begin();
    child.kill().unwrap();
    child.wait().unwrap();
    cache.is_left_alone();
    assert!(left.exists());
    assert_eq!(scratch_of_mmdebstrap(), before);
    assert_eq!(cache.built(), Vec::<Value>::new());
    let child = cache.begin();
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    cache.is_left_alone();
    assert!(!left.exists(), "what was left by both is gone");
    assert_eq!(cache.built(), Vec::<Value>::new());
}

#[test]
fn a_script_that_fails_is_named_and_leaves_nothing() {
    let cache = Cache::new();
    fs::write(cache.recipe(), RECIPE.replace("id -un", "echo no luck; false; id -un")).unwrap();
    let failed = cache.run(&["build", &cache.recipe()]);
    assert_eq!(failed.code(), 1, "{failed:?}");
    for words in ["build.run, script 002, of tiny failed", "no luck", "tiny.log"] {
        assert!(failed.stderr.contains(words), "{words}: {failed:?}");
    }
    assert!(fs::read_to_string(cache.path("appliances/tiny.log")).unwrap().contains("Setting up libc6"));
    assert!(!cache.path("appliances/building/tiny").exists());
}

#[test]
fn what_keeps_a_root_from_being_built_is_said_with_the_next_step() {
    let cache = Cache::new();
    let refused = |finished: Finished, code: i32, words: &[&str]| {
        assert_eq!(finished.code(), code, "{finished:?}");
        words.iter().for_each(|words| assert!(finished.stderr.contains(words), "{words}: {finished:?}"));
    };
    let other = |from: &str, to: &str| {
        fs::write(cache.path("other.toml"), RECIPE.replace(from, to)).unwrap();
        cache.run(&["build", cache.path("other.toml").to_str().unwrap()])
    };
    refused(
        other("busybox-static", "busybox-statc"),
        2,
        &["no package busybox-statc", "did you mean busybox-static"],
    );
    refused(
        other("[\"busybox-static\"]", "[\"sysvinit-core\", \"systemd-sysv\"]"),
        2,
        &["together", "Conflicts"],
    );
    refused(other("\npackages =", "\npackage ="), 2, &["other.toml", "line 4"]);
    let own = cache.path("config/virtbench/appliances");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("broken.toml"), "no recipe").unwrap();
    let said = ["there is no recipe mariadv", "postgresql", "\nleft out: ", "broken.toml"];
    refused(cache.run(&["build", "mariadv"]), 2, &said);
    refused(cache.run(&["shell", "redis"]), 2, &["redis was not built yet: virtbench appliance build redis"]);

    let recipe = cache.recipe();
    let without = cache.run_by(&["unshare", "--user"], &["build", &recipe]);
    refused(without, 4, &["run this as root", "subuids"]);
    let [place, archive] = [cache.path("appliances"), shared()].map(|path| path.display().to_string());
    let small =
        format!("mount -t tmpfs -o size=64m tmpfs {place}; ln -s {archive} {place}/packages; exec \"$@\"");
    let room = cache.run_by(&["unshare", "-m", "sh", "-c", &small, "sh"], &["build", &recipe]);
    refused(room, 3, &["the root of tiny needs", "are free", "VIRTBENCH_CACHE"]);
    fs::remove_file(cache.path("appliances/packages")).unwrap();
    let offline = cache.run_by(&["unshare", "--net"], &["build", &recipe]);
    refused(offline, 4, &["cannot be reached", "Look at the network"]);

    let tools = cache.path("tools");
    fs::create_dir(&tools).unwrap();
    for tool in ["apt-get", "apt-cache"] {
        symlink(Path::new("/usr/bin").join(tool), tools.join(tool)).unwrap();
    }
    let path = format!("PATH={}", tools.display());
    let missing = cache.run_by(&["/usr/bin/env", &path], &["build", &recipe]);
    refused(missing, 4, &["mmdebstrap is missing", "scripts/setup.sh appliances"]);
}

#[test]
fn a_user_s_own_recipes_are_found_by_name_and_the_supplied_ones_listed() {
    let cache = Cache::new();
    let own = cache.path("config/virtbench/appliances");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("tiny.toml"), RECIPE).unwrap();
    fs::write(own.join("broken.toml"), "name = 1").unwrap();
    let listed = cache.run(&["list"]);
    assert_eq!(listed.code(), 0, "{listed:?}");
    for name in ["tiny", "postgresql", "mariadb", "redis", "nginx", "a test's own"] {
        assert!(listed.stdout.contains(name), "{name}: {listed:?}");
    }
    assert!(listed.stderr.contains("broken.toml"), "{listed:?}");
    let not_built = cache.run(&["shell", "tiny"]);
    assert!(not_built.stderr.contains("tiny was not built yet"), "{not_built:?}");
    assert!(run(&["help"]).stdout.contains("appliance"));
}
