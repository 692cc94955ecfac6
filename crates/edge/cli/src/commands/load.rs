//! `virtbench load`
//!
//! ```text
//! options, --spec --job--> Plan --open--> Target --settle, repetitions, measure--> Done --report, export-->
//! ```

mod environments;
mod measure;
pub mod options;
mod perform;
mod phases;
mod repetitions;
mod report;
mod spec;
mod table;

use clap::ArgMatches;

use crate::args::LoadArgs;
use crate::exit::Outcome;
use crate::say::tell;

pub(super) use measure::measure;
pub(super) use options::{drawn_seed, prepare};
use perform::Done;
pub(super) use perform::open_request;
use report::Together;
use spec::Plan;

/// Applies the load, or the jobs of a file phase by phase, and prints what came of it.
///
/// `matches` tell which options were given rather than left at their defaults.
pub fn execute(args: &LoadArgs, matches: Option<&ArgMatches>) -> Outcome {
    if args.apply.verify_only {
        let (target, spec) = options::prepare_check(&args.shape)?;
        return measure::execute(&spec, &target, args.shape.json);
    }
    if !args.environment.is_empty() {
        return environments::execute(args, matches);
    }
    let plan = options::plan(args, matches)?;
    perform::check(&args.spec.export)?;
    if !args.shape.json && args.trace.trace.is_none() {
        plan.notes.iter().for_each(|note| tell!("note: {note}"));
        plan.ignored.iter().for_each(|remark| tell!("ignored: {remark}"));
    }
    if args.spec.dry_run {
        return Ok(report::print(&plan, args.shape.json)?);
    }
    phases::check(args, &plan)?;
    let (mut done, mut together) = (Vec::new(), Vec::new());
    let ran = run_phases(args, &plan, &mut done, &mut together);
    if done.is_empty() {
        return ran;
    }
    // Whatever ended the jobs, those that were measured are reported.
    if args.shape.json {
        report::write_json(args.spec.is_given(), &plan, &done, &together)?;
    }
    ran.and(perform::write(&args.spec.export, &done))
}

/// Runs the phases one after another and prints each job's table as it is done.
fn run_phases(args: &LoadArgs, plan: &Plan, done: &mut Vec<Done>, together: &mut Vec<Together>) -> Outcome {
    for jobs in phases::phases(plan) {
        let phase = match jobs.as_slice() {
            [(_, job)] if phases::is_plain(&jobs) => {
                let mut job = perform::perform(args, job)?;
                if args.trace.trace.is_some() {
                    plan.notes.iter().for_each(|note| job.repetitions.note(note));
                }
                phases::Phase { done: vec![job], failure: None, ends_all: false }
            }
            several => phases::run(args, several)?,
        };
        if !args.shape.json {
            phase.done.iter().try_for_each(report::write_table)?;
        }
        if let Some(all) = Together::new(&phase.done) {
            if !args.shape.json {
                report::write(&all)?;
            }
            together.push(all);
        }
        let verdict = phase
            .done
            .iter()
            .flat_map(|job| job.repetitions.outcomes())
            .map(measure::verdict)
            .fold(Ok(()), Outcome::and);
        done.extend(phase.done);
        verdict.and(phase.failure.map_or(Ok(()), Err))?;
        if phase.ends_all {
            break;
        }
    }
    Ok(())
}
