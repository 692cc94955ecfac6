//! `virtbench study application`: an appliance under a client of the user's, natively and in VMs.

use std::path::Path;

use virtbench_study::{ApplicationFile, ApplicationOptions, Estimate, Experiment};

use super::common;
use crate::args::application_study::ApplicationStudyArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{recipes, small_file};

/// Measures what is missing, then writes the report.
pub fn execute(args: &ApplicationStudyArgs) -> Outcome {
    common::execute(&options(args)?, &args.folder)
}

/// What is measured, and about how long that takes, where the file says how long a client takes.
///
/// # Errors
/// The file is invalid.
pub fn estimate(args: &ApplicationStudyArgs) -> Result<Estimate, Failure> {
    Ok(options(args)?.estimate())
}

/// A study that virtbench brings along, by its name.
fn supplied(name: &Path) -> Option<&'static str> {
    (name == Path::new("redis")).then_some(include_str!("../../../../../../docs/applications/redis.toml"))
}

/// What the file and the options ask for.
fn options(args: &ApplicationStudyArgs) -> Result<ApplicationOptions, Failure> {
    let path = args.file.as_deref().ok_or_else(|| Failure::message(Kind::Usage, "name the study's file"))?;
    let usage = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    let text = match supplied(path) {
        Some(text) if !path.exists() => text.to_owned(),
        _ => small_file::read(path).map_err(usage)?,
    };
    let mut file = ApplicationFile::parse(&text).map_err(|error| usage(error.to_string()))?;
    if !args.vcpus.is_empty() {
        file.vcpus.clone_from(&args.vcpus);
    }
    file.memory_bytes = args.memory.or(file.memory_bytes);
    file.repetitions = args.repetitions.unwrap_or(file.repetitions);
    if let Some(neighbours) = args.neighbours {
        file.neighbours = neighbours;
        file.neighbour = file.neighbour.filter(|_| neighbours > 0);
    }
    if let Some(disk) = &args.disk {
        file.disk.clone_from(disk);
    }
    file.check().map_err(usage)?;
    let find = |name: &str| recipes::find_beside(path, name).map(|found| found.recipe);
    let neighbour =
        file.neighbour.as_ref().map(|other| find(other.appliance.as_ref().unwrap_or(&file.appliance)));
    Ok(ApplicationOptions {
        recipe: find(&file.appliance)?,
        neighbour: neighbour.transpose()?,
        tiers: file.tiers.iter().map(|tier| find(&tier.appliance)).collect::<Result<_, _>>()?,
        file,
        seed: args.seed,
        guests: args.place.qemu.choice(),
        network: args.place.network.name().to_owned(),
        target_dir: args.place.target_dir.clone(),
    })
}
