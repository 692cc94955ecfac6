//! `virtbench study operations`: how fast a platform's control plane is.

use std::path::Path;

use virtbench_operations::Mix;
use virtbench_record::{CloneKind, OperationKind, OperationsLoad, OperationsPlan};
use virtbench_study::{
    Estimate, Event, FoundEnvironments, GuestOptions, NamedEnvironment, OperationsStudy, PlatformChoice, Run,
    StudyError, Tenants, estimate_operations, mix_on, tenant_job,
};
use virtbench_workload::JobSpec;

use super::common;
use super::operations_verdict::verdict;
use crate::args::operations::{OperationsArgs, RateArg};
use crate::exit::{Failure, Kind, Outcome};
use crate::small_file;

/// The least memory of a tenant that is booted, in bytes.
const TENANT_MEMORY: u64 = 128 << 20;
/// The largest mix, in bytes.
const MAX_MIX_BYTES: usize = 64 << 10;

/// Pieces and how long they take about.
pub fn estimate(args: &OperationsArgs) -> Result<Estimate, Failure> {
    platform(args).check().map_err(common::study_failure)?;
    Ok(estimate_operations(&plan(args, &mix(args)?, Vec::new())))
}

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &OperationsArgs) -> Outcome {
    platform(args).check().map_err(common::study_failure)?;
    let mix = mix(args)?;
    let named = named_tenants(args)?;
    let job = tenant_job(args.tenant_workload.as_ref(), args.tenant_size)
        .map_err(|error| Failure::message(Kind::Usage, format!("--tenant-workload: {error}")))?;
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "operations"))?;
    let measured = common::run(&out, args.folder.resume, |run| {
        let platform = platform(args).connect(run)?;
        let (mix, left_out) = mix_on(&*platform, &mix, args.leave_out)?;
        let mut tenants = start_tenants(args, &named, job, run)?;
        OperationsStudy { plan: plan(args, &mix, left_out) }.run(&*platform, tenants.as_mut(), run)
    })?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    verdict(&args.fail_on, run.provenance.plan.operations(), run.records.operations())
}

/// How clones are made, in turn.
fn ways(args: &OperationsArgs) -> Vec<CloneKind> {
    args.clone.iter().map(|way| way.kind()).collect()
}

fn platform(args: &OperationsArgs) -> PlatformChoice {
    PlatformChoice {
        address: args.platform.clone(),
        destination: args.destination.clone(),
        clones: ways(args),
        array_command: args.array_command.clone(),
        memory_bytes: args.memory,
        disk_bytes: args.disk,
        guests: args.qemu.choice(),
    }
}

fn mix(args: &OperationsArgs) -> Result<Mix, Failure> {
    if args.mix == "paper" {
        return Ok(Mix::paper());
    }
    let refused =
        |why: &dyn std::fmt::Display| Failure::message(Kind::Usage, format!("--mix {}: {why}", args.mix));
    let text = small_file::read(Path::new(&args.mix)).map_err(|error| refused(&error))?;
    if text.len() > MAX_MIX_BYTES {
        return Err(refused(&"it is too large for a mix"));
    }
    Mix::parse(&text).map_err(|error| refused(&error))
}

/// The tenants' environments.
fn named_tenants(args: &OperationsArgs) -> Result<Vec<NamedEnvironment>, Failure> {
    let usage = |why: String| Failure::message(Kind::Usage, why);
    if !args.tenant.is_empty() && args.rate == RateArg::Max && args.clients.is_none() {
        return Err(usage("--tenant: tenants are compared with and without operations at a rate, so give one instead of max".into()));
    }
    let named = args.tenant.iter().map(|text| NamedEnvironment::parse(text));
    named.collect::<Result<Vec<_>, _>>().map_err(|error| usage(format!("--tenant {error}")))
}

/// Starts them, with disks beside the run folder where they are of this host.
fn start_tenants(
    args: &OperationsArgs,
    named: &[NamedEnvironment],
    job: JobSpec,
    run: &mut Run<'_>,
) -> Result<Option<Tenants>, StudyError> {
    if named.is_empty() {
        return Ok(None);
    }
    let (stop, observer) = (run.stop, &mut *run.observer);
    let others = GuestOptions {
        memory_bytes: args.memory.max(TENANT_MEMORY),
        accelerator: args.qemu.accelerator.wanted(),
        kernel: args.qemu.kernel.clone(),
        ..GuestOptions::default()
    };
    let found = FoundEnvironments::find(named, &others, &mut |what| observer.event(Event::Remark(what)))?;
    let folder = run.out.parent().unwrap_or(run.out);
    let made = found.make((folder, "operations"), args.tenant_size, stop, &mut |what, done, total| {
        observer.event(Event::Making { what, done, total });
    })?;
    Tenants::start(made, job).map(Some)
}

fn plan(args: &OperationsArgs, mix: &Mix, left_out: Vec<OperationKind>) -> OperationsPlan {
    let load = match (&args.rate, args.clients) {
        (_, Some(clients)) => OperationsLoad::Closed(clients),
        (RateArg::Max, None) => OperationsLoad::Max { limit_ns: args.latency_limit },
        (RateArg::PerMinute(rates), None) => OperationsLoad::Open(rates.clone()),
    };
    let piece_ns = args.piece.clamp(1, args.time.max(1));
    let pieces = u32::try_from(args.time.div_ceil(piece_ns)).unwrap_or(u32::MAX);
    OperationsPlan {
        platform: args.platform.clone(),
        destination: args.destination.clone(),
        mix: mix.shares().clone(),
        left_out,
        vms: args.vms.clone(),
        load,
        pieces,
        piece_ns,
        warm_ns: args.ramp,
        clones: ways(args),
        limit_ns: args.limit,
        most_at_once: args.at_once,
        memory_bytes: args.memory,
        disk_bytes: args.disk,
        accelerator: args.qemu.accelerator_name(),
        seed: args.seed,
        tenants: args.tenant.clone(),
        tenant_workload: args.tenant_workload.as_ref().map(|job| job.name.clone()),
    }
}
