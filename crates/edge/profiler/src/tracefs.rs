//! An instance of the kernel's tracing that is ours alone.
//!
//! Tracefs is mounted for this process only, without a place in the file system (`fsmount`), so that a
//! machine on which nobody mounted it is left as it was. The instance goes with the value; one that a
//! kill -9 left behind is taken away by the next.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_counters::tracefs;

/// Buffers of all processors together, in kilobytes: some 600,000 events, which a busy disk makes in seconds while the
/// reader waits for a processor.
const BUFFERS_KB: usize = 64 << 10;
/// The least of one processor's.
const LEAST_BUFFER_KB: usize = 4 << 10;
/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks read before anything else is done.
const CHUNKS_AT_ONCE: usize = 64;
/// How instances of this program are called, with the process id after it.
const PREFIX: &str = "virtbench-profile-";
/// What is traced.
const EVENTS: [&str; 3] = ["block/block_bio_queue", "block/block_rq_complete", "sched/sched_process_fork"];

/// Why the block layer's events cannot be had.
#[derive(Debug, Error)]
pub enum NoTracing {
    /// Not without privileges, or not in this kernel.
    #[error("tracefs cannot be mounted ({0}): root is needed, and a kernel with tracing")]
    Mount(io::Error),
    /// Something in it did not work.
    #[error("tracefs: {what}: {source}")]
    Refused {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Events as they happen.
#[derive(Debug)]
pub struct Tracing {
    instance: PathBuf,
    pipe: File,
    partial: Vec<u8>,
    chunk: Vec<u8>,
    // Dropped last: paths lead through it.
    _mount: OwnedFd,
}

impl Tracing {
    /// Begins to trace.
    ///
    /// # Errors
    /// It is not permitted, or the kernel does not offer it.
    pub fn start() -> Result<Self, NoTracing> {
        let mount = tracefs().map_err(|error| NoTracing::Mount(error.into()))?;
        let instances = PathBuf::from(format!("/proc/self/fd/{}/instances", mount.as_raw_fd()));
        remove_stale(&instances);
        let instance = instances.join(format!("{PREFIX}{}", std::process::id()));
        let refused = |what: &str| {
            let what = what.to_owned();
            move |source| NoTracing::Refused { what, source }
        };
        match fs::create_dir(&instance) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refused("an instance")(error));
            }
            _ => {}
        }
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(instance.join("trace_pipe"));
        let pipe = opened.map_err(|error| {
            let _ = fs::remove_dir(&instance);
            refused("trace_pipe")(error)
        })?;
        let tracing =
            Self { instance, pipe, partial: Vec::new(), chunk: vec![0; CHUNK_BYTES], _mount: mount };
        tracing.set("trace_clock", "mono")?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        tracing.set("buffer_size_kb", &(BUFFERS_KB / processors).max(LEAST_BUFFER_KB).to_string())?;
        for event in EVENTS {
            tracing.set(&format!("events/{event}/enable"), "1")?;
        }
        Ok(tracing)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), NoTracing> {
        let write =
            || OpenOptions::new().write(true).open(self.instance.join(name))?.write_all(value.as_bytes());
        write().map_err(|source| NoTracing::Refused { what: name.to_owned(), source })
    }

    /// Nothing that happens from now on is traced. What was traced before can still be drained.
    pub fn stop(&self) {
        for event in EVENTS {
            let _ = self.set(&format!("events/{event}/enable"), "0");
        }
    }

    /// Hands over what has happened since the last time, line by line, without waiting. `false` where more
    /// may be there still: a busy machine's events are more than one call reads.
    ///
    /// # Errors
    /// The pipe cannot be read.
    pub fn drain(&mut self, mut take: impl FnMut(&str)) -> Result<bool, NoTracing> {
        for _ in 0..CHUNKS_AT_ONCE {
            match self.pipe.read(&mut self.chunk) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    self.partial.extend_from_slice(&self.chunk[..count]);
                    let whole = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    for line in self.partial[..whole].split(|byte| *byte == b'\n') {
                        take(&String::from_utf8_lossy(line));
                    }
                    self.partial.drain(..whole);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(NoTracing::Refused { what: "trace_pipe".into(), source }),
            }
        }
        Ok(false)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.stop();
        // An instance whose pipe is open is busy.
        if let Ok(nothing) = File::open("/dev/null") {
            self.pipe = nothing;
        }
        let _ = fs::remove_dir(&self.instance);
    }
}

/// Takes away what processes that are gone have left.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
