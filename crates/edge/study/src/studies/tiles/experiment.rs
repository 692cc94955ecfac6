//! The study of tiles as a user asks for it: a tile, and where its members run.

use std::path::PathBuf;

use virtbench_operations::Mix;
use virtbench_recipe::Recipe;
use virtbench_record::{
    CloneKind, OperationKind, OperationsLoad, OperationsPlan, TileLoadKind, TileMemberPlan, TileNumbers,
    TilesPlan,
};

use super::file::TileFile;
use super::host::{HostAddress, TilesHosting, TilesPlace};
use super::run::TilesStudy;
use super::tile_member::TileMember;
use super::uses::MemberAt;
use crate::appliances::place::check_native;
use crate::guests::GuestChoice;
use crate::runner::event::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::studies::operations::{PlatformChoice, mix_on};
use crate::study_error::StudyError;

/// Memory and disk of each VM that management operations are done on, in bytes.
const VM_MEMORY: u64 = 128 << 20;
const VM_DISK: u64 = 64 << 20;
/// Management operations in flight at once.
const MOST_AT_ONCE: u32 = 64;
/// How VMs are reached where nothing is said.
const USER_NETWORK: &str = "user";

/// Where members run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberPlace {
    /// On this host, in namespaces of their own.
    Native,
    /// In a VM each.
    Vm,
    /// They are there already, at the addresses that the tile's file has (`at`).
    Existing,
    /// On a machine of the user's: in VMs of its hypervisor, or natively.
    Host(Box<HostAddress>),
}

/// Management operations beside the tiles.
#[derive(Debug, Clone)]
pub struct InfrastructureOptions {
    /// The address of their platform.
    pub platform: String,
    /// Where VMs are moved to and back.
    pub destination: Option<String>,
    /// Operations a minute, all kinds together.
    pub per_minute: f64,
    /// VMs that they are done on.
    pub vms: u32,
    /// How a clone's disk is made.
    pub clone: CloneKind,
    /// The longest that one may take, in nanoseconds.
    pub limit_ns: u64,
}

/// What a study of tiles is asked to do.
#[derive(Debug, Clone)]
pub struct TilesOptions {
    /// The tile.
    pub file: TileFile,
    /// The recipe of each of its members.
    pub recipes: Vec<Recipe>,
    /// Where members run.
    pub place: MemberPlace,
    /// How many tiles are tried.
    pub tiles: TileNumbers,
    /// How VMs that are started here are reached, `user` or `tap`; else as the tile says.
    pub network: Option<String>,
    /// Whether each member is measured by itself first, and tiles are predicted from that.
    pub predict: bool,
    /// How often each number of tiles is measured.
    pub repetitions: u32,
    /// How long members are under load before measuring, in nanoseconds.
    pub ramp_ns: u64,
    /// How long to measure, in nanoseconds.
    pub time_ns: u64,
    /// Where power is read; else the host's own account where it has one.
    pub energy: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Management operations beside the tiles, if there are to be some.
    pub infrastructure: Option<InfrastructureOptions>,
    /// What runs the VMs.
    pub guests: GuestChoice,
    /// Folder for the data; else the run folder.
    pub target_dir: Option<PathBuf>,
    /// The program `virtbench`, whose modes are the generators; else the one that runs.
    pub program: Option<PathBuf>,
}

