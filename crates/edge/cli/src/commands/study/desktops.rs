//! `virtbench study desktops`: users of more and more desktops at once.

use virtbench_study::{DesktopsOptions, DesktopsPlace, ExistingDesktops, find_day};

use crate::args::appliance_studies::{DesktopPlaceArg, DesktopsStudyArgs};
use crate::commands::driver;
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Kind};

/// What the day and the options ask for.
pub fn options(args: &DesktopsStudyArgs) -> Result<DesktopsOptions, Failure> {
    let (day_file, mut day) = find_day(&args.day).map_err(study_failure)?;
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
    match (&args.environment, &args.password_file) {
        (DesktopPlaceArg::Existing(addresses), file) => {
            let password = file.as_deref().map(driver::read).transpose()?;
            Ok(DesktopsPlace::Existing(ExistingDesktops::at(addresses.clone(), password)))
        }
        (_, Some(_)) => {
            let why = "--password-file is for existing desktops: --environment vnc://HOST";
            Err(Failure::message(Kind::Usage, why))
        }
        (DesktopPlaceArg::Native, None) => Ok(DesktopsPlace::Native),
        (DesktopPlaceArg::Vm, None) => Ok(DesktopsPlace::Vm),
    }
}
