//! `virtbench study oltp`: a database natively and in VMs.

use virtbench_record::{ApplianceSide, OltpMix, OltpStudyPlan};
use virtbench_study::{
    ApplianceSides, DatabaseAppliance, Estimate, OltpStudy, Progress, StudyError, check_native,
};

use super::common;
use crate::args::oltp_study::OltpStudyArgs;
use crate::exit::{Failure, Outcome};

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &OltpStudyArgs) -> Outcome {
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "oltp"))?;
    let measured = common::run(&out, args.folder.resume, |run| {
        // One side is native.
        check_native()?;
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let database = DatabaseAppliance::find(args.database.kind(), progress)?;
        let plan = plan(args, database.root_digest(), database.least_memory());
        let vcpus = plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
        let remark = &mut |what: &str| run.observer.event(virtbench_study::Event::Remark(what));
        let guests =
            args.place.qemu.appliance_guests_of_study((vcpus, false), remark).map_err(StudyError::from)?;
        let (folder, name) = (args.place.folder(run.out), run.name());
        let mut sides = ApplianceSides::new(&database, &plan, Some(guests), folder, &name)?;
        OltpStudy { plan: plan.clone(), root: Some(database.root()) }.run(&mut sides, run)
    })?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    common::check_answer(&run)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// None: its options have been read.
pub fn estimate(args: &OltpStudyArgs) -> Result<Estimate, Failure> {
    Ok(OltpStudy::estimate(&plan(args, "", 0)))
}

fn plan(args: &OltpStudyArgs, root: &str, least_memory: u64) -> OltpStudyPlan {
    let memory_bytes = args.memory.unwrap_or(least_memory);
    OltpStudyPlan {
        database: args.database.kind(),
        root: root.to_owned(),
        warehouses: args.warehouses,
        population_seed: args.seed,
        sides: ApplianceSide::of_sizes(&[false, true], &args.vcpus, memory_bytes),
        users: args.users.clone(),
        repetitions: args.repetitions,
        ramp_up_ns: args.ramp,
        search_ns: args.search_time,
        time_ns: args.time,
        mix: OltpMix::default(),
        think_factor: args.think_times,
        seed: args.seed,
        accelerator: args.place.qemu.accelerator_name(),
        network: args.place.network.name().to_owned(),
    }
}
