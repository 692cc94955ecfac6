//! `fence calibrate`: the predictors' coefficients of real devices, found as [VirtualFence 2013], section 6.3 finds them.
//!
//! What is written is what is there: a block is read, and then written with the same bytes while nobody else can change
//! it. So the disks keep their contents, wherever on the device an access is.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use thiserror::Error;
use virtbench_fence::cache::layout;
use virtbench_fence::predict::{FastSample, SlowSample};
use virtbench_fence::{Device, DeviceOp, DiskId, IoError, Time};
use virtbench_fence_sim::calibrate::{
    Access, BATCHES, Batches, CalibrationError, Errors, LARGEST, fit_fast_device, fit_slow_device,
};

use crate::cache_metadata::superblocks;
use crate::config::{Built, Config, FastFound, LABEL_BYTES, Predictions, SlowFound};
use crate::device::{Backend, Io, Opened, open};
use crate::label::{Label, LabelError};
use crate::memory::{Buffer, Segment};
use crate::ring::{Event, Ring};
use crate::serve_error::{ServeError, system};

/// Batches of a device at least, however long they take.
const LEAST_BATCHES: u32 = 100;

/// Accesses one behind the other, and flushes, that are measured.
const RUNS: usize = 21;

/// Bytes of an access: a block of the cache.
const BLOCK_BYTES: u32 = 4096;

/// How devices are measured.
#[derive(Debug, Clone, Copy)]
pub struct CalibrateOptions {
    /// How long each device is measured; a hundred batches at least, 16,000 at most.
    pub time: Duration,
    /// Of places, sizes and kinds.
    pub seed: u64,
}

/// Why a device is not calibrated.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum CalibrateError {
    /// The devices cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Batches determine no predictor.
    #[error("{device}: {source}: measure for longer (--time)")]
    Fit { device: String, source: CalibrationError },
    /// A device fails.
    #[error("{device}: {source}")]
    Io { device: String, source: io::Error },
    /// The configuration has no real device.
    #[error("there is nothing to measure: the configuration has no device but null:")]
    Nothing,
    /// The caller has had enough.
    #[error("interrupted: nothing was written")]
    Interrupted,
}

/// Measures the devices of a configuration that has been formatted and is not being served. `progress` is told what is
/// measured and how much of the time has passed, and says whether to go on.
///
/// # Errors
/// The devices are not those of this fence, are in use, fail, or tell nothing.
pub fn calibrate(
    config: &Config,
    options: &CalibrateOptions,
    mut progress: impl FnMut(&str, f64) -> bool,
) -> Result<Predictions, CalibrateError> {
    let home = config.home().unwrap_or(Built::Slow);
    let mut found = Predictions::default();
    let (living, cached) = match home {
        Built::Slow => ((Device::Slow, &config.slow), None),
        Built::Fast => ((Device::Fast, &config.fast), None),
        Built::Cached { .. } => ((Device::Slow, &config.slow), config.fast.as_ref()),
    };
    if let (device, Some(table)) = living {
        let opened = open(device, &table.device).map_err(ServeError::from)?;
        if let Some(file) = &opened.file {
            let name = table.device.path().map_or_else(String::new, |path| path.display().to_string());
            let label = Label::read(file, &name)
                .map_err(ServeError::from)?
                .ok_or_else(|| ServeError::from(LabelError::None { device: name.clone() }))?;
            label.check(config, &name).map_err(ServeError::from)?;
            found.label = label.uuid;
            let end = label.disks.iter().map(|disk| disk.offset_bytes + disk.size_bytes).max().unwrap_or(0);
            let span = Span { base: LABEL_BYTES, bytes: end.saturating_sub(LABEL_BYTES), name };
            measure(device, opened, &span, options, &mut found, &mut progress)?;
        }
    }
    if let Some(table) = cached {
        let opened = open(Device::Fast, &table.device).map_err(ServeError::from)?;
        if let Some(file) = &opened.file {
            let name = table.device.path().map_or_else(String::new, |path| path.display().to_string());
            let blocks = superblocks(file, &name)?;
            let end = layout(&blocks)
                .map_err(|source| ServeError::Cache { device: name.clone(), source })?
                .end_bytes;
            let span = Span { base: 0, bytes: end, name };
            measure(Device::Fast, opened, &span, options, &mut found, &mut progress)?;
        }
    }
    if found.slow.is_none() && found.fast.is_none() {
        return Err(CalibrateError::Nothing);
    }
    Ok(found)
}

/// What of a device is measured.
struct Span {
    base: u64,
    bytes: u64,
    name: String,
}

/// How far the measuring of a device is.
struct Pace<'a> {
    what: String,
    begun: Instant,
    options: &'a CalibrateOptions,
    batches: u32,
}

