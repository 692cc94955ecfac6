//! Running virtbench and fio on the same load.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::pairs::Sample;

/// Size of the file that is read, as both tools take it.
const SIZE: &str = "1G";

/// Operations that virtbench hands to the kernel at once.
const SUBMIT_BATCH: u32 = 4;

/// Which tool.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    /// Ours.
    Virtbench,
    /// The anchor.
    Fio,
}

/// What is loaded.
#[derive(Debug, Clone)]
pub enum Target {
    /// Nothing: the engines alone.
    Null,
    /// A file, past the page cache.
    File(PathBuf),
    /// An NBD export, by its URI.
    Nbd(String),
    /// A vhost-user-blk server's socket. fio as Debian builds it cannot reach one.
    VhostUser(PathBuf),
}

/// One load, as both tools are asked for it: 4 KiB random reads.
pub struct Case {
    /// What it is called.
    pub name: String,
    target: Target,
    outstanding: u32,
    workers: u32,
    batched: bool,
    reads_each: bool,
}

impl Case {
    /// A load of one worker on this target.
    pub fn new(target: &Target, outstanding: u32) -> Self {
        let what = match target {
            Target::Null => "null",
            Target::File(_) => "file",
            Target::Nbd(_) => "NBD",
            Target::VhostUser(_) => "vhost-user",
        };
        Self {
            name: format!("{what}, 4 KiB random read, depth {outstanding}"),
            target: target.clone(),
            outstanding,
            workers: 1,
            batched: outstanding >= SUBMIT_BATCH,
            reads_each: false,
        }
    }

    /// The same load by so many workers, each with as many operations in flight.
    pub fn workers(self, workers: u32) -> Self {
        Self { name: format!("{} x {workers} workers", self.name), workers, ..self }
    }

    /// The same load with fio submitting one by one, for its latency: that of operations in a batch
    /// leaves out the time in the batch (depth over IOPS shows it).
    pub fn unbatched(self) -> Self {
        Self { name: format!("{}, fio unbatched", self.name), batched: false, ..self }
    }

    /// The same load with virtbench reading the clock for each operation, as fio does, and not once for a
    /// batch.
    pub fn reading_each(self) -> Self {
        Self { name: format!("{}, a clock reading each", self.name), reads_each: true, ..self }
    }

    /// Measures once.
    pub fn measure(&self, engine: Engine) -> Result<Sample> {
        match engine {
            Engine::Virtbench => self.virtbench(),
            Engine::Fio => self.fio(),
        }
    }

    fn virtbench(&self) -> Result<Sample> {
        let mut command = Command::new(virtbench());
        command.args(self.arguments()).args(["--ramp", "500ms", "--time", "3s"]);
        let json = json(&mut command)?;
        let operations = number(&json, "/total/operations")?;
        Ok(Sample {
            iops: number(&json, "/total/iops")?,
            mean_latency_ns: number(&json, "/total/latency_ns/mean")?,
            cpu_per_io_ns: (number(&json, "/own_cpu_ns/0")? + number(&json, "/own_cpu_ns/1")?) / operations,
        })
    }

    /// The load as virtbench is asked for it, but for its times.
    pub fn arguments(&self) -> Vec<OsString> {
        let target: OsString = match &self.target {
            Target::Null => "null".into(),
            Target::File(path) => path.into(),
            Target::Nbd(uri) => uri.into(),
            Target::VhostUser(socket) => format!("vhost-user:{}", socket.display()).into(),
        };
        let (outstanding, workers) = (self.outstanding.to_string(), self.workers.to_string());
        let words = ["load", "--bs", "4k", "--read", "100", "--random", "100", "--json", "--size", SIZE];
        let more = ["--seed", "1", "--outstanding", &outstanding, "--workers", &workers, "--target"];
        let clock: &[&str] = if self.reads_each { &["--clock", "each"] } else { &[] };
        let words = words.into_iter().chain(clock.iter().copied()).chain(more);
        words.map(OsString::from).chain([target]).collect()
    }

