//! `virtbench study operations`: how fast a platform's control plane is.

use virtbench_record::OperationsLoad;
use virtbench_study::{OperationsOptions, PlatformChoice, find_mix};

use crate::args::operations::{OperationsArgs, RateArg};
use crate::commands::study_runs::operations_verdict::verdict;
use crate::commands::study_runs::{measured, study_failure};
use crate::exit::{Failure, Outcome};

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &OperationsArgs) -> Outcome {
    let run = measured(&options(args)?, &args.folder)?;
    verdict(&args.fail_on, run.provenance.plan.operations(), run.records.operations())
}

/// What the options ask for.
pub fn options(args: &OperationsArgs) -> Result<OperationsOptions, Failure> {
    let platform = PlatformChoice {
        address: args.platform.clone(),
        destination: args.destination.clone(),
        clones: args.clone.iter().map(|way| way.kind()).collect(),
        array_command: args.array_command.clone(),
        memory_bytes: args.memory,
        disk_bytes: args.disk,
        guests: args.qemu.choice(),
    };
    platform.check().map_err(study_failure)?;
    let load = match (&args.rate, args.clients) {
        (_, Some(clients)) => OperationsLoad::Closed(clients),
        (RateArg::Max, None) => OperationsLoad::Max { limit_ns: args.latency_limit },
        (RateArg::PerMinute(rates), None) => OperationsLoad::Open(rates.clone()),
    };
    Ok(OperationsOptions {
        platform,
        mix: find_mix(&args.mix).map_err(study_failure)?,
        leave_out: args.leave_out,
        load,
        vms: args.vms.clone(),
        time_ns: args.time,
        piece_ns: args.piece,
        ramp_ns: args.ramp,
        limit_ns: args.limit,
        most_at_once: args.at_once,
        tenants: args.tenant.clone(),
        tenant_workload: args.tenant_workload.clone(),
        tenant_bytes: args.tenant_size,
        seed: args.seed,
    })
}