impl Pace<'_> {
    /// Whether there is to be another batch.
    fn goes_on(&mut self, progress: &mut impl FnMut(&str, f64) -> bool) -> Result<bool, CalibrateError> {
        let passed = self.begun.elapsed().as_secs_f64() / self.options.time.as_secs_f64().max(1e-9);
        let share = passed.min(f64::from(self.batches) / f64::from(LEAST_BATCHES));
        if !progress(&self.what, share.min(1.0)) {
            return Err(CalibrateError::Interrupted);
        }
        let enough = self.batches >= LEAST_BATCHES && passed >= 1.0 || self.batches >= BATCHES;
        self.batches += 1;
        Ok(!enough)
    }
}

fn measure(
    device: Device,
    opened: Opened,
    span: &Span,
    options: &CalibrateOptions,
    found: &mut Predictions,
    progress: &mut impl FnMut(&str, f64) -> bool,
) -> Result<(), CalibrateError> {
    let block = opened.backend.facts().block_bytes.max(BLOCK_BYTES);
    let mut bench =
        Bench::new(device, opened.backend, span.base, block).map_err(|source| system("io_uring", source))?;
    let failed = |source| CalibrateError::Io { device: span.name.clone(), source };
    let unfit = |source| CalibrateError::Fit { device: span.name.clone(), source };
    let mut batches = Batches::new(span.bytes, block.into(), options.seed);
    let what = span.name.clone();
    let mut pace = Pace { what, begun: Instant::now(), options, batches: 0 };
    match device {
        Device::Slow => {
            let mut samples = Vec::new();
            while pace.goes_on(progress)? {
                samples.push(slow_sample(&mut bench, &batches.slow(), block).map_err(failed)?);
            }
            let streaming_ns = streaming_ns(&mut bench, span.bytes, block).map_err(failed)?;
            let flush_ns = flush_ns(&mut bench, &mut batches).map_err(failed)?;
            let (predictor, errors) =
                fit_slow_device(&samples, streaming_ns, block.into(), flush_ns).map_err(unfit)?;
            found.slow = Some(SlowFound::new(&span.name, &predictor, &errors));
        }
        Device::Fast => {
            let mut samples = Vec::new();
            while pace.goes_on(progress)? {
                let batch = batches.fast();
                bench.prepare(&batch).map_err(failed)?;
                let service_ns = bench.measure(&batch).map_err(failed)?;
                samples.push(FastSample { count: batch.len(), service_ns });
            }
            let (predictor, errors) = fit_fast_device(&samples).map_err(unfit)?;
            found.fast = Some(FastFound::new(&span.name, predictor, &errors));
        }
    }
    Ok(())
}

fn slow_sample(bench: &mut Bench, batch: &[Access], block: u32) -> io::Result<SlowSample> {
    bench.prepare(batch)?;
    let mut at = bench.head_bytes();
    let distance = |access: &Access| {
        let distance = access.offset_bytes.abs_diff(at);
        at = access.offset_bytes + u64::from(block);
        distance
    };
    let distances_bytes = batch.iter().map(distance).collect();
    Ok(SlowSample { distances_bytes, service_ns: bench.measure(batch)? })
}

/// A block that begins where the last one ended: the median of runs over the device.
fn streaming_ns(bench: &mut Bench, span_bytes: u64, block: u32) -> io::Result<f64> {
    let block = u64::from(block);
    let count = LARGEST.min(span_bytes / block / 2).max(1);
    let mut runs = Vec::new();
    for run in 0..RUNS as u64 {
        let room = span_bytes.saturating_sub((count + 1) * block);
        let begin = room / RUNS as u64 * run / block * block;
        let access = |place: u64| Access { offset_bytes: begin + place * block, write: false };
        bench.measure(&[access(0)])?;
        let rest: Vec<Access> = (1..=count).map(access).collect();
        runs.push(bench.measure(&rest)? as f64 / count as f64);
    }
    runs.sort_by(f64::total_cmp);
    Ok(runs[RUNS / 2])
}

/// A flush behind a write: the median.
fn flush_ns(bench: &mut Bench, batches: &mut Batches) -> io::Result<u64> {
    let mut flushes = Vec::new();
    for _ in 0..RUNS {
        let write: Vec<Access> =
            batches.slow().iter().take(1).map(|access| Access { write: true, ..*access }).collect();
        bench.prepare(&write)?;
        bench.measure(&write)?;
        flushes.push(bench.flush()?);
    }
    flushes.sort_unstable();
    Ok(flushes[RUNS / 2])
}

/// Writes what was found to a file, whole or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn keep(found: &Predictions, path: &Path) -> Result<(), CalibrateError> {
    found.write(path).map_err(|source| CalibrateError::Io { device: path.display().to_string(), source })
}

/// The distribution of errors in one line.
#[must_use]
pub fn describe(errors: &Errors) -> String {
    let [p5, p25, p50, p75, p95] = errors.quantiles_ms;
    format!(
        "{} held-out batches of {:.0} accesses, {:.3} ms on average: predicted less measured, ms: 5 % {p5:.3}, 25 % {p25:.3}, \
         median {p50:.3}, 75 % {p75:.3}, 95 % {p95:.3}; {:.0} % within {} ms",
        errors.batches,
        errors.mean_batch,
        errors.mean_service_ms,
        errors.within * 100.0,
        errors.limit_ms
    )
}

