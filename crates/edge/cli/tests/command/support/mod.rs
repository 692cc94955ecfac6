//! Running the command as a user does, with a limit on every wait.

#![allow(clippy::unwrap_used, dead_code, reason = "helpers of two test programs, each of which uses some")]

pub mod bridge;
pub mod fence;
pub mod libvirtd;
pub mod run_folder;
pub mod ssh_guest;
pub mod sshd;
pub mod terminal;
pub mod windows;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long anything may take before the test fails.
pub const LIMIT: Duration = Duration::from_secs(240);

/// How long an appliance may take to be built, its packages fetched.
const BUILD_LIMIT: Duration = Duration::from_secs(900);

/// What a finished command left.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A folder on the disk of the build rather than in /tmp, which may be a tmpfs without direct I/O.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub fn virtbench() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtbench"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to the end.
pub fn run(arguments: &[&str]) -> Finished {
    finish(virtbench().args(arguments).spawn().unwrap())
}

/// A run of two environments on this host, `a` and `b`, at two points, into `out` in this folder.
pub fn two_environments(folder: &Path, out: &str, repetitions: u32) -> PathBuf {
    let (out, grid) = (folder.join(out), folder.join("grid.toml"));
    std::fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let other = format!("b=native:{}", folder.join("other").display());
    let [out_, grid] = [&out, &grid].map(|path| path.display().to_string());
    let words = ["study", "compare", "--size", "8MiB", "--ramp", "20ms", "--time", "60ms", "--repetitions"];
    let more =
        [&repetitions.to_string(), "--environment", "a=native:", "--environment", &other, "--grid", &grid];
    let done = run(&[&words[..], &more, &["--out", &out_]].concat());
    assert_eq!(done.code(), 0, "{done:?}");
    out
}

/// Waits for the end, within the limit.
pub fn finish(child: Child) -> Finished {
    finish_within(child, LIMIT)
}

/// Waits for the end, within a limit of the caller's; what it had said by then is shown.
pub fn finish_within(mut child: Child, limit: Duration) -> Finished {
    let stdout = Said::read(child.stdout.take().unwrap());
    let stderr = Said::read(child.stderr.take().unwrap());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill().unwrap();
            panic!("still running after {limit:?}; it said {:?} and {:?}", stdout.so_far(), stderr.so_far());
        }
        thread::sleep(Duration::from_millis(20));
    };
    Finished { status, stdout: stdout.whole(), stderr: stderr.whole() }
}

/// What comes out of a pipe.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Said {
    fn read(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                match pipe.read(&mut buffer).unwrap() {
                    0 => return,
                    count => into.lock().unwrap().extend_from_slice(&buffer[..count]),
                }
            }
        });
        Self { bytes, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn whole(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.bytes.lock().unwrap())).unwrap()
    }
}

/// Sends a signal to a process this test started.
pub fn signal(child: &Child, name: &str) {
    signal_pid(child.id(), name);
}

pub fn signal_pid(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Waits until something is so.
pub fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A study of the operations of this platform, without a ramp.
pub fn begin_operations(platform: &str, out: &Path, more: &[&str]) -> Child {
    let out = out.display().to_string();
    let words = ["study", "operations", "--platform", platform, "--ramp", "0s", "--out", &out];
    virtbench().args(words).args(more).spawn().unwrap()
}

/// All that the files of a folder say.
pub fn texts(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        all += &if path.is_dir() {
            texts(&path)
        } else {
            String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
        };
    }
    all
}

/// Builds appliances, which takes minutes on a machine that has none yet, before a test's own limits count.
pub fn build_appliances(recipes: &[&'static str]) {
    static BUILT: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut all = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    for recipe in recipes {
        if all.contains(recipe) {
            continue;
        }
        let built =
            finish_within(virtbench().args(["appliance", "build", recipe]).spawn().unwrap(), BUILD_LIMIT);
        assert_eq!(built.code(), 0, "{recipe}: {built:?}");
        all.insert(recipe);
    }
}

/// Processes whose parent is `pid`, as (pid, command name).
pub fn children(pid: u32) -> Vec<(u32, String)> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|child| {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
            let (name, rest) = (stat.split_once('(')?.1.rsplit_once(')')?.0, stat.rsplit_once(") ")?.1);
            let parent: u32 = rest.split(' ').nth(1)?.parse().ok()?;
            (parent == pid).then(|| (child, name.to_owned()))
        })
        .collect()
}

pub fn is_alive(pid: u32) -> bool {
    // A zombie has ended; it only waits to be asked for its status.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Arguments of a small study into `out`, whose VM is emulated.
pub fn small_study(folder: &Path, out: &Path, time: &str, repetitions: u32) -> Vec<String> {
    let grid = folder.join("grid.toml");
    std::fs::write(&grid, "blocks = ['4k']\nreads = [0, 100]\nrandoms = [100]\n").unwrap();
    let words = "study native-vs-vm --accelerator tcg --size 32MiB --ramp 50ms --time".split(' ');
    let words: Vec<&str> = words.chain([time, "--grid"]).collect();
    let mut arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    arguments.extend([grid, PathBuf::from("--out"), out.to_owned()].map(|path| path.display().to_string()));
    arguments.extend(["--repetitions".to_owned(), repetitions.to_string()]);
    arguments
}

/// Figures in `json` with more than seven significant digits that are no whole numbers.
pub fn long_figures(json: &str) -> Vec<String> {
    let value: serde_json::Value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let mut found = Vec::new();
    let mut rest = vec![&value];
    while let Some(value) = rest.pop() {
        match value {
            serde_json::Value::Array(list) => rest.extend(list),
            serde_json::Value::Object(fields) => rest.extend(fields.values()),
            serde_json::Value::Number(number) => {
                let text = number.to_string();
                let mantissa = text.split('e').next().unwrap_or_default();
                let is_fraction = number.as_f64().is_some_and(|value| value.fract() != 0.0);
                let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
                if is_fraction && digits.trim_start_matches('0').len() > 7 {
                    found.push(text);
                }
            }
            _ => {}
        }
    }
    found
}
