//! `virtbench study oltp`: a database natively and in VMs.

use virtbench_study::{Estimate, Experiment, OltpOptions};

use super::common;
use crate::args::oltp_study::OltpStudyArgs;
use crate::exit::Outcome;

/// Measures what is missing, then writes the report.
pub fn execute(args: &OltpStudyArgs) -> Outcome {
    common::execute(&options(args), &args.folder)
}

/// What is measured, and about how long that takes.
pub fn estimate(args: &OltpStudyArgs) -> Estimate {
    options(args).estimate()
}

fn options(args: &OltpStudyArgs) -> OltpOptions {
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
