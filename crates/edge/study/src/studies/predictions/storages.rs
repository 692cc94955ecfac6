//! Applications in VMs that differ in their storage alone: how fast each storage is, what applications do on the first, and on the others.

use std::path::Path;

use virtbench_record::{
    Case, DirectionStats, LoadOutcome, OperationSpeed, Profile, Source, Sourced, StorageSpeed,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::basis::Basis;
use super::error::ApplicationsError;
use super::machine::{VmOptions, WorkloadMachine, find_guests};
use super::storage::Storage;
use super::trials::{TrialSides, agent_profile};
use super::verify::{AgentRun, InTurn, Verified, VerifyInputs, VmRun, VmToRun, verify_in_turn};
use crate::runner::progress::Progress;

/// VMs on each of several storages.
#[derive(Debug)]
pub(super) struct StorageVms {
    options: VmOptions,
    storages: Vec<Storage>,
}

impl StorageVms {
    /// # Errors
    /// Something that guests on one of them need is missing on this host.
    pub(super) fn new(
        options: VmOptions,
        storages: Vec<Storage>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, ApplicationsError> {
        let vms = Self { options, storages };
        for storage in &vms.storages {
            find_guests(&vms.on(storage), &[], progress)?;
        }
        Ok(vms)
    }

    fn on(&self, storage: &Storage) -> VmOptions {
        VmOptions { storage: storage.clone(), ..self.options.clone() }
    }

    fn find(&self, name: &str) -> Result<VmOptions, ApplicationsError> {
        let found = self.storages.iter().find(|storage| storage.to_string() == name);
        let missing = || ApplicationsError::Input(format!("there is no storage {name}: a defect").into());
        found.map(|storage| self.on(storage)).ok_or_else(missing)
    }

    fn speeds(&self, progress: &mut Progress<'_>) -> Result<Vec<StorageSpeed>, ApplicationsError> {
        let speed = |storage: &Storage| {
            progress.doing(&format!("how fast {storage} is"));
            speed(&self.on(storage), progress)
        };
        self.storages.iter().map(speed).collect()
    }
}

impl TrialSides for StorageVms {
    fn basis(&mut self, progress: &mut Progress<'_>) -> Result<Basis, ApplicationsError> {
        self.speeds(progress).map(Basis::Storages)
    }

    fn renew(&mut self, basis: &mut Basis, progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        *basis = self.basis(progress)?;
        Ok(())
    }

    fn profile(
        &mut self,
        case: &Case,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Profile, ApplicationsError> {
        let inputs = VerifyInputs::of_case(case, prepared, runs);
        let options = self.on(&self.storages[0]);
        let vm = VmToRun { options: &options, inputs: &inputs };
        let application = AgentRun::new(&case.command, case.metric.as_deref(), options.limit_ns)?;
        let VmRun { capacity, outcome, host } = application.in_vm(vm, progress)?;
        let profile = agent_profile(case, capacity, outcome, 0.0)?;
        Ok(Profile { host_use: Some(host), ..with_accounts_of_machine(profile) })
    }

    fn verify(
        &mut self,
        case: &Case,
        profile: &Profile,
        subject: Option<&str>,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Verified, ApplicationsError> {
        let missing = || ApplicationsError::Input("no storage is named: a defect".into());
        let options = self.find(subject.ok_or_else(missing)?)?;
        let inputs = VerifyInputs::of_case(case, prepared, runs);
        let vm = |options| VmToRun { options, inputs: &inputs };
        let first = self.on(&self.storages[0]);
        let reference = |progress: &mut Progress<'_>| {
            let application = AgentRun::new(&profile.command, profile.metric.as_deref(), first.limit_ns)?;
            Ok(Some(InTurn { machine: application.boot(vm(&first), progress)?, sample: false }))
        };
        verify_in_turn(profile, vm(&options), reference, progress)
    }
}

/// A profile whose figures are those of the whole VM, in which nothing else runs: the agent's own are not a program's.
fn with_accounts_of_machine(profile: Profile) -> Profile {
    let Some(seen) = profile.footprint.value() else { return profile };
    let [user, system] = seen.cpu_ns.map(|ns| 100.0 * ns as f64 / seen.elapsed_ns.max(1) as f64);
    let operations = seen.disks.map_or(0, |disks| disks.operations());
    let rate = operations as f64 * 1e9 / seen.elapsed_ns.max(1) as f64;
    Profile {
        io_per_second: Sourced::known(rate, Source::BlockStatistics),
        cpu_user_percent: Sourced::known(user, Source::PerfEvents),
        cpu_system_percent: Sourced::known(system, Source::PerfEvents),
        ..profile
    }
}

/// Size of the operations whose latency is measured, in bytes.
const SMALL_BYTES: u64 = 4096;
/// Size of those whose throughput is, in bytes.
const LARGE_BYTES: u64 = 256 << 10;
/// How many are outstanding where the storage is to do as many as it can.
const MANY: u32 = 32;
const FEW: u32 = 4;
/// Before each is measured, while single ones are, which have pauses, and while others are, in nanoseconds.
const RAMP_NS: u64 = 200_000_000;
const SINGLE_NS: u64 = 1_500_000_000;
const TIME_NS: u64 = 700_000_000;
/// Single ones are near one another, as those of a journal or a log are, in bytes.
const NEAR_BYTES: u64 = 16 << 20;
/// How many follow one another where single ones are measured, as many as an application waits for when it makes something stable: data, the
/// journal, its end. The first of them may find that it is another disk's turn, the others do not.
const BURST: u32 = 4;
/// Between two such bursts, in nanoseconds, one of these at random: so long that no limit on the number of operations matters, and different, as
/// a fence's rotation and a single pause would always meet in the same place.
const PAUSES_NS: [u64; 4] = [13_000_000, 21_000_000, 34_000_000, 55_000_000];

/// Measures the disk of a VM of its own, whose contents are lost.
fn speed(options: &VmOptions, progress: &mut Progress<'_>) -> Result<StorageSpeed, ApplicationsError> {
    let mut vm = WorkloadMachine::boot(options, &[], None, progress)?;
    let measured = disk_speed(&mut vm, options, progress);
    vm.end();
    let speed = measured?;
    speed.check().map_err(|why| ApplicationsError::Measured(why.into()))?;
    Ok(speed)
}

fn disk_speed(
    vm: &mut WorkloadMachine,
    options: &VmOptions,
    progress: &Progress<'_>,
) -> Result<StorageSpeed, ApplicationsError> {
    let load = |lines: Vec<AccessLine>, outstanding: u32, region_bytes: u64| LoadSpec {
        outstanding,
        ramp_ns: RAMP_NS,
        time_ns: TIME_NS,
        ..LoadSpec::new(AccessSpec { lines }, region_bytes)
    };
    let (all, near) = (options.disk_bytes, options.disk_bytes.min(NEAR_BYTES));
    let mut run =
        |spec: LoadSpec| -> Result<LoadOutcome, ApplicationsError> { Ok(vm.run(spec, progress)?.0) };
    let mut operation = |read_percent: f64| -> Result<OperationSpeed, ApplicationsError> {
        let small = AccessLine::new(SMALL_BYTES, read_percent, 100.0);
        let share_percent = 100.0 / PAUSES_NS.len() as f64;
        let burst = |delay_ns| AccessLine { burst: BURST, delay_ns, share_percent, ..small.clone() };
        let single = LoadSpec { time_ns: SINGLE_NS, ..load(PAUSES_NS.map(burst).to_vec(), 1, near) };
        let alone = run(single)?;
        let many = run(load(vec![small], MANY, all))?;
        let large = run(load(vec![AccessLine::new(LARGE_BYTES, read_percent, 0.0)], FEW, all))?;
        Ok(OperationSpeed {
            latency_ns: mean_ns(&alone.total),
            per_second: many.total.iops,
            bytes_per_second: large.total.bytes_per_second,
        })
    };
    let (read, write) = (operation(100.0)?, operation(0.0)?);
    let flushed =
        LoadSpec { flush_every: Some(1), ..load(vec![AccessLine::new(SMALL_BYTES, 0.0, 100.0)], 1, near) };
    let flush_ns = run(flushed)?.flush.as_ref().map_or(f64::NAN, mean_ns);
    Ok(StorageSpeed { storage: options.storage.to_string(), read, write, flush_ns })
}

/// How long an operation takes, in nanoseconds; no number of none.
fn mean_ns(stats: &DirectionStats) -> f64 {
    stats.latency_ns.as_ref().map_or(f64::NAN, |latency| latency.mean)
}
