//! Runs experiments, with the settings that options and file give; what several of them need is done once.
//!
//! Four rounds, each over all threads: calibrations, saturations, machines paced to shares of them, measurements.

use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use serde::de::DeserializeOwned;
use virtbench_fence_evaluation::{
    Bar, Case, CaseError, CaseResult, Guard, GuardResult, Load, Paced, Published, Row, Saturated, Settings,
    Site,
};
use virtbench_fence_sim::calibrate::{Calibration, calibrate};
use virtbench_fence_sim::disk::{SeekCurve, SsdModel};
use virtbench_study::read_user_file;

use crate::args::fence::{Seek, WorldArgs};
use crate::exit::{Failure, Kind};
use crate::{interrupt, progress};

/// What is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Experiment {
    /// A system under a workload.
    Case(Case),
    /// Best effort beside predictable machines.
    Guard(Guard, Load),
}

/// What came of it.
enum Measured {
    Case(CaseResult),
    Guard(GuardResult),
}

/// Results by experiment and settings.
pub struct Evaluation(Known<(Experiment, Settings), Measured>);

impl Experiment {
    fn load(&self) -> Load {
        match self {
            Self::Case(case) => case.load(),
            Self::Guard(_, load) => load.clone(),
        }
    }

    /// Whose caches and whose span it is run with.
    fn site(&self) -> Site {
        match self {
            Self::Case(case) => case.site(),
            Self::Guard(_, load) => load.site,
        }
    }
}

impl Evaluation {
    /// Does all of `work`.
    pub fn compute(work: &[(Experiment, Settings)], jobs: Option<usize>) -> Result<Self, Failure> {
        let settings = || work.iter().map(|(_, settings)| *settings);
        let calibrations = Known::compute(settings().map(alike), jobs, "calibrations", calibrated)?;
        let predictors = |settings: &Settings| calibrations.get(&alike(*settings)).map(|one| &one.predictors);
        let sites = work.iter().flat_map(|(experiment, settings)| {
            [experiment.site(), experiment.load().site].map(|site| (site, *settings))
        });
        let saturated: Known<(Site, Settings), Saturated> =
            Known::compute(sites, jobs, "saturations", |(site, settings)| {
                site.saturate(settings, predictors(settings)?).map_err(failure)
            })?;
        let loads = work.iter().map(|(experiment, settings)| (experiment.load(), *settings));
        let paced: Known<(Load, Settings), Vec<Paced>> =
            Known::compute(loads, jobs, "machines' loads", |(load, settings)| {
                let saturated = saturated.get(&(load.site, *settings))?;
                load.pace(settings, predictors(settings)?, saturated).map_err(failure)
            })?;
        let measured = Known::compute(work.iter().cloned(), jobs, "experiments", |(experiment, settings)| {
            let saturated = saturated.get(&(experiment.site(), *settings))?;
            let paced = paced.get(&(experiment.load(), *settings))?;
            let predictors = predictors(settings)?;
            match experiment {
                Experiment::Case(case) => {
                    case.measure(settings, predictors, saturated, paced).map(Measured::Case)
                }
                Experiment::Guard(guard, load) => {
                    guard.measure(load, settings, predictors, saturated, paced).map(Measured::Guard)
                }
            }
            .map_err(failure)
        });
        Ok(Self(measured?))
    }

    /// A bar's rows.
    pub fn rows(&self, bar: &Bar, settings: &Settings, known: &[Published]) -> Result<Vec<Row>, Failure> {
        let hdd = bar.hdd.as_ref().map(|case| self.case(case, settings)).transpose()?;
        Ok(bar.rows(self.case(&bar.case, settings)?, hdd, known))
    }

    /// Of a case.
    fn case(&self, case: &Case, settings: &Settings) -> Result<&CaseResult, Failure> {
        match self.0.get(&(Experiment::Case(case.clone()), *settings))? {
            Measured::Case(result) => Ok(result),
            Measured::Guard(_) => Err(never_asked()),
        }
    }

    /// Of best effort beside predictable machines.
    pub fn guard(&self, guard: Guard, load: &Load, settings: &Settings) -> Result<&GuardResult, Failure> {
        match self.0.get(&(Experiment::Guard(guard, load.clone()), *settings))? {
            Measured::Guard(result) => Ok(result),
            Measured::Case(_) => Err(never_asked()),
        }
    }
}

/// Distinct pieces of work with what came of each.
struct Known<T, R>(Vec<(T, R)>);

