//! `virtbench study deviation --systems`: ways of sharing one pair of emulated devices, one after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use virtbench_record::{SetRecord, SetRole, SystemFate};
use virtbench_study::{LoadedRun, System, read_provenance, simulate};
use virtbench_units::format_duration_ns;

use super::systems_table::{Row, Tried, save, show};
use super::{common, deviation};
use crate::args::{DeviationArgs, SetsArgs, Systems};
use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::tell;

/// What a system takes beside its sets, at first guess: its devices, its caches, its machines' boots.
const BESIDE: Duration = Duration::from_secs(15);

/// Measures each system in a folder of its own, then compares what there is. A system that fails or cannot be had leaves
/// the others be; one whose results are there already is not measured again with `--resume`.
pub fn execute(args: &DeviationArgs) -> Outcome {
    let out = common::folder_path(args.sets.out.as_deref(), "systems");
    let systems = chosen(&args.systems);
    let (mut failure, mut tried) = (None, Vec::new());
    let mut pace = Pace { first_guess: first_guess(args)?, taken: Vec::new() };
    for (index, system) in systems.iter().enumerate() {
        let folder = out.join(system.folder());
        let (adapter, backing) = system.disk();
        let sets = SetsArgs {
            adapter,
            backing,
            resume: args.sets.resume && read_provenance(&folder).is_ok(),
            out: Some(folder.clone()),
            ..args.sets.clone()
        };
        let left = format_duration_ns(pace.left_s(systems.len() - index).saturating_mul(1_000_000_000));
        tell!("{}/{} {system}: {}; about {left} left", index + 1, systems.len(), system.summary);
        let begun = Instant::now();
        let measured = deviation::study(args, &sets)?.execute(|_| Ok(()));
        pace.add(begun.elapsed());
        let stopped = interrupt::flag().load(std::sync::atomic::Ordering::Relaxed);
        let fate = match measured {
            Ok(()) => SystemFate::Measured,
            Err(error) if stopped => return Err(error),
            Err(error) => {
                let words = error.to_string();
                let is_lacking = error.kind() == Kind::Environment;
                tell!("{system}: {}{words}", if is_lacking { "unavailable: " } else { "" });
                // What this host lacks is no failure, unless it lacks it for all.
                if !is_lacking || failure.is_none() {
                    failure = Some(error);
                }
                if is_lacking { SystemFate::Unavailable(words) } else { SystemFate::Failed(words) }
            }
        };
        let rows = match report::write_sets(&folder, None, None) {
            Ok((run, _)) => rows_of(*system, args, &sets, &folder, &run)?,
            Err(_) => Vec::new(),
        };
        tried.push(Tried { system: *system, fate, rows });
        // Each time, so that one can look while the others are measured, and a kill loses nothing.
        std::fs::create_dir_all(&out)?;
        save(&out, &tried)?;
    }
    show(&tried, args.sets.json, &out)?;
    let only_lacking = tried.iter().all(|tried| !matches!(tried.fate, SystemFate::Failed(_)));
    let some_measured = tried.iter().any(|tried| tried.fate == SystemFate::Measured);
    match failure {
        Some(error) if !(only_lacking && some_measured) => Err(error),
        _ => Ok(()),
    }
}

/// Each system that is named, once.
fn chosen(named: &[Systems]) -> Vec<System> {
    let mut systems: Vec<System> = Vec::new();
    for named in named {
        let named = match named {
            Systems::All => System::all().collect(),
            Systems::One(system) => vec![*system],
        };
        let new: Vec<System> = named.into_iter().filter(|system| !systems.contains(system)).collect();
        systems.extend(new);
    }
    systems
}

/// How long a system takes, so far.
#[derive(Debug)]
struct Pace {
    first_guess: Duration,
    taken: Vec<Duration>,
}

impl Pace {
    /// One that took no time was there already, or cannot be had.
    fn add(&mut self, taken: Duration) {
        if taken > self.first_guess / 4 {
            self.taken.push(taken);
        }
    }

    /// What so many systems will take, in seconds.
    fn left_s(&self, systems: usize) -> u64 {
        let mean_s = match self.taken.len() {
            0 => self.first_guess.as_secs_f64(),
            count => self.taken.iter().sum::<Duration>().as_secs_f64() / count as f64,
        };
        Duration::try_from_secs_f64((mean_s * systems as f64).round()).map_or(0, |left| left.as_secs())
    }
}

/// What the sets of one system take by their times alone, and some more.
fn first_guess(args: &DeviationArgs) -> Result<Duration, Failure> {
    let study = deviation::study(args, &args.sets)?;
    let times_ns = study.time_ns.unwrap_or(0).saturating_add(study.ramp_ns.unwrap_or(0));
    let sets = study.sets.len() as u64 * u64::from(args.sets.repetitions);
    Ok(BESIDE + Duration::from_nanos(times_ns.saturating_mul(sets)))
}

fn rows_of(
    system: System,
    args: &DeviationArgs,
    sets: &SetsArgs,
    folder: &Path,
    run: &LoadedRun<SetRecord>,
) -> Result<Vec<Row>, Failure> {
    let jobs = deviation::study(args, sets)?.jobs_as_given()?;
    let simulated = simulate(folder, &run.provenance, &run.records, &jobs).unwrap_or_else(|error| {
        tell!("{system}: not simulated: {error}");
        Vec::new()
    });
    let Some(plan) = &run.provenance.together else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for record in &run.records {
        let Some(set) = plan.set(&record.set).filter(|set| set.role != SetRole::Saturation) else { continue };
        for (planned, member) in set.members.iter().zip(&record.members) {
            let twin = simulated.iter().find(|one| one.set == set.name && one.vm == planned.vm);
            let role = set.role == SetRole::Together;
            rows.push(Row::new(system, planned.share_percent, role, record.repetition, member, twin));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_guessed_by_the_plan_and_then_by_what_was() {
        let mut pace = Pace { first_guess: Duration::from_secs(80), taken: Vec::new() };
        assert_eq!(pace.left_s(3), 240);
        pace.add(Duration::from_secs(1));
        assert_eq!(pace.left_s(2), 160, "one that was there already says nothing");
        pace.add(Duration::from_secs(100));
        pace.add(Duration::from_secs(110));
        assert_eq!(pace.left_s(2), 210);
    }

    #[test]
    fn each_is_chosen_once() {
        let fourth = System::all().nth(3).unwrap();
        let one = Systems::One(fourth);
        assert_eq!(chosen(&[one, Systems::All, one]).len(), System::all().count());
        assert_eq!(chosen(&[one, one]), [fourth]);
    }
}
