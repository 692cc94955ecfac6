//! `virtbench study desktops`: users of more and more desktops at once.

use std::fs;

use virtbench_desktops::{Day, Group, supplied};
use virtbench_record::{DesktopGroup, DesktopOperation, DesktopsPlan, DesktopsRecord, DesktopsStatus};
use virtbench_study::{DesktopAppliance, DesktopsStudy, Progress, StudyError};

use super::common;
use crate::args::desktops_study::{DesktopPlaceArg, DesktopsStudyArgs};
use crate::exit::{Failure, Kind, Outcome};

/// The share of operations that are to be within their limit ([Platform 2014], section III.D).
const SHARE: f64 = 0.95;

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &DesktopsStudyArgs) -> Outcome {
    let (text, mut day) = day(&args.day)?;
    day.limits.a = args.limit_a.unwrap_or(day.limits.a);
    day.limits.b = args.limit_b.unwrap_or(day.limits.b);
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "desktops"))?;
    let measured = common::run(&out, args.folder.resume, |run| {
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let recipe = args.recipe.as_deref().unwrap_or(&day.recipe);
        let desktop = DesktopAppliance::find(recipe, progress)?;
        let plan = plan(args, &desktop, &day, text);
        let guests = if plan.vm {
            let remark = &mut |what: &str| run.observer.event(virtbench_study::Event::Remark(what));
            Some(args.qemu.appliance_guests(remark).map_err(StudyError::from)?)
        } else {
            None
        };
        DesktopsStudy { plan, day: day.clone() }.run(&desktop, guests.as_ref(), run)
    })?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    complete(run.records.desktops())
}

/// Fails where nothing was measured.
fn complete(records: &[DesktopsRecord]) -> Outcome {
    let operations =
        |record: &DesktopsRecord| record.measured().map_or(0, |measured| measured.operations.len());
    if records.iter().map(operations).sum::<usize>() > 0 {
        return Ok(());
    }
    let why = records.iter().rev().find_map(|record| match &record.status {
        DesktopsStatus::Failed { why } => Some(why.clone()),
        DesktopsStatus::Measured(measured) => measured.gone.first().map(|gone| gone.why.clone()),
    });
    let why = why.unwrap_or_else(|| "the time was too short for an operation: raise --time".into());
    Err(Failure::message(Kind::Measured, format!("no user has done anything: {why}")))
}

fn day(name: &str) -> Result<(String, Day), Failure> {
    let usage = |why: String| Failure::message(Kind::Usage, format!("--day {name}: {why}"));
    let text = match supplied::find(name) {
        Some(found) => found.text.to_owned(),
        None => fs::read_to_string(name).map_err(|error| {
            let names = supplied::ALL.map(|supplied| supplied.name).join(", ");
            usage(format!("{error}; a day is a file, or one of {names}"))
        })?,
    };
    let day = Day::parse(&text).map_err(|error| usage(error.to_string()))?;
    Ok((text, day))
}

fn plan(args: &DesktopsStudyArgs, desktop: &DesktopAppliance, day: &Day, day_file: String) -> DesktopsPlan {
    let operations = day.operations().map(|(application, operation)| DesktopOperation {
        application: application.name.clone(),
        operation: operation.name.clone(),
        group: match operation.group {
            Group::A => DesktopGroup::A,
            Group::B => DesktopGroup::B,
        },
    });
    DesktopsPlan {
        recipe: desktop.name().to_owned(),
        root: desktop.root_digest().to_owned(),
        day: day.name.clone(),
        operations: operations.collect(),
        day_file,
        limit_a_ns: day.limits.a,
        limit_b_ns: day.limits.b,
        share: SHARE,
        errors: args.errors / 100.0,
        vm: args.environment == DesktopPlaceArg::Vm,
        desktops: args.desktops.clone(),
        repetitions: args.repetitions,
        time_ns: args.time,
        vcpus: args.vcpus,
        memory_bytes: args.memory.unwrap_or_else(|| desktop.least_memory()),
        seed: args.seed,
        accelerator: args.qemu.accelerator_name(),
    }
}
