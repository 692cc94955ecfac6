//! `virtbench study tiles`: more and more tiles of different applications at once.

use std::path::Path;

use clap::Parser;
use virtbench_operations::Mix;
use virtbench_recipe::Recipe;
use virtbench_record::{
    OperationKind, OperationsLoad, OperationsPlan, TileLoadKind, TileMemberPlan, TileNumbers, TilesPlan,
};
use virtbench_study::{
    Estimate, Progress, Run, RunEnd, SUPPLIED_TILES, StudyError, TileFile, TileMember, TilesHosting,
    TilesPlace, TilesStudy, check_native, generator_command, mix_on,
};
use virtbench_users::Address;

use super::common;
use super::platform::WantedPlatform;
use crate::args::Arguments;
use crate::args::appliance_place::NetworkArg;
use crate::args::tiles_study::{TilePlaceArg, TilesStudyArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::{recipes, small_file};

/// Memory and disk of each VM that management operations are done on.
const VM_MEMORY: u64 = 128 << 20;
const VM_DISK: u64 = 64 << 20;
/// Management operations in flight at once.
const MOST_AT_ONCE: u32 = 64;

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &TilesStudyArgs) -> Outcome {
    let wanted = Inputs::read(args)?;
    check(args)?;
    wanted.check_addresses(args)?;
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "tiles"))?;
    let measured = common::run(&out, args.folder.resume, |run| wanted.run(args, run))?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    common::check_answer(&run)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// The tile is invalid.
pub fn estimate(args: &TilesStudyArgs) -> Result<Estimate, Failure> {
    let wanted = Inputs::read(args)?;
    let members = wanted.file.members.iter().map(|member| member.plan.clone());
    check(args)?;
    Ok(TilesStudy::estimate(&wanted.plan(args, members.collect(), None)))
}

/// What a tile and options ask for.
struct Inputs {
    file: TileFile,
    /// Of each member.
    recipes: Vec<Recipe>,
}

impl Inputs {
    fn read(args: &TilesStudyArgs) -> Result<Self, Failure> {
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
        Ok(Self { recipes: recipes.collect::<Result<_, _>>()?, file })
    }

    /// Whether members that are there already have an address for each tile.
    fn check_addresses(&self, args: &TilesStudyArgs) -> Outcome {
        let usage = |why: String| Err(Failure::message(Kind::Usage, why));
        let members = || self.file.members.iter().map(|member| &member.plan);
        if args.environment != TilePlaceArg::Existing {
            return match members().find(|member| !member.at.is_empty()) {
                Some(member) => usage(format!(
                    "member {}: at: it is there already: add --environment existing, or leave the addresses out",
                    member.name
                )),
                None => Ok(()),
            };
        }
        let most = match &args.tiles {
            TileNumbers::Given(numbers) => numbers.iter().max().copied().unwrap_or(1),
            TileNumbers::Auto { .. } => 1,
        };
        let few = members()
            .find(|member| member.load.kind != TileLoadKind::Idle && member.at.len() < most as usize);
        match few {
            Some(member) => usage(format!(
                "member {}: at: {} of {most} addresses: each tile needs one, such as at = [\"HOST\", \"HOST:PORT\"]",
                member.name,
                member.at.len()
            )),
            None => members().flat_map(|member| member.at.iter().map(move |at| (member, at))).try_for_each(
                |(member, at)| match Address::parse(at, 1) {
                    Ok(_) => Ok(()),
                    Err(why) => usage(format!("member {}: at: {why}", member.name)),
                },
            ),
        }
    }

    /// How many tiles are tried at most: of those that are there already as many as there are addresses.
    fn tiles(&self, args: &TilesStudyArgs) -> TileNumbers {
        let loaded = self.file.members.iter().map(|member| &member.plan);
        let loaded = loaded.filter(|member| member.load.kind != TileLoadKind::Idle);
        let addresses = loaded.map(|member| u32::try_from(member.at.len()).unwrap_or(u32::MAX)).min();
        match (&args.tiles, &args.environment, addresses) {
            (TileNumbers::Auto { most }, TilePlaceArg::Existing, Some(addresses)) => {
                TileNumbers::Auto { most: addresses.min(*most) }
            }
            (tiles, ..) => tiles.clone(),
        }
    }

