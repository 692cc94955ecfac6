//! What the tests of the engine's features share.

#![allow(clippy::unwrap_used, dead_code, reason = "a test; each file uses a part of it")]

pub mod servers;

use std::path::Path;

use tempfile::TempDir;
use virtbench_engine::{Control, EngineError, Target, TargetRequest, run};
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

/// Size of a test file, in bytes.
pub const SIZE: u64 = 4 << 20;

/// A folder beside the build rather than in /tmp, which may be a tmpfs without direct I/O.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Opens a target for everything.
pub fn target(path: &Path) -> Target {
    let request = TargetRequest {
        path: path.to_owned(),
        size_bytes: Some(SIZE),
        direct: true,
        reads: true,
        writes: true,
        allow_overwrite: false,
    };
    Target::open(&request, |_, _| true).unwrap()
}

/// A short load of one worker on 4 KiB blocks.
pub fn spec(read_percent: f64) -> LoadSpec {
    LoadSpec {
        outstanding: 8,
        ramp_ns: 0,
        time_ns: 200_000_000,
        interval_ns: 100_000_000,
        seed: 5,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, read_percent, 100.0)), SIZE)
    }
}

/// Applies a load that must be possible.
pub fn apply(spec: &LoadSpec, target: &Target) -> LoadOutcome {
    attempt(spec, target).unwrap()
}

/// Applies a load.
pub fn attempt(spec: &LoadSpec, target: &Target) -> Result<LoadOutcome, EngineError> {
    run(spec, target, &Control::new(spec.workers), 0, |_| ())
}
