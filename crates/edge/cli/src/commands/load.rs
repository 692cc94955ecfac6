//! `virtbench load`
//!
//! ```text
//! options, --spec --job--> Plan --open--> Target --settle, repetitions, measure--> Done --report, export-->
//! ```

mod check;
mod export;
mod job;
mod measure;
mod open;
mod perform;
mod repetitions;
mod report;
mod settle;
mod spec;
mod table;
pub mod trace;

use clap::ArgMatches;

use crate::args::LoadArgs;
use crate::exit::Outcome;

pub(super) use job::{drawn_seed, prepare};
pub(super) use measure::measure;
pub(super) use open::open_request;

/// Applies the load, or the jobs of a file one after another, and prints what came of it.
///
/// `matches` tell which options were given rather than left at their defaults.
pub fn execute(args: &LoadArgs, matches: Option<&ArgMatches>) -> Outcome {
    if args.apply.verify_only {
        let (target, spec) = job::prepare_check(&args.shape)?;
        return check::execute(&spec, &target, args.shape.json);
    }
    let plan = job::plan(args, matches)?;
    if !args.shape.json && args.trace.trace.is_none() {
        plan.notes.iter().for_each(|note| eprintln!("note: {note}"));
        plan.ignored.iter().for_each(|remark| eprintln!("ignored: {remark}"));
    }
    let mut done = Vec::new();
    let ran = plan.jobs.iter().try_for_each(|job| {
        let mut job = perform::perform(args, job)?;
        if args.trace.trace.is_some() {
            plan.notes.iter().for_each(|note| job.repetitions.note(note));
        }
        if !args.shape.json {
            report::write_table(&job)?;
        }
        let verdict = job.repetitions.outcomes().try_for_each(measure::verdict);
        done.push(job);
        verdict
    });
    if done.is_empty() {
        return ran;
    }
    // Whatever ended the jobs, those that were measured are reported.
    if args.shape.json {
        report::write_json(args.spec.spec.is_some(), &plan, &done)?;
    }
    ran.and(export::write(&args.spec.export, &done))
}