impl<T: PartialEq + Sync, R: Send> Known<T, R> {
    fn compute(
        items: impl Iterator<Item = T>,
        jobs: Option<usize>,
        what: &'static str,
        work: impl Fn(&T) -> Result<R, Failure> + Sync,
    ) -> Result<Self, Failure> {
        let mut distinct: Vec<T> = Vec::new();
        for item in items {
            if !distinct.contains(&item) {
                distinct.push(item);
            }
        }
        if distinct.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let progress = progress::counted(distinct.len(), what);
        let results = in_order(&distinct, threads(jobs), || progress.inc(1), work);
        progress.finish_and_clear();
        let results = results.into_iter().map(finished).collect::<Result<Vec<R>, _>>()?;
        Ok(Self(distinct.into_iter().zip(results).collect()))
    }

    fn get(&self, item: &T) -> Result<&R, Failure> {
        self.0.iter().find(|(known, _)| known == item).map(|(_, result)| result).ok_or_else(never_asked)
    }
}

fn never_asked() -> Failure {
    Failure::message(Kind::Usage, "a result was read that was not asked for")
}

fn failure(error: CaseError) -> Failure {
    Failure::new(Kind::Usage, error)
}

/// Settings with which the calibration is the same are made the same.
fn alike(settings: Settings) -> Settings {
    let Settings { hdd, ssd, calibration_bytes, seed, .. } = settings;
    Settings { hdd, ssd, calibration_bytes, seed, ..Settings::default() }
}

/// The predictors of these settings.
pub fn calibrated(settings: &Settings) -> Result<Calibration, Failure> {
    calibrate(&settings.hdd, &settings.ssd, settings.calibration_bytes, settings.seed)
        .map_err(|error| Failure::new(Kind::Usage, error))
}

/// Threads that run simulations.
pub fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get))
}

/// What came of a piece of work, unless an interrupt kept it from being begun.
pub fn finished<T>(result: Option<Result<T, Failure>>) -> Result<T, Failure> {
    result.unwrap_or_else(|| Err(interrupt::failure("half an evaluation says nothing")))
}

/// Does `work` for every item on up to `threads` threads. The results stand in the order of the items,
/// whichever thread did them; `None` is an item that an interrupt kept from being begun.
pub fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    done: impl Fn() + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while let Some(index) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < items.len())
                {
                    if interrupt::flag().load(Ordering::Relaxed) {
                        break;
                    }
                    let result = work(&items[index]);
                    if let Ok(mut place) = results[index].lock() {
                        *place = Some(result);
                    }
                    done();
                }
            });
        }
    });
    results.into_iter().map(|place| place.into_inner().ok().flatten()).collect()
}

/// The settings: the file's, then the options'.
pub fn settings(args: &WorldArgs) -> Result<Settings, Failure> {
    match &args.config {
        None => over(Settings::default(), args),
        Some(path) => over(read("--config", path)?, args),
    }
}

/// What a file says that an option names.
pub fn read<T: DeserializeOwned>(option: &str, path: &Path) -> Result<T, Failure> {
    let wrong =
        |error: String| Failure::message(Kind::Usage, format!("{option} {}: {error}", path.display()));
    let text = read_user_file(path).map_err(wrong)?;
    toml::from_str(&text).map_err(|error| wrong(error.to_string()))
}

/// These settings, and the options' in their place.
pub fn over(mut settings: Settings, args: &WorldArgs) -> Result<Settings, Failure> {
    if let Some(seed) = args.seed {
        settings.seed = seed;
    }
    if let Some(rpm) = args.rpm {
        settings.hdd.rpm = rpm;
    }
    if let Some(Seek([settle_ms, root_ms, linear_ms])) = args.seek {
        settings.hdd.seek = SeekCurve { settle_ms, root_ms, linear_ms };
    }
    if let Some(profile) = args.ssd {
        settings.ssd = SsdModel::new(profile);
    }
    if let Some(ns) = args.duration {
        settings.measure_s = ns as f64 / 1e9;
    }
    if let Some(replications) = args.replications {
        settings.replications = replications;
    }
    if let Some(saturating) = args.saturating {
        settings.saturating = saturating;
    }
    settings.check().map_err(|error| Failure::new(Kind::Usage, error))?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 7, 200] {
            let doubled = in_order(&items, threads, || {}, |item| item * 2);
            assert!(doubled.iter().zip(0..).all(|(got, item)| *got == Some(item * 2)));
        }
        assert!(in_order(&[], 4, || {}, |item: &u8| *item).is_empty());
    }
}
