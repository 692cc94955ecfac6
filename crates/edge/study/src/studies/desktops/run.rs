//! A run of the study of desktops: numbers of them, one after the other, until users are no longer content.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use virtbench_counters::thread_cpu_ns;
use virtbench_desktop::{
    Desk, OperationDone, Rectangle, SlowLinks, Times, UsersEvent, UsersPlan, VideoSeen, drive, slow_down,
};
use virtbench_desktops::{Day, Link};
use virtbench_lab::CpuSample;
use virtbench_model::desktops::{desktops_left, next_desktops};
use virtbench_record::{
    ApplianceRoot, DesktopDone, DesktopEcho, DesktopGone, DesktopLink, DesktopNumbers, DesktopTimes,
    DesktopVideo, DesktopsKey, DesktopsMeasured, DesktopsPlan, DesktopsRecord, HostUse, PicturePart, Plan,
};
use virtbench_units::LatencyRecorder;

use super::source::{DesktopAppliance, DesktopSource};
use super::standing::{Pictures, Standing};
use crate::runner::event::Estimate;
use crate::runner::progress::{Progress, nanoseconds};
use crate::runner::run::{Run, RunEnd};
use crate::runner::steps::{NoResult, Recorded, Schedule, Steps, Study, Taken, run_study};
use crate::study_error::StudyError;

/// What a desktop takes to start, about, natively and in a VM, in nanoseconds.
const START_NS: [u64; 2] = [1_500_000_000, 15_000_000_000];
/// How many numbers of desktops a search tries, about.
const SEARCHED: u64 = 6;

/// A study of desktops.
#[derive(Debug, Clone)]
pub struct DesktopsStudy {
    /// What is measured.
    pub plan: DesktopsPlan,
    /// What users do.
    pub day: Day,
}

impl DesktopsStudy {
    /// Measures whatever is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&self, source: &DesktopSource, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let image = source.started().map(DesktopAppliance::image);
        run_study(&self.plan, &mut Measuring { study: self, source, image }, run)
    }

    /// What is measured, and about how long that takes.
    #[must_use]
    pub fn estimate(plan: &DesktopsPlan) -> Estimate {
        Schedule::estimate(plan)
    }

    /// With the plan's link before them, if there is one.
    fn linked(&self, desks: Vec<Desk>) -> io::Result<(Vec<Desk>, Option<SlowLinks>)> {
        let Some(DesktopLink { delay_ns, rate, loss_ppm }) = self.plan.link else { return Ok((desks, None)) };
        slow_down(desks, Link { delay_ns, rate, loss_ppm }, self.plan.seed)
            .map(|(desks, links)| (desks, Some(links)))
    }

    fn once(
        &self,
        source: &DesktopSource,
        desktops: u32,
        repetition: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Taken<DesktopsMeasured>, NoResult> {
        let begun = Instant::now();
        let mut standing = Standing::start(source, &self.plan, desktops, progress)?;
        let (desks, guest) = (standing.desks()?, standing.guest(source));
        let ready_ns = nanoseconds(begun.elapsed());
        progress.doing(&format!("{desktops} desktops: users work, repetition {}", repetition + 1));
        let rectangle = |part: &PicturePart| {
            let PicturePart { width, height, x, y } = *part;
            Rectangle { x, y, width, height }
        };
        let masks: Vec<Rectangle> = self.plan.masks.iter().map(rectangle).collect();
        let plan = UsersPlan {
            masks: &masks,
            day: &self.day,
            seed: self.plan.seed.wrapping_add(u64::from(repetition)),
            time: Duration::from_nanos(self.plan.time_ns),
        };
        let failed = |why: String| NoResult::failed(why);
        let (desks, links) = self.linked(desks).map_err(|error| failed(format!("the link: {error}")))?;
        let first = CpuSample::take().map_err(|error| failed(error.to_string()))?;
        let (cpu, from) = (thread_cpu_ns(), Instant::now());
        let mut seen = Reports::of(&self.plan);
        drive(desks, plan, progress.stop, &mut |event| seen.add(event, &mut standing))
            .map_err(|error| failed(error.to_string()))?;
        drop(links);
        let used = thread_cpu_ns();
        let client_cpu_ns = [0, 1].iter().map(|part| used[*part].saturating_sub(cpu[*part])).sum();
        let elapsed_ns = nanoseconds(from.elapsed());
        let last = CpuSample::take().map_err(|error| failed(error.to_string()))?;
        for note in standing.stop() {
            progress.remark(&note);
        }
        for (user, parts) in &seen.restless {
            let parts = parts.iter().map(PicturePart::to_string).collect::<Vec<_>>().join(", ");
            progress.remark(&format!(
                "the picture of user {} changes all the time at {parts}: left out",
                user + 1
            ));
        }
        for gone in &seen.gone {
            progress.remark(&format!("user {} of {desktops}: {}", gone.user + 1, gone.why));
        }
        progress.check().map_err(StudyError::from)?;
        let host = first.until(&last);
        Ok(Taken::of(seen.measured(ready_ns, client_cpu_ns, elapsed_ns, host), guest))
    }
}

impl Schedule for DesktopsPlan {
    type Key = DesktopsKey;

    fn plan(&self) -> Plan {
        Plan::Desktops(self.clone())
    }