impl TilesOptions {
    /// Looks whether the options go together, before anything is made.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), StudyError> {
        let is_user = self.network.as_deref().is_none_or(|network| network == USER_NETWORK);
        if matches!(self.place, MemberPlace::Host(_)) && !is_user {
            let why = "--network: on another machine members are on network=NAME or bridge=NAME of its address: leave --network out";
            return Err(StudyError::input(why));
        }
        self.check_addresses()?;
        if self.predict && self.plan(self.existing(), None).is_elsewhere() {
            let why = "--predict: members run on another machine, and what they take of its processors is not known: leave --predict out";
            return Err(StudyError::input(why));
        }
        let Some(load) = &self.infrastructure else { return Ok(()) };
        self.platform(load).check()?;
        let mix = Mix::infrastructure();
        if self.operations(load, &mix, Vec::new()).pace().is_some() {
            return Ok(());
        }
        Err(StudyError::input(format!(
            "--pace: the infrastructure load has {} kinds of operations, and the measuring time room for fewer at this pace: raise \
             --pace or --time",
            mix.shares().len()
        )))
    }

    /// Whether members that are there already have an address for each tile.
    fn check_addresses(&self) -> Result<(), StudyError> {
        let usage = |why: String| Err(StudyError::input(why));
        let members = || self.file.members.iter().map(|member| &member.plan);
        if self.place != MemberPlace::Existing {
            return match members().find(|member| !member.at.is_empty()) {
                Some(member) => usage(format!(
                    "member {}: at: it is there already: add --environment existing, or leave the addresses out",
                    member.name
                )),
                None => Ok(()),
            };
        }
        let most = match &self.tiles {
            TileNumbers::Given(numbers) => numbers.iter().max().copied().unwrap_or(1),
            TileNumbers::Auto { .. } => 1,
        };
        for member in members() {
            let at = match MemberAt::parse(&member.at) {
                Ok(at) => at,
                Err(why) => return usage(format!("member {}: at: {why}", member.name)),
            };
            if member.load.kind != TileLoadKind::Idle && at.tiles() < most {
                return usage(format!(
                    "member {}: at: {} of {most} addresses: each tile needs one, such as at = [\"HOST\", \"HOST:PORT\"]",
                    member.name,
                    member.at.len()
                ));
            }
        }
        Ok(())
    }

    /// How many tiles are tried at most: of those that are there already as many as there are addresses.
    fn numbers(&self) -> TileNumbers {
        let loaded = self.file.members.iter().map(|member| &member.plan);
        let loaded = loaded.filter(|member| member.load.kind != TileLoadKind::Idle);
        // What is no address is said elsewhere.
        let addresses = loaded.map(|member| MemberAt::parse(&member.at).map_or(0, |at| at.tiles())).min();
        match (&self.tiles, &self.place, addresses) {
            (TileNumbers::Auto { most }, MemberPlace::Existing, Some(addresses)) => {
                TileNumbers::Auto { most: addresses.min(*most) }
            }
            (tiles, ..) => tiles.clone(),
        }
    }

    /// How VMs that this run starts are reached.
    fn network(&self) -> String {
        let of_tile = self.file.network.filter(|_| self.place == MemberPlace::Vm);
        self.network.clone().unwrap_or_else(|| of_tile.unwrap_or(USER_NETWORK).to_owned())
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

    fn plan(&self, members: Vec<TileMemberPlan>, infrastructure: Option<OperationsPlan>) -> TilesPlan {
        TilesPlan {
            tile: self.file.name.clone(),
            members,
            vm: match &self.place {
                MemberPlace::Vm => true,
                MemberPlace::Host(address) => address.has_vms(),
                MemberPlace::Native | MemberPlace::Existing => false,
            },
            existing: self.place == MemberPlace::Existing,
            host: match &self.place {
                MemberPlace::Host(address) => Some(address.record()),
                _ => None,
            },
            network: self.network(),
            tiles: self.numbers(),
            repetitions: self.repetitions,
            ramp_up_ns: self.ramp_ns,
            time_ns: self.time_ns,
            energy: self.energy.clone(),
            seed: self.seed,
            accelerator: self.guests.accelerator_name(),
            infrastructure,
            predict: self.predict,
        }
    }

    /// The platform of the infrastructure load.
    fn platform(&self, load: &InfrastructureOptions) -> PlatformChoice {
        PlatformChoice {
            address: load.platform.clone(),
            destination: load.destination.clone(),
            clones: vec![load.clone],
            array_command: None,
            memory_bytes: VM_MEMORY,
            disk_bytes: VM_DISK,
            guests: self.guests.clone(),
        }
    }

    /// The operations of the infrastructure load.
    fn operations(
        &self,
        load: &InfrastructureOptions,
        mix: &Mix,
        left_out: Vec<OperationKind>,
    ) -> OperationsPlan {
        OperationsPlan {
            platform: load.platform.clone(),
            destination: load.destination.clone(),
            mix: mix.shares().clone(),
            left_out,
            vms: vec![load.vms],
            load: OperationsLoad::Open(vec![load.per_minute]),
            pieces: 1,
            piece_ns: self.time_ns,
            warm_ns: self.ramp_ns,
            clones: vec![load.clone],
            limit_ns: load.limit_ns,
            most_at_once: MOST_AT_ONCE,
            memory_bytes: VM_MEMORY,
            disk_bytes: VM_DISK,
            accelerator: self.guests.accelerator_name(),
            seed: self.seed,
            tenants: Vec::new(),
            tenant_workload: None,
        }
    }
}

impl Experiment for TilesOptions {
    const NAME: &'static str = "tiles";

    fn estimate(&self) -> Estimate {
        let members = self.file.members.iter().map(|member| member.plan.clone());
        TilesStudy::estimate(&self.plan(members.collect(), None))
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        self.check()?;
        if self.place == MemberPlace::Native {
            check_native()?;
        }
        let hosting = match &self.place {
            MemberPlace::Host(address) => {
                let GuestChoice { accelerator, kernel } = &self.guests;
                Some(TilesHosting::find((**address).clone(), *accelerator, kernel.as_deref())?)
            }
            _ => None,
        };
        let are_there = self.place == MemberPlace::Existing;
        let mut members = Vec::new();
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        for (member, recipe) in self.file.members.iter().zip(&self.recipes).filter(|_| !are_there) {
            members.push(TileMember::find(member, recipe, progress)?);
        }
        let (platform, infrastructure) = match &self.infrastructure {
            None => (None, None),
            Some(load) => {
                let platform = self.platform(load).connect(run)?;
                let (mix, left_out) = mix_on(&*platform, &Mix::infrastructure(), true)?;
                (Some(platform), Some(self.operations(load, &mix, left_out)))
            }
        };
        let started = || members.iter().map(|member| member.plan().clone()).collect();
        let plan = self.plan(if are_there { self.existing() } else { started() }, infrastructure);
        let mut roots: Vec<_> = Vec::new();
        for root in members.iter().map(TileMember::root) {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        let vcpus = plan.members.iter().map(|member| member.vcpus).max().unwrap_or(1);
        let boots_here = plan.vm && plan.host.is_none();
        let guests = boots_here.then(|| self.guests.find((vcpus, false), run)).transpose()?;
        let own = || std::env::current_exe().map_err(|error| StudyError::Environment(error.into()));
        let program = self.program.clone().map_or_else(own, Ok)?;
        let parent = self.target_dir.clone().unwrap_or_else(|| run.out.to_owned());
        let existing = are_there.then(|| self.recipes.clone());
        let place = TilesPlace { guests, parent, name: run.name(), program, platform, existing, hosting };
        TilesStudy { plan, roots }.run(&mut members, &place, run)
    }
}
