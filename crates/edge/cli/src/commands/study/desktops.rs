//! `virtbench study desktops`: users of more and more desktops at once.

use std::path::Path;

use virtbench_desktops::{Day, Group, Link, VncAddress, supplied};
use virtbench_recipe::ServicePlace;
use virtbench_record::{DesktopGroup, DesktopLink, DesktopNumbers, DesktopOperation, DesktopsPlan};
use virtbench_study::{
    DesktopAppliance, DesktopSource, DesktopsStudy, Estimate, ExistingDesktops, Progress, Run, StudyError,
    check_native,
};
use virtbench_units::format_duration_ns;

use super::common;
use crate::args::desktops_study::{DesktopPlaceArg, DesktopsStudyArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::{password_file, small_file};

/// The share of operations that are to be within their limit ([Platform 2014], section III.D).
const SHARE: f64 = 0.95;
/// Where the password of existing desktops is looked for.
const PASSWORD_VARIABLE: &str = "VIRTBENCH_VNC_PASSWORD";

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &DesktopsStudyArgs) -> Outcome {
    let Inputs { text, day, existing, desktops } = Inputs::read(args)?;
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "desktops"))?;
    let measured = common::run(&out, args.folder.resume, |run| {
        let source = match existing {
            Some(existing) => DesktopSource::Existing(existing),
            None => started(args, &day, run)?,
        };
        let plan = plan(args, Some(&source), &day, text, desktops);
        DesktopsStudy { plan, day: day.clone() }.run(&source, run)
    })?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    common::check_answer(&run)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// The day cannot be read, or the options do not go together.
pub fn estimate(args: &DesktopsStudyArgs) -> Result<Estimate, Failure> {
    let Inputs { text, day, existing, desktops } = Inputs::read(args)?;
    let found = existing.map(DesktopSource::Existing);
    Ok(DesktopsStudy::estimate(&plan(args, found.as_ref(), &day, text, desktops)))
}

/// What a day and options ask for.
struct Inputs {
    /// The day's file.
    text: String,
    day: Day,
    existing: Option<ExistingDesktops>,
    desktops: DesktopNumbers,
}

impl Inputs {
    fn read(args: &DesktopsStudyArgs) -> Result<Self, Failure> {
        let (text, mut day) = day(&args.day)?;
        day.limits.a = args.limit_a.unwrap_or(day.limits.a);
        day.limits.b = args.limit_b.unwrap_or(day.limits.b);
        if day.limits.a.max(day.limits.b) > day.limits.give_up {
            let give_up = format_duration_ns(day.limits.give_up);
            let why = format!(
                "--limit-a, --limit-b: users of the day {} give an operation up after {give_up}",
                day.name
            );
            return Err(Failure::message(Kind::Usage, why));
        }
        if args.are_in_uml() && args.vcpus > 1 {
            let why = format!("--vcpus {}: a guest of User Mode Linux has one processor here", args.vcpus);
            return Err(Failure::message(Kind::Usage, why));
        }
        let existing = existing(args, &day)?;
        let desktops = desktops(args, existing.as_ref())?;
        Ok(Self { text, day, existing, desktops })
    }
}

/// The existing desktops that are named, if any are.
fn existing(args: &DesktopsStudyArgs, day: &Day) -> Result<Option<ExistingDesktops>, Failure> {
    let usage = |why: String| Err(Failure::message(Kind::Usage, why));
    let DesktopPlaceArg::Existing(addresses) = &args.environment else {
        return match &args.password_file {
            Some(_) => usage("--password-file is for existing desktops: --environment vnc://HOST".into()),
            None => Ok(None),
        };
    };
    if let Some((application, operation)) = day.needs_help() {
        return usage(format!(
            "--day {}: {} {} is done by a program inside the session, and nobody is inside existing desktops: name a day of keys and \
             text, such as typing",
            day.name, application.name, operation.name
        ));
    }
    if args.recipe.is_some() {
        return usage("--recipe is for desktops that the study starts, not for existing ones".into());
    }
    let password = password(args.password_file.as_deref())?;
    Ok(Some(ExistingDesktops { addresses: addresses.clone(), password }))
}

fn password(file: Option<&Path>) -> Result<Option<String>, Failure> {
    match file {
        Some(path) => password_file::read(path).map(Some),
        None => Ok(std::env::var(PASSWORD_VARIABLE).ok()),
    }
}