/// Entries of the ring: a batch fits.
const RING_ENTRIES: u32 = 256;

/// How long a batch may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A device under test, with memory for a batch.
pub(super) struct Bench {
    device: Device,
    backend: Box<dyn Backend>,
    ring: Ring,
    origin: Instant,
    buffers: Vec<Buffer>,
    /// The same memory, as devices take it.
    segments: Vec<Segment>,
    block_bytes: u32,
    /// Places of accesses are from here on.
    base_bytes: u64,
    /// Where the last access ended.
    head_bytes: u64,
}

impl Bench {
    pub(super) fn new(
        device: Device,
        backend: Box<dyn Backend>,
        base_bytes: u64,
        block_bytes: u32,
    ) -> io::Result<Self> {
        let block = block_bytes as usize;
        let buffers: Vec<Buffer> = (0..LARGEST).map(|_| Buffer::zeroed(block)).collect();
        let segments = buffers.iter().map(Buffer::segment).collect();
        let (ring, origin) = (Ring::new(RING_ENTRIES)?, Instant::now());
        Ok(Self { device, backend, ring, origin, buffers, segments, block_bytes, base_bytes, head_bytes: 0 })
    }

    /// Where the last access ended, from the base.
    pub(super) const fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// Fetches what the batch is going to write, so that it writes what is there already. The head ends up somewhere else.
    pub(super) fn prepare(&mut self, batch: &[Access]) -> io::Result<()> {
        self.round(batch, |access| access.write.then_some(DeviceOp::Read)).map(|_| ())
    }

    /// Carries a prepared batch out, all of it at once. Gives nanoseconds from handing it over to the last answer.
    pub(super) fn measure(&mut self, batch: &[Access]) -> io::Result<u64> {
        self.round(batch, |access| Some(if access.write { DeviceOp::Write } else { DeviceOp::Read }))
    }

    /// A flush, in nanoseconds.
    pub(super) fn flush(&mut self) -> io::Result<u64> {
        let begun = Instant::now();
        let io = Io {
            slot: 0,
            disk: DiskId(0),
            op: DeviceOp::Flush,
            offset_bytes: 0,
            len_bytes: 0,
            segments: &[],
        };
        self.backend.start(time(self.origin), &io, &mut self.ring);
        self.finish(1, begun)
    }

    fn round(&mut self, batch: &[Access], op: impl Fn(&Access) -> Option<DeviceOp>) -> io::Result<u64> {
        debug_assert!(batch.len() <= self.buffers.len());
        let mut left = 0;
        let begun = Instant::now();
        for ((slot, access), segment) in (0u32..).zip(batch).zip(&self.segments) {
            let Some(op) = op(access) else { continue };
            let offset_bytes = self.base_bytes + access.offset_bytes;
            let segments = std::slice::from_ref(segment);
            let io = Io { slot, disk: DiskId(0), op, offset_bytes, len_bytes: self.block_bytes, segments };
            self.backend.start(time(self.origin), &io, &mut self.ring);
            self.head_bytes = access.offset_bytes + u64::from(self.block_bytes);
            left += 1;
        }
        self.finish(left, begun)
    }

    fn finish(&mut self, mut left: usize, begun: Instant) -> io::Result<u64> {
        let mut events = Vec::new();
        let mut failed = None;
        loop {
            while let Some(finished) = self.backend.finished() {
                left -= 1;
                if let Err(error) = finished.result {
                    failed = Some(error);
                }
            }
            if left == 0 {
                break;
            }
            let Some(limit) = LIMIT.checked_sub(begun.elapsed()) else {
                // The device may still write to this memory: it must not be used for anything else.
                self.buffers.drain(..).for_each(std::mem::forget);
                self.segments.clear();
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "a batch was not answered within a minute",
                ));
            };
            let now = time(self.origin);
            let due = self.backend.next_deadline().map(|at| Duration::from_nanos(at.since(now)));
            self.ring.wait(Some(due.unwrap_or(limit).min(limit)))?;
            self.ring.reap(usize::MAX, &mut events);
            let now = time(self.origin);
            for event in events.drain(..) {
                if let Event::Device { slot, result, .. } = event {
                    self.backend.on_ring(now, slot, result, &mut self.ring);
                }
            }
            if self.backend.next_deadline().is_some_and(|at| at <= now) {
                self.backend.on_timer(now, &mut self.ring);
            }
        }
        let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match failed {
            None => Ok(ns),
            Some(IoError::Device(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(error) => Err(io::Error::other(format!("{:?}: {error:?}", self.device))),
        }
    }
}

fn time(origin: Instant) -> Time {
    Time::from_ns(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
