//! `virtbench study tiles`: more and more tiles of different applications at once.

use std::path::Path;

use clap::Parser;
use virtbench_record::{TileLoadKind, TileMemberPlan};
use virtbench_study::{Estimate, Experiment, SUPPLIED_TILES, TileFile, TilesOptions, generator_command};

use super::common::{self, study_failure};
use crate::args::Arguments;
use crate::args::appliance_place::NetworkArg;
use crate::args::tiles_study::TilesStudyArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{recipes, small_file};

/// Measures what is missing, then writes the report.
pub fn execute(args: &TilesStudyArgs) -> Outcome {
    common::execute(&options(args)?, &args.folder)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// The tile is invalid.
pub fn estimate(args: &TilesStudyArgs) -> Result<Estimate, Failure> {
    Ok(options(args)?.estimate())
}

/// What the tile and the options ask for.
fn options(args: &TilesStudyArgs) -> Result<TilesOptions, Failure> {
    let name = &args.tile;
    let usage = |why: String| Failure::message(Kind::Usage, format!("--tile {name}: {why}"));
    let supplied = SUPPLIED_TILES.iter().find(|tile| tile.name == name);
    let text = match supplied {
        Some(tile) => tile.text.to_owned(),
        None => read(Path::new(name)).map_err(usage)?,
    };
    let file = TileFile::parse(&text).map_err(|error| usage(error.to_string()))?;
    file.members.iter().try_for_each(|member| check_options(&member.plan)).map_err(usage)?;
    let find = |appliance: &str| {
        let found = match supplied {
            Some(_) => recipes::find(appliance),
            None => recipes::find_beside(Path::new(name), appliance),
        };
        found.map(|found| found.recipe)
    };
    let recipes = file.members.iter().map(|member| find(&member.appliance));
    let options = TilesOptions {
        recipes: recipes.collect::<Result<_, _>>()?,
        file,
        place: args.environment.clone(),
        tiles: args.tiles.clone(),
        network: args.network.map(|network| NetworkArg::name(network).to_owned()),
        repetitions: args.repetitions,
        ramp_ns: args.ramp,
        time_ns: args.time,
        energy: args.energy.clone(),
        seed: args.seed,
        infrastructure: args.infrastructure.options(),
        guests: args.qemu.choice(),
        target_dir: args.target_dir.clone(),
        program: None,
    };
    options.check().map_err(study_failure)?;
    Ok(options)
}

/// Whether a member's generator takes its options.
fn check_options(member: &TileMemberPlan) -> Result<(), String> {
    let command = generator_command(member.load.kind);
    if command.is_empty() {
        return Ok(());
    }
    let somewhere = match member.load.kind {
        TileLoadKind::Oltp => "postgresql://user@127.0.0.1/tpcc",
        _ => "127.0.0.1",
    };
    let options = member.load.options.iter().map(String::as_str);
    let line = ["virtbench"].iter().chain(command).copied().chain([somewhere]).chain(options);
    Arguments::try_parse_from(line).map(drop).map_err(|error| {
        let text = error.to_string();
        let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        format!("member {}: load: options: {why}", member.name)
    })
}

fn read(path: &Path) -> Result<String, String> {
    small_file::read(path).map_err(|why| {
        if path.is_file() {
            return why;
        }
        let names = SUPPLIED_TILES.map(|tile| tile.name).join(", ");
        format!("{why}; a tile is a file, or one of {names}")
    })
}