    fn estimate(&self) -> Estimate {
        let start = if self.are_existing() { 0 } else { START_NS[usize::from(self.vm)] };
        let one = |number: u64| self.time_ns.saturating_add(number.saturating_mul(start));
        let repetitions = u64::from(self.repetitions);
        let (measurements, total_ns) = match &self.desktops {
            DesktopNumbers::Given(numbers) => {
                let total: u64 = numbers.iter().map(|number| one(u64::from(*number))).sum();
                (numbers.len() as u64 * repetitions, total.saturating_mul(repetitions))
            }
            DesktopNumbers::Auto { most } => {
                let each = one(u64::from(*most).min(8));
                (SEARCHED * repetitions, each.saturating_mul(SEARCHED * repetitions))
            }
        };
        Estimate::of_total(usize::try_from(measurements).unwrap_or(usize::MAX), total_ns)
    }

    fn next(&self, recorded: Recorded<'_, DesktopsKey>) -> Option<DesktopsKey> {
        let next = next_desktops(self, recorded.all);
        next.map(|(desktops, repetition)| DesktopsKey { desktops, repetition })
    }

    fn left(&self, recorded: Recorded<'_, DesktopsKey>) -> Option<u64> {
        desktops_left(self, recorded.all)
    }

    fn host<'m>(&self, measured: &'m DesktopsMeasured) -> Option<&'m HostUse> {
        Some(&measured.host)
    }

    fn remarks(&self, record: &DesktopsRecord) -> Vec<String> {
        let failed = record.failure().map(|why| format!("{} desktops: {why}", record.key.desktops));
        failed.into_iter().collect()
    }
}

struct Measuring<'a> {
    study: &'a DesktopsStudy,
    source: &'a DesktopSource,
    /// What desktops that are started here are read from.
    image: Option<PathBuf>,
}

impl Study for Measuring<'_> {
    type Schedule = DesktopsPlan;

    fn storage(&self) -> Option<&Path> {
        self.image.as_deref()
    }

    fn appliances(&self) -> Vec<ApplianceRoot> {
        self.source.started().map(DesktopAppliance::root).into_iter().collect()
    }

    fn measure(
        &mut self,
        first: DesktopsKey,
        steps: &mut Steps<'_, '_, DesktopsPlan>,
    ) -> Result<(), StudyError> {
        let DesktopsKey { desktops, repetition } = first;
        let once = |progress: &mut Progress<'_>| self.study.once(self.source, desktops, repetition, progress);
        steps.take(first, once).map(drop)
    }
}

/// What users have told.
struct Reports<'a> {
    plan: &'a DesktopsPlan,
    operations: Vec<DesktopDone>,
    gone: Vec<DesktopGone>,
    restless: BTreeMap<u32, Vec<PicturePart>>,
    echoes: LatencyRecorder,
    pictures: Pictures,
}

impl<'a> Reports<'a> {
    fn of(plan: &'a DesktopsPlan) -> Self {
        Self {
            plan,
            operations: Vec::new(),
            gone: Vec::new(),
            restless: BTreeMap::new(),
            echoes: LatencyRecorder::default(),
            pictures: Pictures::default(),
        }
    }

    fn add(&mut self, event: UsersEvent, standing: &mut Standing<'_>) {
        match event {
            UsersEvent::Echo(ns) => self.echoes.record(ns),
            UsersEvent::Restless { user, parts } => {
                let part = |Rectangle { x, y, width, height }| PicturePart { width, height, x, y };
                self.restless.insert(user, parts.into_iter().map(part).collect());
            }
            UsersEvent::Gone { user, why, screenshot } => {
                let why = standing.why_gone(user).unwrap_or(why);
                self.pictures.failure(user, why.clone(), screenshot);
                self.gone.push(DesktopGone { user, why });
            }
            UsersEvent::Done(done, screenshot) => {
                match &done.result {
                    Ok(times) => {
                        let name = self.plan.operations.get(usize::from(done.operation));
                        let name = name
                            .map_or_else(String::new, |one| format!("{} {}", one.application, one.operation));
                        let seconds = times.latency_ns as f64 / 1e9;
                        let what = format!("{name} took longest beside its limit, {seconds:.2} s");
                        self.pictures.worst(done.user, what, screenshot);
                    }
                    Err(why) => self.pictures.failure(done.user, why.clone(), screenshot),
                }
                self.operations.push(record(done));
            }
        }
    }

    fn measured(
        self,
        ready_ns: u64,
        client_cpu_ns: u64,
        elapsed_ns: u64,
        host: virtbench_record::HostUse,
    ) -> DesktopsMeasured {
        let echo = self.echoes.summary().map(|summary| DesktopEcho {
            keys: self.echoes.count(),
            median_ns: summary.p50,
            p95_ns: summary.p95,
        });
        DesktopsMeasured {
            ready_ns,
            operations: self.operations,
            gone: self.gone,
            restless: self.restless,
            echo,
            pictures: self.pictures.kept(),
            client_cpu_ns,
            elapsed_ns,
            host,
        }
    }
}

fn video(seen: VideoSeen) -> DesktopVideo {
    let VideoSeen { frames, rate, seen, elapsed_ns, freeze_ns, unreadable } = seen;
    DesktopVideo { frames, rate, seen, elapsed_ns, freeze_ns, unreadable }
}

fn record(done: OperationDone) -> DesktopDone {
    let times = |times: &Times| DesktopTimes {
        latency_ns: times.latency_ns,
        first_change_ns: times.first_change_ns,
        last_change_ns: times.last_change_ns,
        inside_ns: times.inside_ns,
        around_ns: times.around_ns,
        video: times.video.map(video),
    };
    DesktopDone {
        user: done.user,
        operation: done.operation.into(),
        begun_ns: done.begun_ns,
        storm: done.is_storm,
        times: done.result.as_ref().ok().map(times),
        failed: done.result.err(),
    }
}
