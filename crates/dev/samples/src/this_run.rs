//! What several tests of one run share, although each has a process of its own: it is made once a run, by the code that is tested,
//! and never taken from an earlier one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// How long the others may keep it.
const LIMIT: Duration = Duration::from_secs(240);

/// A folder that is this test's alone until the value is dropped.
#[derive(Debug)]
pub struct OfThisRun {
    /// With what was made.
    pub folder: PathBuf,
    _lock: File,
}

/// The folder `name` in `within`, which `make` fills where no test of this run has.
///
/// A run is what nextest numbers; elsewhere a process is one. Two runs in one place make it anew for each other.
pub fn of_this_run(within: &Path, name: &str, make: impl FnOnce(&Path)) -> OfThisRun {
    let place = within.join(name);
    fs::create_dir_all(&place).unwrap();
    let lock = File::create(place.join("lock")).unwrap();
    let begun = Instant::now();
    while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        assert!(error == rustix::io::Errno::WOULDBLOCK, "{}: {error}", place.display());
        assert!(begun.elapsed() < LIMIT, "another test has kept {} for {LIMIT:?}", place.display());
        sleep(Duration::from_millis(20));
    }
    let (mark, folder) = (place.join("run"), place.join("made"));
    let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string());
    if fs::read_to_string(&mark).is_ok_and(|made| made == run) {
        return OfThisRun { folder, _lock: lock };
    }
    for gone in [fs::remove_file(&mark), fs::remove_dir_all(&folder)] {
        assert!(gone.is_ok() || gone.is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    }
    fs::create_dir(&folder).unwrap();
    make(&folder);
    fs::write(&mark, run).unwrap();
    OfThisRun { folder, _lock: lock }
}
