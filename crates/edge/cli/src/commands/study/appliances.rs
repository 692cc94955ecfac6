//! `virtbench study application` and `oltp`: one appliance natively and in VMs.

use virtbench_study::{ApplicationFile, ApplicationOptions, OltpOptions};

use crate::args::appliance_studies::{ApplicationStudyArgs, OltpStudyArgs};
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Kind};

/// An appliance under a client of the user's: what the file and the options ask for.
pub fn application(args: &ApplicationStudyArgs) -> Result<ApplicationOptions, Failure> {
    let path = args.file.as_deref().ok_or_else(|| Failure::message(Kind::Usage, "name the study's file"))?;
    let change = |file: &mut ApplicationFile| {
        if !args.vcpus.is_empty() {
            file.vcpus.clone_from(&args.vcpus);
        }
        file.memory_bytes = args.memory.or(file.memory_bytes);
        file.repetitions = args.repetitions.unwrap_or(file.repetitions);
        args.neighbours.into_iter().for_each(|neighbours| file.set_neighbours(neighbours));
        args.disk.iter().for_each(|disk| file.disk.clone_from(disk));
    };
    Ok(ApplicationOptions {
        seed: args.seed,
        guests: args.place.qemu.choice(),
        network: args.place.network.name().to_owned(),
        target_dir: args.place.target_dir.clone(),
        ..ApplicationOptions::of_file(path, change).map_err(study_failure)?
    })
}

/// A database.
pub fn oltp(args: &OltpStudyArgs) -> OltpOptions {
    OltpOptions {
        database: args.database.kind(),
        warehouses: args.warehouses,
        vcpus: args.vcpus.clone(),
        memory_bytes: args.memory,
        users: args.users.clone(),
        repetitions: args.repetitions,
        ramp_ns: args.ramp,
        search_ns: args.search_time,
        time_ns: args.time,
        think_factor: args.think_times,
        seed: args.seed,
        guests: args.place.qemu.choice(),
        network: args.place.network.name().to_owned(),
        target_dir: args.place.target_dir.clone(),
    }
}
