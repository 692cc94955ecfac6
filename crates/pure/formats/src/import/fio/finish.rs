//! From a job's options to the loads that it is here.

use virtbench_workload::{Amount, Arrivals, Content, EngineKind, LoadSpec, Rate, Traversal};

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
    /// Where it begins.
    pub at: Location,
    /// Its phase.
    pub group: u32,
    /// Jobs made so far.
    pub made: usize,
}

/// Where on its target a job works, in bytes.
struct Extent {
    size_bytes: Option<u64>,
    start_bytes: u64,
}

impl Draft {
    /// The jobs: one, or one for each clone where clones have files of their own. What differs from fio
    /// is noted.
    pub fn finish(
        mut self,
        section: Section<'_>,
        surroundings: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Vec<ImportedJob> {
        let Section { name, at, group, made } = section;
        let own_files = self.has_own_files() && self.clones as usize <= MAX_JOBS.saturating_sub(made);
        let (jobs, workers) = if own_files { (self.clones, 1) } else { (1, self.clones) };
        self.lay_zones(section, findings);
        let mut load = self.load(section, workers, findings);
        let schedule = self.schedule(section, findings);
        let step_bytes = load.worker_step_bytes;
        (0..jobs)
            .map(|clone| {
                let target = self.target(name, at, clone, findings);
                let extent = self.extent(target.as_deref(), at, surroundings, findings);
                load.region_bytes = extent.size_bytes.unwrap_or(ASSUMED_REGION_BYTES);
                load.start_bytes = extent.start_bytes;
                if jobs > 1 {
                    load.start_bytes =
                        load.start_bytes.saturating_add(step_bytes.saturating_mul(clone.into()));
                    load.worker_step_bytes = 0;
                    load.seed = self.seed.unwrap_or(1).wrapping_add(clone.into());
                }
                if clone == 0
                    && let Err(error) = load.validate()
                {
                    findings.refuse(at, format!("[{name}] {error}"));
                }
                let name = if jobs > 1 { format!("{name}.{clone}") } else { name.to_owned() };
                let (load, schedule, size_bytes) = (load.clone(), schedule.clone(), extent.size_bytes);
                ImportedJob { name, load, target, size_bytes, group, schedule }
            })
            .collect()
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
    fn has_own_files(&self) -> bool {
        let named = match &self.filename_format {
            Some(format) => !format.contains("$jobnum"),
            None => self.filename.is_some(),
        };
        let local = matches!(self.engine, Engine::Sync | Engine::IoUring | Engine::Asynchronous);
        self.clones > 1 && local && !named
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
        if self.verify {
            findings.note("blocks are verified with a header of virtbench's own, as they are read");
        }
        let percent = |value: u64| u8::try_from(value).unwrap_or(100);
        let sequential = !self.mix.pattern.random || self.mix.random_percent < 100.0;
        LoadSpec {
            outstanding,
            workers,
            ramp_ns: self.ramp_ns,
            time_ns: self.time_ns.filter(|time| *time > 0).unwrap_or(MAX_TIME_NS),
            engine,
            direct: self.direct,
            seed: self.seed.unwrap_or(1),
            rate,
            flush_every: self.flush_every,
            content: Content {
                compressible_percent: percent(self.compressible_percent),
                duplicate_percent: percent(self.duplicate_percent),
            },
            verify: self.verify,
            uring: self.uring,
            processors: self.processors.clone(),
            worker_step_bytes: if workers > 1 || self.has_own_files() { self.offset_step_bytes } else { 0 },
            amount,
            traversal: Traversal {
                every_block_once: self.mix.visits_once(),
                position_per_direction: sequential && self.mix.pattern.mixes_in_sequence(),
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
        if self.ramp_ns > 0 {
            findings.ignore(
                at,
                format!("[{name}] ramp_time: what is done before measuring cannot be told from the job's size; add time_based"),
            );
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
        let has_flow = self.flow_weight > 0;
        if has_flow && (self.rate_iops, self.rate_bytes) != ([None; 3], [None; 3]) {
            findings.ignore(
                at,
                format!("[{name}] flow: a job that keeps a rate cannot keep step with others too"),
            );
        }
        Schedule {
            flow: has_flow.then_some(FlowPart {
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

    /// Where the job works: what fio 3.33 does with `size`, `offset` and a share of the target.
    fn extent(
        &self,
        target: Option<&str>,
        at: Location,
        surroundings: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Extent {
        let whole_bytes =
            self.file_bytes.or_else(|| target.and_then(|target| (surroundings.size_of)(target)));
        let mut resolve = |what: &str, quantity: Quantity| match (quantity, whole_bytes) {
            (Quantity::Bytes(bytes), _) => Some(bytes),
            (Quantity::Percent(percent), Some(whole)) => Some(whole / 100 * percent),
            (Quantity::Percent(percent), None) => {
                findings.ignore(
                    at,
                    format!("{what}={percent}%: a share of a target that does not exist yet; write {what} in bytes, or filesize"),
                );
                None
            }
        };
        let start_bytes = resolve("offset", self.offset).unwrap_or(0);
        let size_bytes = match self.size {
            Some(size) => resolve("size", size),
            None if start_bytes == 0 => self.file_bytes,
            None => {
                let rest =
                    whole_bytes.and_then(|whole| whole.checked_sub(start_bytes)).filter(|rest| *rest > 0);
                if rest.is_none() && (self.engine != Engine::Nbd) {
                    findings.ignore(
                        at,
                        "offset: the target does not reach so far, or does not exist; write size",
                    );
                }
                rest
            }
        };
        Extent { size_bytes, start_bytes }
    }

    /// The rate of all workers together, if one is set. fio limits each direction by itself.
    #[allow(clippy::cast_precision_loss)]
    fn rate(
        &self,
        workers: u32,
        reads: bool,
        writes: bool,
        at: Location,
        findings: &mut Findings,
    ) -> Option<Rate> {
        let limit = |direction: usize| match (self.rate_iops[direction], self.rate_bytes[direction]) {
            (Some(iops), _) if iops > 0 => Some(iops as f64),
            (_, Some(rate)) if rate > 0 => Some(rate as f64 / self.mix.smallest(direction).max(1) as f64),
            _ => None,
        };
        let share = self.mix.read_percent / 100.0;
        let other = self.mix.other();
        let (per_clone, fits) = match (limit(READ).filter(|_| reads), limit(other).filter(|_| writes)) {
            (None, None) => return None,
            (Some(read), Some(write)) => {
                (read + write, (read * (1.0 - share) - write * share).abs() <= 0.01 * (read + write))
            }
            (Some(one), None) | (None, Some(one)) => (one, !(reads && writes)),
        };
        if !fits {
            findings.ignore(
                at,
                "rates that limit reads and writes in another ratio than rwmixread: one rate holds for both here",
            );
        }
        if !self.offload {
            findings.note(
                "fio issues no more than iodepth operations under a rate; here they arrive at the rate, \
                 and latency counts from when each was due",
            );
        }
        let arrivals = if self.poisson { Arrivals::Poisson } else { Arrivals::Constant };
        Some(Rate { per_second: per_clone * f64::from(workers), arrivals })
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
