//! `virtbench study tiles`: more and more tiles of different applications at once.

use clap::Parser;
use virtbench_record::{TileLoadKind, TileMemberPlan};
use virtbench_study::{TileFile, TilesOptions, generator_command};

use crate::args::Arguments;
use crate::args::appliance::NetworkArg;
use crate::args::tiles_study::TilesStudyArgs;
use crate::commands::study_runs::study_failure;
use crate::exit::{Failure, Kind};

/// What the tile and the options ask for.
pub fn options(args: &TilesStudyArgs) -> Result<TilesOptions, Failure> {
    let name = &args.tile;
    let usage = |why: String| Failure::message(Kind::Usage, format!("--tile {name}: {why}"));
    let file = TileFile::find(name).map_err(study_failure)?;
    file.members.iter().try_for_each(|member| check_options(&member.plan)).map_err(usage)?;
    let options = TilesOptions {
        recipes: file.find_recipes(name).map_err(study_failure)?,
        file,
        place: args.environment.clone(),
        tiles: args.tiles.clone(),
        network: args.network.map(|network| NetworkArg::name(network).to_owned()),
        predict: args.predict,
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
