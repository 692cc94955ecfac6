//! `virtbench study application`: an appliance under a client of the user's, natively and in VMs.

use std::path::Path;

use virtbench_recipe::Recipe;
use virtbench_record::{ApplianceSide, ApplicationLoad, ApplicationPlan, ApplicationTier};
use virtbench_study::{
    ApplianceLoad, ApplicationFile, ApplicationStudy, BuiltAppliance, Estimate, Progress, SideKind,
    StudyError, TierFile, check_native, is_program,
};

use super::common;
use crate::args::application_study::ApplicationStudyArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{recipes, small_file};

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &ApplicationStudyArgs) -> Outcome {
    let wanted = Inputs::read(args)?;
    wanted.find_programs()?;
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "application"))?;
    let measured = common::run(&out, args.folder.resume, |run| {
        if wanted.file.sides.contains(&SideKind::Native) {
            check_native()?;
        }
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let load = ApplianceLoad::new(
            BuiltAppliance::find(&wanted.recipe, progress)?,
            wanted.file.prepare.clone(),
            wanted.file.client.clone(),
        );
        let neighbour = match (&wanted.file.neighbour, &wanted.neighbour) {
            (Some(file), Some(recipe)) => {
                let built = BuiltAppliance::find(recipe, progress)?;
                Some(ApplianceLoad::new(built, file.prepare.clone(), file.client.clone()))
            }
            _ => None,
        };
        let tiers = wanted.tiers(progress)?;
        let named = wanted.file.tiers.iter().zip(&tiers);
        let tier_plans = named.map(|(file, tier)| tier.tier_plan(&file.name)).collect();
        let beside = neighbour.as_ref().map(|other| other.plan().clone());
        let plan = wanted.plan(args, load.plan().clone(), beside, tier_plans);
        let all = [Some(&load), neighbour.as_ref()].into_iter().flatten().chain(&tiers);
        let roots = all.map(|one| one.built().root());
        let mut roots: Vec<_> = roots.collect();
        roots.dedup();
        let remark = &mut |what: &str| run.observer.event(virtbench_study::Event::Remark(what));
        let vcpus = plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
        let find = || args.place.qemu.appliance_guests_of_study((vcpus, false), remark);
        let has_vms = plan.sides.iter().any(|side| side.vm);
        let guests = has_vms.then(find).transpose().map_err(StudyError::from)?;
        let folder: &Path = args.place.folder(run.out);
        let name = run.name();
        let mut sides =
            virtbench_study::LoadedAppliances::new(&plan, load, (neighbour, tiers), guests, folder, &name)?;
        ApplicationStudy { plan: plan.clone(), roots }.run(&mut sides, run)
    })?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    common::check_answer(&run)
}

/// What is measured, and about how long that takes, where the file says how long a client takes.
///
/// # Errors
/// The file is invalid.
pub fn estimate(args: &ApplicationStudyArgs) -> Result<Estimate, Failure> {
    let wanted = Inputs::read(args)?;
    let load = |recipe: &Recipe| ApplicationLoad {
        appliance: recipe.name.clone(),
        root: String::new(),
        prepare: Vec::new(),
        client: Vec::new(),
    };
    let named = wanted.file.tiers.iter().zip(&wanted.tiers);
    let tier = |(file, recipe): (&TierFile, &Recipe)| ApplicationTier {
        name: file.name.clone(),
        appliance: recipe.name.clone(),
        root: String::new(),
        prepare: Vec::new(),
    };
    let tiers = named.map(tier).collect();
    Ok(ApplicationStudy::estimate(&wanted.plan(args, load(&wanted.recipe), None, tiers)))
}

/// What a file and options ask for.
struct Inputs {
    file: ApplicationFile,
    recipe: Recipe,
    neighbour: Option<Recipe>,
    tiers: Vec<Recipe>,
}

impl Inputs {
    fn read(args: &ApplicationStudyArgs) -> Result<Self, Failure> {
        let path =
            args.file.as_deref().ok_or_else(|| Failure::message(Kind::Usage, "name the study's file"))?;
        let usage = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
        let text = small_file::read(path).map_err(usage)?;
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
        let recipe = find(&file.appliance)?;
        let neighbour =
            file.neighbour.as_ref().map(|other| find(other.appliance.as_ref().unwrap_or(&file.appliance)));
        let tiers = file.tiers.iter().map(|tier| find(&tier.appliance)).collect::<Result<_, _>>()?;
        Ok(Self { recipe, neighbour: neighbour.transpose()?, tiers, file })
    }

    /// The appliances of further tiers, built where they have not been.
    fn tiers(&self, progress: &mut Progress<'_>) -> Result<Vec<ApplianceLoad>, StudyError> {
        let files = self.file.tiers.iter().zip(&self.tiers);
        let one = |(file, recipe): (&TierFile, &Recipe)| {
            Ok(ApplianceLoad::of_tier(BuiltAppliance::find(recipe, progress)?, file.prepare.clone()))
        };
        files.map(one).collect()
    }

    /// Fails where a program of the file's commands is not here.
    fn find_programs(&self) -> Outcome {
        let of_tiers = self.file.tiers.iter().flat_map(|tier| &tier.prepare);
        let others = self.file.neighbour.iter().flat_map(|other| other.prepare.iter().chain([&other.client]));
        let commands = self.file.prepare.iter().chain(of_tiers).chain([&self.file.client]).chain(others);
        let missing = commands.filter_map(|words| words.first()).find(|name| !is_program(name));
        missing.map_or(Ok(()), |name| {
            let message = format!("{name} is not here: install it, or name it with its folder");
            Err(Failure::message(Kind::Environment, message))
        })
    }

    fn plan(
        &self,
        args: &ApplicationStudyArgs,
        load: ApplicationLoad,
        neighbour: Option<ApplicationLoad>,
        tiers: Vec<ApplicationTier>,
    ) -> ApplicationPlan {
        let file = &self.file;
        let memory_bytes = file.memory_bytes.unwrap_or(self.recipe.memory);
        let vms: Vec<bool> = file.sides.iter().map(|kind| *kind == SideKind::Vm).collect();
        ApplicationPlan {
            load,
            tiers,
            metrics: file.metrics.clone(),
            limit_ns: file.limit_ns,
            takes_ns: file.takes_ns,
            sides: ApplianceSide::of_sizes(&vms, &file.vcpus, memory_bytes),
            repetitions: file.repetitions,
            neighbours: file.neighbours,
            neighbour,
            disk: file.disk.clone(),
            seed: args.seed,
            accelerator: args.place.qemu.accelerator_name(),
            network: args.place.network.name().to_owned(),
        }
    }
}