    /// How VMs that this run starts are reached.
    fn network(&self, args: &TilesStudyArgs) -> &'static str {
        let of_tile = self.file.network.filter(|_| args.environment == TilePlaceArg::Vm);
        args.network.map(NetworkArg::name).or(of_tile).unwrap_or(NetworkArg::User.name())
    }

    /// Members that are there already, as the plan has them.
    fn existing(&self) -> Vec<TileMemberPlan> {
        let members = self.file.members.iter().zip(&self.recipes).map(|(member, recipe)| TileMemberPlan {
            appliance: recipe.name.clone(),
            memory_bytes: member.memory_bytes.unwrap_or(0),
            ..member.plan.clone()
        });
        members.collect()
    }

    fn run(&self, args: &TilesStudyArgs, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let are_there = args.environment == TilePlaceArg::Existing;
        if args.environment == TilePlaceArg::Native {
            check_native()?;
        }
        let hosting = match &args.environment {
            TilePlaceArg::Host(address) => {
                let (wanted, kernel) = (args.qemu.accelerator.wanted(), args.qemu.kernel.as_deref());
                Some(TilesHosting::find((**address).clone(), wanted, kernel)?)
            }
            _ => None,
        };
        let mut members = Vec::new();
        for (member, recipe) in self.file.members.iter().zip(&self.recipes).filter(|_| !are_there) {
            members.push(TileMember::find(member, recipe, progress)?);
        }
        let (platform, infrastructure) = match platform(args) {
            None => (None, None),
            Some(wanted) => {
                let platform = wanted.connect(run)?;
                let (mix, left_out) = mix_on(&*platform, &Mix::infrastructure(), true)?;
                (Some(platform), Some(operations(args, &wanted, &mix, left_out)))
            }
        };
        let started = || members.iter().map(|member| member.plan().clone()).collect();
        let members_plan = if are_there { self.existing() } else { started() };
        let plan = self.plan(args, members_plan, infrastructure);
        let mut roots: Vec<_> = Vec::new();
        for root in members.iter().map(TileMember::root) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        let remark = &mut |what: &str| run.observer.event(virtbench_study::Event::Remark(what));
        let vcpus = plan.members.iter().map(|member| member.vcpus).max().unwrap_or(1);
        let find = || args.qemu.appliance_guests_of_study((vcpus, false), remark);
        let boots_here = plan.vm && plan.host.is_none();
        let guests = boots_here.then(find).transpose().map_err(StudyError::from)?;
        let program = std::env::current_exe().map_err(|error| StudyError::Environment(error.into()))?;
        let parent = args.target_dir.clone().unwrap_or_else(|| run.out.to_owned());
        let existing = are_there.then(|| self.recipes.clone());
        let place = TilesPlace { guests, parent, name: run.name(), program, platform, existing, hosting };
        TilesStudy { plan, roots }.run(&mut members, &place, run)
    }

    fn plan(
        &self,
        args: &TilesStudyArgs,
        members: Vec<TileMemberPlan>,
        infrastructure: Option<OperationsPlan>,
    ) -> TilesPlan {
        TilesPlan {
            tile: self.file.name.clone(),
            members,
            vm: match &args.environment {
                TilePlaceArg::Vm => true,
                TilePlaceArg::Host(address) => address.has_vms(),
                TilePlaceArg::Native | TilePlaceArg::Existing => false,
            },
            existing: args.environment == TilePlaceArg::Existing,
            host: match &args.environment {
                TilePlaceArg::Host(address) => Some(address.record()),
                _ => None,
            },
            network: self.network(args).to_owned(),
            tiles: self.tiles(args),
            repetitions: args.repetitions,
            ramp_up_ns: args.ramp,
            time_ns: args.time,
            energy: args.energy.clone(),
            seed: args.seed,
            accelerator: args.qemu.accelerator_name(),
            infrastructure,
        }
    }
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

/// The platform of the infrastructure load, if one is named.
fn platform(args: &TilesStudyArgs) -> Option<WantedPlatform<'_>> {
    let load = &args.infrastructure;
    Some(WantedPlatform {
        address: load.platform.as_deref()?,
        destination: load.destination.as_deref(),
        clones: vec![load.clone.kind()],
        array_command: None,
        memory_bytes: VM_MEMORY,
        disk_bytes: VM_DISK,
        qemu: &args.qemu,
    })
}

/// What is wrong with the infrastructure load, or contradicts the place, is said before anything is made.
fn check(args: &TilesStudyArgs) -> Outcome {
    if matches!(args.environment, TilePlaceArg::Host(_))
        && args.network.is_some_and(|network| network != NetworkArg::User)
    {
        let why = "--network: on another machine members are on network=NAME or bridge=NAME of its address: leave --network out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let Some(wanted) = platform(args) else { return Ok(()) };
    wanted.check()?;
    let mix = Mix::infrastructure();
    if operations(args, &wanted, &mix, Vec::new()).pace().is_some() {
        return Ok(());
    }
    let why = format!(
        "--pace: the infrastructure load has {} kinds of operations, and the measuring time room for fewer at this pace: raise \
         --pace or --time",
        mix.shares().len()
    );
    Err(Failure::message(Kind::Usage, why))
}

/// The operations of the infrastructure load.
fn operations(
    args: &TilesStudyArgs,
    wanted: &WantedPlatform<'_>,
    mix: &Mix,
    left_out: Vec<OperationKind>,
) -> OperationsPlan {
    let load = &args.infrastructure;
    OperationsPlan {
        platform: wanted.address.to_owned(),
        destination: wanted.destination.map(str::to_owned),
        mix: mix.shares().clone(),
        left_out,
        vms: vec![load.platform_vms],
        load: OperationsLoad::Open(vec![load.pace]),
        pieces: 1,
        piece_ns: args.time,
        warm_ns: args.ramp,
        clones: wanted.clones.clone(),
        limit_ns: load.operation_limit,
        most_at_once: MOST_AT_ONCE,
        memory_bytes: wanted.memory_bytes,
        disk_bytes: wanted.disk_bytes,
        accelerator: args.qemu.accelerator_name(),
        seed: args.seed,
        tenants: Vec::new(),
        tenant_workload: None,
    }
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
