//! A daemon in a thread of the test's own.

#![allow(dead_code, clippy::unwrap_used)]

pub mod clients;
pub mod raw;
pub mod register;
pub mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;
use virtbench_engine::{Control, Target, TargetRequest};
use virtbench_fence::catalogue::{PASS_THROUGH, Variant};
use virtbench_fence_daemon::config::{
    Config, DeviceSpec, DeviceTable, DiskTable, Listen, NbdTable, SchedulerTable,
};
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon as Serving, ServeError, format};
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessSpec, LoadSpec};

/// Size of each disk, in bytes.
pub const DISK_BYTES: u64 = 32 << 20;

/// A disk that is served at `uri`, to be read and written.
pub fn target(uri: String) -> Target {
    let request = TargetRequest {
        path: uri.into(),
        size_bytes: None,
        direct: true,
        reads: true,
        writes: true,
        allow_overwrite: true,
    };
    Target::open(&request, |_, _| true).unwrap()
}

/// Two disks, `alpha` and `beta`, and `frozen`, which is read-only; on a file, everything at once.
pub struct Daemon {
    folder: Option<TempDir>,
    pub socket: PathBuf,
    served: Vec<String>,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    /// With these lines more in `[nbd]`.
    pub fn serve(nbd: &str) -> Self {
        Self::try_serve(nbd).unwrap()
    }

    pub fn try_serve(nbd: &str) -> Result<Self, ServeError> {
        // Beside the build rather than in /tmp, which may be a tmpfs without direct I/O.
        Self::in_folder(TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), nbd)
    }

    pub fn in_folder(folder: TempDir, nbd: &str) -> Result<Self, ServeError> {
        let (image, socket) = (folder.path().join("image"), folder.path().join("nbd"));
        let is_new = !image.exists();
        if is_new {
            std::fs::File::create(&image).unwrap().set_len(4 * DISK_BYTES).unwrap();
        }
        let listen = if nbd.contains("listen") { String::new() } else { listen(&socket) };
        let frozen = DiskTable { read_only: true, ..exported("frozen", DISK_BYTES) };
        let config = Config {
            slow: Some(file(&image)),
            scheduler: scheduler(&PASS_THROUGH),
            nbd: Some(toml::from_str(&std::format!("{listen}{nbd}")).unwrap()),
            ..Config::new(vec![exported("alpha", DISK_BYTES), exported("beta", DISK_BYTES), frozen])
        };
        Self::of_config(folder, config, is_new)
    }

    /// Serves what a text configures.
    pub fn of_text(folder: TempDir, text: &str, is_new: bool) -> Result<Self, ServeError> {
        let path = folder.path().join("fence.toml");
        std::fs::write(&path, text).unwrap();
        let config = Config::load(&path).unwrap();
        Self::of_config(folder, config, is_new)
    }

    /// Serves a configuration, which is written into the folder too, over devices that are formatted first if they are new.
    pub fn of_config(folder: TempDir, config: Config, is_new: bool) -> Result<Self, ServeError> {
        let socket = folder.path().join("nbd");
        std::fs::write(folder.path().join("fence.toml"), config.text().unwrap()).unwrap();
        config.check().unwrap();
        if is_new {
            format(&config, false).unwrap();
        }
        let stopper = Stopper::new().unwrap();
        let (ready, started) = mpsc::channel();
        let ours = stopper.clone();
        let thread = std::thread::spawn(move || match Serving::start(&config, ours) {
            Ok(daemon) => {
                ready.send(Ok(daemon.served.clone())).unwrap();
                daemon.run().unwrap();
            }
            Err(error) => ready.send(Err(error)).unwrap(),
        });
        let served = started.recv_timeout(Duration::from_secs(30)).unwrap()?;
        Ok(Self { folder: Some(folder), socket, served, stopper, thread: Some(thread) })
    }

    pub fn uri(&self, export: &str) -> String {
        std::format!("nbd+unix:///{export}?socket={}", self.socket.display())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().join(name)
    }

    /// Where its figures are.
    pub fn figures(&self) -> SocketAddr {
        let address = |line: &String| line.split_once("http://")?.1.strip_suffix("/metrics")?.parse().ok();
        self.served.iter().find_map(address).unwrap()
    }

    /// Ends it; its devices stay.
    pub fn stop(mut self) -> TempDir {
        self.folder.take().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok(), "the daemon panicked");
        }
    }
}

/// A plain file as a device.
pub fn file(path: &Path) -> DeviceTable {
    DeviceTable::new(DeviceSpec::File(path.to_owned()))
}

/// A variant of the catalogue, otherwise as usual.
pub fn scheduler(variant: &'static Variant) -> SchedulerTable {
    SchedulerTable { name: variant, ..SchedulerTable::default() }
}

/// A disk that is reached over NBD by its name.
pub fn exported(name: &str, size_bytes: u64) -> DiskTable {
    DiskTable { export: Some(name.to_owned()), ..DiskTable::new(name.to_owned(), size_bytes) }
}

/// An NBD server at a socket.
pub fn nbd(socket: PathBuf) -> Option<NbdTable> {
    Some(NbdTable::new(vec![Listen::Unix(socket)]))
}

pub fn listen(socket: &Path) -> String {
    std::format!("listen = \"unix:{}\"\n", socket.display())
}

/// Runs somebody else's program for a minute at most; it must be there.
pub fn run(program: &str, package: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", program]).args(arguments);
    let output = command.output().unwrap();
    assert!(
        output.status.code() != Some(127),
        "{program}: install it with `apt-get install {package}`, or run `make setup-test`"
    );
    output
}

/// As [`run`]; it must succeed. Returns what it printed.
pub fn success(program: &str, package: &str, arguments: &[&str]) -> String {
    let output = run(program, package, arguments);
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}: {text}", output.status);
    text
}

/// A short load.
pub fn load(access: AccessSpec, region_bytes: u64) -> LoadSpec {
    let short = LoadSpec::new(access, region_bytes);
    LoadSpec { outstanding: 8, ramp_ns: 0, time_ns: 300_000_000, interval_ns: 100_000_000, seed: 5, ..short }
}

pub fn apply(spec: &LoadSpec, target: &Target) -> LoadOutcome {
    virtbench_engine::run(spec, target, &Control::new(spec.workers), 0, |_| ()).unwrap()
}
