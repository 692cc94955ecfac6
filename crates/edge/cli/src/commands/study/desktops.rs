//! `virtbench study desktops`: users of more and more desktops at once.

use std::path::Path;

use virtbench_desktops::{Day, supplied};
use virtbench_study::{DesktopsOptions, DesktopsPlace, Estimate, ExistingDesktops, Experiment};

use super::common::{self, study_failure};
use crate::args::desktops_study::{DesktopPlaceArg, DesktopsStudyArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::{password_file, small_file};

/// Where the password of existing desktops is looked for.
const PASSWORD_VARIABLE: &str = "VIRTBENCH_VNC_PASSWORD";

/// Measures what is missing, then writes the report.
pub fn execute(args: &DesktopsStudyArgs) -> Outcome {
    common::execute(&options(args)?, &args.folder)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// The day cannot be read, or the options do not go together.
pub fn estimate(args: &DesktopsStudyArgs) -> Result<Estimate, Failure> {
    Ok(options(args)?.estimate())
}

/// What the day and the options ask for.
fn options(args: &DesktopsStudyArgs) -> Result<DesktopsOptions, Failure> {
    let (day_file, mut day) = day(&args.day)?;
    day.limits.a = args.limit_a.unwrap_or(day.limits.a);
    day.limits.b = args.limit_b.unwrap_or(day.limits.b);
    let options = DesktopsOptions {
        day_file,
        day,
        place: place(args)?,
        recipe: args.recipe.clone(),
        masks: args.mask.clone(),
        link: args.link,
        desktops: args.desktops.clone(),
        errors: args.errors / 100.0,
        repetitions: args.repetitions,
        time_ns: args.time,
        vcpus: args.vcpus,
        memory_bytes: args.memory,
        seed: args.seed,
        guests: args.qemu.choice(),
    };
    options.check().map_err(study_failure)?;
    Ok(options)
}

fn place(args: &DesktopsStudyArgs) -> Result<DesktopsPlace, Failure> {
    let place = match &args.environment {
        DesktopPlaceArg::Existing(addresses) => {
            let password = password(args.password_file.as_deref())?;
            return Ok(DesktopsPlace::Existing(ExistingDesktops { addresses: addresses.clone(), password }));
        }
        DesktopPlaceArg::Native => DesktopsPlace::Native,
        DesktopPlaceArg::Vm => DesktopsPlace::Vm,
    };
    if args.password_file.is_some() {
        let why = "--password-file is for existing desktops: --environment vnc://HOST";
        return Err(Failure::message(Kind::Usage, why));
    }
    Ok(place)
}

fn password(file: Option<&Path>) -> Result<Option<String>, Failure> {
    match file {
        Some(path) => password_file::read(path).map(Some),
        None => Ok(std::env::var(PASSWORD_VARIABLE).ok()),
    }
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