    /// fio as somebody who knows it would set it up: files and buffers registered, no map of blocks
    /// visited and no submission latency, neither of which virtbench has, and the same batch.
    fn fio(&self) -> Result<Sample> {
        let mut command = Command::new("fio");
        command.args(["--name=bench", "--rw=randread", "--bs=4k", "--time_based", "--output-format=json"]);
        command.args(["--ramp_time=500ms", "--runtime=3s", "--randseed=1"]);
        command.args([format!("--size={SIZE}"), format!("--iodepth={}", self.outstanding)]);
        command.args(["--norandommap", "--disable_slat=1", "--group_reporting"]);
        command.arg(format!("--numjobs={}", self.workers));
        match &self.target {
            Target::Null => command.args(["--ioengine=null", "--filename=null"]),
            Target::File(path) => command
                .args(["--ioengine=io_uring", "--direct=1", "--registerfiles", "--fixedbufs"])
                .args(self.batch())
                .arg(format!("--filename={}", path.display())),
            Target::Nbd(uri) => command.arg("--ioengine=nbd").arg(format!("--uri={uri}")),
            Target::VhostUser(_) => bail!("fio has no engine for vhost-user"),
        };
        let json = json(&mut command)?;
        let job = "/jobs/0";
        let iops = number(&json, &format!("{job}/read/iops"))?;
        let cpu_percent =
            number(&json, &format!("{job}/usr_cpu"))? + number(&json, &format!("{job}/sys_cpu"))?;
        Ok(Sample {
            iops,
            mean_latency_ns: number(&json, &format!("{job}/read/lat_ns/mean"))?,
            // The percentages are of the sum of the jobs' times.
            cpu_per_io_ns: cpu_percent / 100.0 * 1e9 * f64::from(self.workers) / iops,
        })
    }

    /// virtbench submits four operations a call and takes whatever has completed; so may fio.
    fn batch(&self) -> Vec<String> {
        if !self.batched {
            return Vec::new();
        }
        vec![
            format!("--iodepth_batch_submit={SUBMIT_BATCH}"),
            "--iodepth_batch_complete_min=1".into(),
            format!("--iodepth_batch_complete_max={}", self.outstanding),
        ]
    }
}

/// Makes and writes the file that is read, the way virtbench makes any test file.
pub fn make_file(path: &Path) -> Result<()> {
    make_file_of(path, SIZE)
}

/// The same of another size.
pub fn make_file_of(path: &Path, size: &str) -> Result<()> {
    let mut command = Command::new(virtbench());
    command.args(["load", "--json", "--size", size, "--ramp", "0s", "--time", "10ms", "--target"]).arg(path);
    json(&mut command).map(|_| ())
}

/// What the figures were measured on, in a line.
pub fn machine() -> Result<String> {
    let fio =
        Command::new("fio").arg("--version").output().context("fio: run `make bench`, which installs it")?;
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("")
        .trim_matches([':', '\t', ' ']);
    let processors = cpuinfo.matches("processor\t").count();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let fio = String::from_utf8_lossy(&fio.stdout);
    Ok(format!("{processors} x {model}, Linux {}, {}", kernel.trim(), fio.trim()))
}

/// Runs a program and reads the JSON object that it prints.
pub fn json(command: &mut Command) -> Result<Value> {
    let output =
        command.output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr)
    );
    // fio may put warnings before the object.
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(begin) = text.find('{') else { bail!("{} printed no JSON", command.get_program().display()) };
    Ok(serde_json::from_str(&text[begin..])?)
}

/// The number at a JSON pointer.
pub fn number(json: &Value, path: &str) -> Result<f64> {
    json.pointer(path).and_then(Value::as_f64).with_context(|| format!("no number at {path}"))
}

/// Where the command is, built as it is installed.
pub fn virtbench() -> &'static Path {
    Path::new("target/release/virtbench")
}
