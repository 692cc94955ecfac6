//! From a job's options to the loads that it is here.
//!
//! Where on its target a job works, and how much of it is moved: what fio 3.33 does with `filesize`, `size`,
//! `offset` and `offset_increment`.

use virtbench_workload::{
    Amount, Arrivals, Content, EngineKind, FlushKind, LoadSpec, MAX_RATE, MAX_WORKERS, Rate, Traversal,
    WriteSync,
};

use super::super::{
    ASSUMED_REGION_BYTES, Findings, FlowPart, ImportedJob, Location, MAX_JOBS, Schedule, SteadyEnd,
    Surroundings,
};
use super::draft::{Draft, Engine, Quantity};
use super::mix::{MAX_LINES, READ};

/// The longest that a job without a runtime may take, in nanoseconds: a day.
const MAX_TIME_NS: u64 = 24 * 3_600_000_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Where a job stands in its file.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    /// Its name.
    pub name: &'a str,
    /// The name that results have.
    pub shown: &'a str,
    /// Where it begins.
    pub at: Location,
    /// Its phase.
    pub group: u32,
    /// Jobs made so far.
    pub made: usize,
}

impl Draft {
    /// The jobs: one, or one for each clone where clones have files or regions of their own. What differs
    /// from fio is noted.
    pub fn finish(
        mut self,
        section: Section<'_>,
        surroundings: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Vec<ImportedJob> {
        let Section { name, shown, at, group, made } = section;
        let apart = self.has_own_files() || self.has_own_regions();
        let room = MAX_JOBS.saturating_sub(made);
        if apart && self.clones as usize > room && self.clones <= MAX_WORKERS {
            let clones = self.clones;
            findings.refuse(
                at,
                format!("[{name}] numjobs={clones}: each is a job here, and a file has at most {MAX_JOBS}"),
            );
        }
        let (jobs, workers) =
            if apart && self.clones as usize <= room { (self.clones, 1) } else { (1, self.clones) };
        self.lay_zones(section, findings);
        if self.again > 0 && (self.mix.visits_once() || self.file_bytes.is_some() || self.verify) {
            findings.ignore(
                at,
                format!("[{name}] a file that is named twice: fio keeps a map of blocks for each; add norandommap, and leave out filesize and verify, or name it once"),
            );
        }
        self.fill(section, findings);
        self.mix.follow_rates(self.rate_iops, self.rate_bytes, self.poisson);
        let mut load = self.load(section, workers, findings);
        let (amount, longest_bytes) = (load.amount, load.access.longest_bytes());
        let schedule = self.schedule(section, findings);
        (0..jobs)
            .map(|clone| {
                let target = self.target(name, at, clone, findings);
                let extent = self.extent(target.as_deref(), clone, at, surroundings, findings);
                load.region_bytes = extent.size_bytes.unwrap_or(ASSUMED_REGION_BYTES.max(longest_bytes));
                load.start_bytes = extent.start_bytes;
                load.worker_step_bytes = if jobs > 1 { 0 } else { extent.step_bytes };
                load.amount = amount.map(|amount| extent.limit(amount));
                if jobs > 1 {
                    load.seed = self.seed.unwrap_or(1).wrapping_add(clone.into());
                }
                if clone == 0
                    && let Err(error) = load.validate()
                {
                    findings.refuse(at, format!("[{name}] {error}"));
                }
                let name = if jobs > 1 { format!("{shown}.{clone}") } else { shown.to_owned() };
                let (load, schedule, size_bytes) = (load.clone(), schedule.clone(), extent.size_bytes);
                ImportedJob { name, load, target, size_bytes, group, schedule }
            })
            .collect()
    }

    /// What `fill_device` means: a block device is written from its start to its end in any case, files would grow until their file system
    /// is full.
    fn fill(&mut self, Section { name, at, .. }: Section<'_>, findings: &mut Findings) {
        let is_device = self.filename.as_ref().is_none_or(|file| file.starts_with("/dev/"));
        let writes_on = !self.mix.pattern.random && self.mix.pattern.only_writes() && self.size.is_none();
        match (self.fills, is_device && writes_on) {
            (false, _) => {}
            (true, true) => {
                findings.note("fill_device: the target is to be a block device, of which each pass writes all; a file is not made");
                self.must_exist = true;
            }
            (true, false) => findings.ignore(
                at,
                format!(
                    "[{name}] fill_device: only whole block devices that are written in sequence are filled"
                ),
            ),
        }
    }

    /// Puts zones into the mix, where they can be kept.
    fn lay_zones(&mut self, Section { name, at, .. }: Section<'_>, findings: &mut Findings) {
        match self.zones {
            (false, None, 0) => {}
            (true, Some(zone_bytes), skip_bytes) if !self.mix.pattern.random && self.clones == 1 => {
                self.mix.zones = Some((zone_bytes, skip_bytes));
            }
            _ => findings.ignore(
                at,
                format!("[{name}] zonesize and zoneskip hold for sequential jobs without clones and zonemode=strided only"),
            ),
        }
    }

    /// Whether each clone has a file of its own, as fio names them.
    pub(super) fn has_own_files(&self) -> bool {
        let named = match &self.filename_format {
            Some(format) => !format.contains("$jobnum"),
            None => self.filename.is_some(),
        };
        let local = matches!(self.engine, Engine::Sync | Engine::IoUring | Engine::Asynchronous);
        self.clones > 1 && local && !named
    }

    /// Whether clones use regions that differ in more than where they begin.
    pub(super) fn has_own_regions(&self) -> bool {
        let steps = self.offset_step != Quantity::Bytes(0);
        let shares = matches!(self.offset_step, Quantity::Percent(_)) || self.size.is_none();
        self.clones > 1 && steps && shares
    }

    fn load(&self, section: Section<'_>, workers: u32, findings: &mut Findings) -> LoadSpec {
        let access = self.mix.access();
        if access.lines.len() > MAX_LINES {
            findings.refuse(section.at, format!("more than {MAX_LINES} combinations of sizes and zones"));
        }
        let rate = self.rate(workers, access.reads(), access.writes(), section.at, findings);
        let (engine, outstanding) = self.engine(findings);
        let amount = self.amount(section, findings);
        if !self.processors.is_empty() && !self.processors_split {
            let name = section.name;
            findings.note(format!("[{name}] workers are pinned to the allowed processors in turn"));
        }
        match (self.verify, self.checks) {
            (true, true) => {
                findings.note("blocks are verified with a header of virtbench's own, as they are read");
            }
            (true, false) => findings.note(
                "do_verify=0: nothing is checked, as in fio; the headers that fio writes for a later check are not written",
            ),
            (false, _) => {}
        }
        let (flush_every, flush) = self.flushes(section, findings);
        let percent = |value: u64| u8::try_from(value).unwrap_or(100);
        let sequential = self.mix.goes_on();
        LoadSpec {
            outstanding,
            workers,
            ramp_ns: self.ramp_ns,
            time_ns: self.time_ns.filter(|time| *time > 0).unwrap_or(MAX_TIME_NS),
            engine,
            direct: self.direct,
            seed: self.seed.unwrap_or(1),
            rate,
            flush_every,
            flush,
            flush_at_end: self.flush_at_end && access.writes(),
            write_sync: if access.writes() { self.write_sync } else { WriteSync::None },
            content: Content {
                compressible_percent: percent(self.compressible_percent),
                duplicate_percent: percent(self.duplicate_percent),
            },
            pattern: self.pattern.clone(),
            verify: self.verify && self.checks,
            uring: self.uring,
            processors: self.processors.clone(),
            amount,
            traversal: Traversal {
                every_block_once: self.mix.visits_once(),
                position_per_direction: sequential && self.mix.pattern.mixes_in_sequence(),
                more_positions: self.again,
                same_start: sequential && workers > 1,
            },
            ..LoadSpec::new(access, ASSUMED_REGION_BYTES)
        }
    }

    /// When a clone has done enough; nothing where only the time counts.
    fn amount(&self, Section { name, at, .. }: Section<'_>, findings: &mut Findings) -> Option<Amount> {
        let has_time = self.time_ns.is_some_and(|time| time > 0);
        if self.time_based && has_time {
            return None;
        }
        if self.time_based {
            findings.note(format!("[{name}] is time_based without a runtime: as in fio, its size ends it"));
        }
        let (passes, bytes) = match self.io_size {
            None => (Some(self.loops), None),
            Some(Quantity::Bytes(bytes)) => (None, Some(bytes.saturating_mul(self.loops.into()))),
            Some(Quantity::Percent(percent)) => {
                let whole = percent.saturating_mul(self.loops.into());
                if !whole.is_multiple_of(100) {
                    findings.ignore(
                        at,
                        format!("[{name}] io_size={percent}%: only whole multiples of the size are known"),
                    );
                }
                (u32::try_from(whole.div_ceil(100)).ok(), None)
            }
        };
        Some(Amount { passes, bytes, operations: self.operations })
    }

    fn schedule(&self, Section { name, at, .. }: Section<'_>, findings: &mut Findings) -> Schedule {
        let steady = self.steady.rule.map(|(figure, slope, limit, percent)| SteadyEnd {
            figure,
            slope,
            limit,
            percent,
            window_ns: self.steady.window_ns,
            ramp_ns: self.steady.ramp_ns,
            check_ns: self.steady.check_ns.unwrap_or(SECOND_NS),
        });
        if steady.is_some_and(|steady| {
            steady.window_ns < steady.check_ns.saturating_mul(2) || steady.check_ns < SECOND_NS / 10
        }) {
            findings.ignore(
                at,
                format!("[{name}] steadystate needs steadystate_duration, of two checks at least"),
            );
        }
        Schedule {
            flow: (self.flow_weight > 0).then_some(FlowPart {
                id: self.flow_id,
                weight: self.flow_weight,
                sleep_ns: self.flow_sleep_ns,
            }),
            delay_ns: self.delay_ns,
            after: Vec::new(),
            must_exist: self.must_exist,
            drop_cache: !self.direct && !self.keeps_cache,
            least_bytes_per_second: self
                .least_bytes
                .iter()
                .flatten()
                .copied()
                .max()
                .filter(|least| *least > 0),
            steady,
            ends: self.exits_all.then_some(self.exit_what),
        }
    }

    /// After how many writes a flush comes, and of which kind it is.
    fn flushes(&self, section: Section<'_>, findings: &mut Findings) -> (Option<u32>, FlushKind) {
        match self.flush_every {
            [Some(writes), None] => (Some(writes), FlushKind::All),
            [None, data] => (data, FlushKind::Data),
            [Some(all), Some(data)] => {
                findings.ignore(
                    section.at,
                    format!(
                        "[{}] fsync={all} and fdatasync={data}: only fsync={all} would be done",
                        section.name
                    ),
                );
                (Some(all), FlushKind::All)
            }
        }
    }

    /// The rate of all workers together, if one is set. fio limits each direction by itself.
    fn rate(
        &self,
        workers: u32,
        reads: bool,
        writes: bool,
        at: Location,
        findings: &mut Findings,
    ) -> Option<Rate> {
        let limit = |direction: usize| {
            self.mix.rate(direction, self.rate_iops[direction], self.rate_bytes[direction], self.poisson)
        };
        if !self.poisson
            && [READ, self.mix.other()]
                .into_iter()
                .any(|direction| limit(direction).is_some() && self.mix.is_cut_short(direction))
        {
            findings.ignore(
                at,
                "a rate of several sizes without norandommap: operations are cut short, so that the rate that would \
                 run here is too low; add norandommap",
            );
        }
        let other = self.mix.other();
        let (per_clone, fits) = match (limit(READ).filter(|_| reads), limit(other).filter(|_| writes)) {
            (None, None) => return None,
            (Some(read), Some(write)) => (read + write, true),
            (Some(one), None) | (None, Some(one)) => (one, !(reads && writes)),
        };
        if !fits {
            findings.ignore(
                at,
                "a rate of reads or writes alone in a mix: the others have no limit in fio, and one rate would hold \
                 for both here; give both a rate, or each a job",
            );
        }
        let arrivals = if self.poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let per_second = per_clone * f64::from(workers);
        if per_second > MAX_RATE {
            findings
                .note(format!("a rate of {per_second:.0} operations per second limits nothing, as in fio"));
            return None;
        }
        if !self.offload {
            findings.note(
                "fio issues no more than iodepth operations under a rate; here they arrive at the rate, \
                 and latency counts from when each was due",
            );
        }
        Some(Rate { per_second, arrivals })
    }

    fn target(&self, name: &str, at: Location, clone: u32, findings: &mut Findings) -> Option<String> {
        match self.engine {
            Engine::Null => return Some("null".into()),
            Engine::Nbd => return self.address.clone(),
            Engine::Libblkio => {
                return match self.driver.as_deref() {
                    Some("virtio-blk-vhost-user") => {
                        self.address.as_ref().map(|path| format!("vhost-user:{path}"))
                    }
                    Some("io_uring") => self.address.clone(),
                    _ => {
                        findings.refuse(
                            at,
                            "libblkio: only the drivers virtio-blk-vhost-user and io_uring are known",
                        );
                        None
                    }
                };
            }
            Engine::Sync | Engine::IoUring | Engine::Asynchronous => {}
        }
        let file = match (&self.filename_format, &self.filename) {
            (Some(format), _) => format
                .replace("$jobname", name)
                .replace("$jobnum", &clone.to_string())
                .replace("$filenum", "0"),
            (None, Some(file)) => file.clone(),
            (None, None) => format!("{}.{clone}.0", name.replace('/', "_")),
        };
        if matches!(file.as_str(), "/dev/null" | "/dev/zero") {
            findings.note(format!("{file} takes no I/O of its own: the null target stands in for it"));
            return Some("null".into());
        }
        Some(match self.directory.as_deref().map(|folder| folder.trim_end_matches('/')) {
            Some(folder) if !file.starts_with('/') => format!("{folder}/{file}"),
            _ => file,
        })
    }

    fn engine(&self, findings: &mut Findings) -> (EngineKind, u32) {
        if self.batches {
            findings.note("iodepth_batch: what can start is handed to the kernel at once, however many operations it is");
        }
        if self.engine == Engine::Sync && self.uring.completion_polling {
            findings.note(
                "io_uring with one operation in flight stands in for a synchronous engine that polls (hipri)",
            );
            return (EngineKind::IoUring, 1);
        }
        match self.engine {
            Engine::Sync => {
                if self.depth > 1 {
                    findings.note(format!(
                        "iodepth={} has no effect with a synchronous engine, as in fio",
                        self.depth
                    ));
                }
                return (EngineKind::Psync, 1);
            }
            Engine::Asynchronous => findings.note("io_uring stands in for libaio and its like"),
            Engine::IoUring | Engine::Null | Engine::Nbd | Engine::Libblkio => {}
        }
        (EngineKind::IoUring, self.depth)
    }
}

/// Where a job works, in bytes.
pub struct Extent {
    /// How much of the target is used.
    pub size_bytes: Option<u64>,
    /// Where that begins.
    pub start_bytes: u64,
    /// How much further on each next clone begins.
    pub step_bytes: u64,
    /// How many bytes a pass moves, where that is not once the region.
    pass_bytes: Option<u64>,
}

impl Extent {
    /// What ends a clone, where passes over the region would not be what fio does.
    pub fn limit(&self, amount: Amount) -> Amount {
        match (amount.passes, self.pass_bytes) {
            (Some(passes), Some(pass_bytes)) => {
                Amount { passes: None, bytes: Some(pass_bytes.saturating_mul(passes.into())), ..amount }
            }
            _ => amount,
        }
    }
}

impl Draft {
    /// Where a clone works.
    pub fn extent(
        &self,
        target: Option<&str>,
        clone: u32,
        at: Location,
        surroundings: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Extent {
        let grain_bytes = self.mix.grain();
        let whole_bytes =
            self.file_bytes.or_else(|| target.and_then(|target| (surroundings.size_of)(target)));
        let mut resolve = |what: &str, quantity: Quantity| match (quantity, whole_bytes) {
            (Quantity::Bytes(bytes), _) => Some(bytes),
            (Quantity::Percent(percent), Some(whole)) => Some(share(whole, percent)),
            (Quantity::Percent(percent), None) => {
                findings.ignore(
                    at,
                    format!("{what}={percent}%: a share of a target that does not exist yet; write {what} in bytes, or filesize"),
                );
                None
            }
        };
        let step_bytes = resolve("offset_increment", self.offset_step).unwrap_or(0);
        let mut start_bytes = resolve("offset", self.offset).unwrap_or(0);
        if self.has_own_regions() || self.has_own_files() {
            start_bytes = start_bytes.saturating_add(step_bytes.saturating_mul(clone.into()));
        }
        // A place that is a share of the target moves on to the next block.
        if [self.offset, self.offset_step].iter().any(|part| matches!(part, Quantity::Percent(_))) {
            let unit_bytes = self.offset_align.unwrap_or(grain_bytes);
            start_bytes = start_bytes.checked_next_multiple_of(unit_bytes).unwrap_or(start_bytes);
        }
        let turns = u64::from(self.again) + 1;
        let asked_bytes = match self.size {
            // Each of several files has its part.
            Some(Quantity::Bytes(bytes)) => Some(bytes / turns),
            size => size.and_then(|size| resolve("size", size)),
        };
        let rest_bytes =
            whole_bytes.and_then(|whole| whole.checked_sub(start_bytes)).filter(|rest| *rest > 0);
        let size_bytes = match (self.size, self.file_bytes, rest_bytes) {
            // The region is the whole file, of which so much is moved.
            (Some(Quantity::Bytes(_)), Some(_), Some(rest)) => Some(rest),
            (Some(Quantity::Percent(_)), _, Some(rest)) => asked_bytes.map(|asked| asked.min(rest)),
            (Some(_), ..) => asked_bytes,
            (None, _, Some(rest)) => Some(rest),
            (None, _, None) => {
                if start_bytes > 0 && self.engine != Engine::Nbd {
                    findings.ignore(
                        at,
                        "offset: the target does not reach so far, or does not exist; write size",
                    );
                }
                None
            }
        };
        // What is left at the end is less than a block, and stays as it is.
        let size_bytes = size_bytes.map(|bytes| match bytes - bytes % grain_bytes {
            0 => bytes,
            whole => whole,
        });
        let moved_bytes = match (self.size, self.file_bytes) {
            (Some(Quantity::Bytes(asked)), Some(_)) => Some(size_bytes.map_or(asked, |size| size.min(asked))),
            // Passes go on until so much has been moved, however much each of them leaves out.
            _ if self.mix.has_holes() || turns > 1 => size_bytes.map(|bytes| bytes.saturating_mul(turns)),
            _ => None,
        };
        Extent { size_bytes, start_bytes, step_bytes, pass_bytes: moved_bytes }
    }
}

/// So many percent of the whole, to the byte.
fn share(whole: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}
