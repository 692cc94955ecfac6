//! Caches as they are after a long time: filled at the speed of the files under the models.
//!
//! At a hard disk's speed it would take many minutes. The cache outlives the daemon that filled it, so that the one
//! that is measured, whatever its scheduler, finds it as it was left.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use virtbench_engine::{Control, Target, TargetRequest};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::{FenceError, FenceRequest};

/// Accesses of each cached block, on average.
const TIMES: u64 = 3;
/// How long one round of reading takes.
const ROUND_NS: u64 = 250_000_000;
/// How long the cache of one disk may take.
const LIMIT: Duration = Duration::from_secs(60);
/// What was written last and is not flushed is lost with the first daemon, which is as good as not written.
const FLUSH_EVERY: u32 = 100;
/// Between one round's seed and the next one's.
const SEEDS: u64 = 1000;
const BLOCK_BYTES: u64 = 4096;

/// Accesses each disk until its cache has seen enough.
pub(super) fn fill(
    request: &FenceRequest<'_>,
    nbd: &Path,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<(), FenceError> {
    let FenceRequest { names, size_bytes, options, .. } = *request;
    let reads = AccessSpec::single(AccessLine::new(BLOCK_BYTES, 100.0, 100.0));
    let access = request.warm.unwrap_or(&reads);
    let writes = access.lines.iter().any(|line| line.read_percent < 100.0);
    let wanted = size_bytes / BLOCK_BYTES * u64::from(options.cache_percent) / 100 * TIMES;
    for (seed, name) in (0..).zip(names) {
        let request = TargetRequest {
            path: format!("nbd+unix:///{name}?socket={}", nbd.display()).into(),
            size_bytes: None,
            direct: true,
            reads: true,
            writes,
            allow_overwrite: true,
        };
        let target = Target::open(&request, |_, _| true)?;
        let mut spec = LoadSpec {
            outstanding: 32,
            ramp_ns: 0,
            time_ns: ROUND_NS,
            interval_ns: ROUND_NS,
            seed,
            flush_every: writes.then_some(FLUSH_EVERY),
            ..LoadSpec::new(access.clone(), size_bytes)
        };
        let (begun, mut done) = (Instant::now(), 0);
        while done < wanted && !stop.load(Ordering::Relaxed) {
            if begun.elapsed() > LIMIT {
                return Err(FenceError::Slow);
            }
            on_progress("filling the caches", done, wanted);
            spec.seed += SEEDS;
            done += virtbench_engine::run(&spec, &target, &Control::new(1), 0, |_| ())?.total.operations;
        }
    }
    Ok(())
}