/// How many there are to be: of existing ones no more than are named.
fn desktops(
    args: &DesktopsStudyArgs,
    existing: Option<&ExistingDesktops>,
) -> Result<DesktopNumbers, Failure> {
    let Some(existing) = existing else { return Ok(args.desktops.clone()) };
    let named = u32::try_from(existing.addresses.len()).unwrap_or(u32::MAX);
    match &args.desktops {
        DesktopNumbers::Auto { most } => Ok(DesktopNumbers::Auto { most: named.min(*most) }),
        DesktopNumbers::Given(numbers) => match numbers.iter().find(|number| **number > named) {
            Some(number) => Err(Failure::message(
                Kind::Usage,
                format!(
                    "--desktops {number}: --environment names {named}, and each user needs one: name more"
                ),
            )),
            None => Ok(args.desktops.clone()),
        },
    }
}

/// Desktops that the study starts: their root, and what VMs need.
fn started(args: &DesktopsStudyArgs, day: &Day, run: &mut Run<'_>) -> Result<DesktopSource, StudyError> {
    let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
    let is_vm = args.environment == DesktopPlaceArg::Vm;
    if !is_vm {
        check_native()?;
    }
    // Guests of User Mode Linux have no screen: there the desktop itself serves VNC.
    let place = if is_vm && !args.are_in_uml() { ServicePlace::Vm } else { ServicePlace::Native };
    let desktop = DesktopAppliance::find(args.recipe.as_deref().unwrap_or(&day.recipe), place, progress)?;
    let guests = if is_vm {
        let remark = &mut |what: &str| run.observer.event(virtbench_study::Event::Remark(what));
        let needs = (args.vcpus, desktop.has_screen());
        Some(Box::new(args.qemu.appliance_guests_of_study(needs, remark).map_err(StudyError::from)?))
    } else {
        None
    };
    Ok(DesktopSource::Started { desktop: Box::new(desktop), guests })
}

fn day(name: &str) -> Result<(String, Day), Failure> {
    let usage = |why: String| Failure::message(Kind::Usage, format!("--day {name}: {why}"));
    let text = match supplied::find(name) {
        Some(found) => found.text.to_owned(),
        None => small_file::read(Path::new(name)).map_err(|error| {
            let names = supplied::ALL.map(|supplied| supplied.name).join(", ");
            usage(format!("{error}; a day is a file, or one of {names}"))
        })?,
    };
    let day = Day::parse(&text).map_err(|error| usage(error.to_string()))?;
    Ok((text, day))
}

/// What is measured; without a source, that of desktops whose root has not been looked for.
fn plan(
    args: &DesktopsStudyArgs,
    source: Option<&DesktopSource>,
    day: &Day,
    day_file: String,
    desktops: DesktopNumbers,
) -> DesktopsPlan {
    let operations = day.operations().map(|(application, operation)| DesktopOperation {
        application: application.name.clone(),
        operation: operation.name.clone(),
        group: match operation.group {
            Group::A => DesktopGroup::A,
            Group::B => DesktopGroup::B,
        },
    });
    let (desktop, addresses) = match source {
        Some(DesktopSource::Started { desktop, .. }) => (Some(&**desktop), Vec::new()),
        None => (None, Vec::new()),
        Some(DesktopSource::Existing(existing)) => {
            (None, existing.addresses.iter().map(VncAddress::to_string).collect())
        }
    };
    DesktopsPlan {
        recipe: desktop.map_or_else(String::new, |desktop| desktop.name().to_owned()),
        root: desktop.map_or_else(String::new, |desktop| desktop.root_digest().to_owned()),
        addresses,
        masks: args.mask.clone(),
        link: args.link.map(|Link { delay_ns, rate, loss_ppm }| DesktopLink { delay_ns, rate, loss_ppm }),
        day: day.name.clone(),
        operations: operations.collect(),
        day_file,
        limit_a_ns: day.limits.a,
        limit_b_ns: day.limits.b,
        share: SHARE,
        errors: args.errors / 100.0,
        vm: args.environment == DesktopPlaceArg::Vm,
        desktops,
        repetitions: args.repetitions,
        time_ns: args.time,
        vcpus: args.vcpus,
        memory_bytes: args.memory.unwrap_or_else(|| desktop.map_or(0, DesktopAppliance::least_memory)),
        seed: args.seed,
        accelerator: args.qemu.accelerator_name(),
    }
}
