//! Every adapter of the table, booted and loaded. Needs QEMU, qemu-storage-daemon and a guest kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use virtbench_lab::{
    ADAPTERS, Accelerator, Adapter, DEFAULT_ADAPTER, DiskSettings, Environment, GuestConfig, GuestDisk,
    GuestImage, LabError, Machine, Observed, Qemu, TimeLimits, Vm, find_adapter, find_kernel,
    measure_observed, observe,
};
use virtbench_record::{AcceleratorFacts, BackingFacts, Measured, ProcessRole, SetupFacts};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const DISK_BYTES: u64 = 16 << 20;
/// How long a guest may take to do one operation.
const LOAD_LIMIT: Duration = Duration::from_secs(60);

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// A booted guest whose only disk is `directory/disk` behind `adapter`.
fn boot(adapter: &str, settings: &str, directory: &Path) -> Box<dyn Machine> {
    or_mend(start(find_adapter(adapter).unwrap(), settings, 1, directory))
}

fn start(
    adapter: &'static Adapter,
    settings: &str,
    vcpus: u32,
    directory: &Path,
) -> Result<Box<dyn Machine>, LabError> {
    or_mend(or_mend(Qemu::find()).check_adapter(adapter));
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[adapter]));
    let path = directory.join("disk");
    fs::write(&path, vec![7; usize::try_from(DISK_BYTES).unwrap()]).unwrap();
    let mut disk = GuestDisk::new(adapter, path);
    disk.settings = DiskSettings::parse(settings).unwrap();
    or_mend(disk.settings.check(adapter));
    let asked = SetupFacts {
        name: adapter.name.into(),
        adapter: adapter.name.into(),
        summary: adapter.summary.into(),
        settings: disk.settings.named(),
        backing: BackingFacts {
            name: "raw".into(),
            description: String::new(),
            preparation: String::new(),
            allocated_bytes: DISK_BYTES,
        },
        command_line: Vec::new(),
        server_command_line: Vec::new(),
        boot_ns: 0,
        found: None,
        not_honoured: Vec::new(),
    };
    let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let mut config = GuestConfig::new(Accelerator::Tcg);
    config.vcpus = vcpus;
    let vm = Vm::new(adapter.name, or_mend(Qemu::find()), image, facts, config, disk);
    vm.with_setup(asked).start()
}

/// Loads it for a moment: again and again where other tests leave the guest so little of a processor that it does nothing in that
/// time.
fn load(machine: &mut dyn Machine) -> Measured {
    let role = |process_id, role| Observed { process_id, environment: None, role };
    let mut observed: Vec<Observed> =
        machine.processes().into_iter().map(|id| role(id, ProcessRole::MeasuredGuest)).collect();
    observed.extend(machine.servers().into_iter().map(|id| role(id, ProcessRole::Backing)));
    let spec = LoadSpec {
        outstanding: 4,
        ramp_ns: 50_000_000,
        time_ns: 200_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), DISK_BYTES)
    };
    let never = AtomicBool::new(false);
    let begun = Instant::now();
    loop {
        let (spec, limits) = (spec.clone(), TimeLimits::default());
        let measured = or_mend(measure_observed(machine, spec, &observed, limits, &never)).1;
        if measured.outcome.total.operations > 0 || begun.elapsed() > LOAD_LIMIT {
            return measured;
        }
    }
}

#[test]
fn every_adapter_boots_is_found_and_measured() {
    let drivers = BTreeMap::from([
        ("virtio-blk", "virtio_blk"),
        ("virtio-scsi", "virtio_scsi"),
        ("nvme", "nvme"),
        ("pvscsi", "vmw_pvscsi"),
        ("lsi53c895a", "sym53c8xx"),
        ("mptsas1068", "mptsas"),
        ("megasas", "megaraid_sas"),
        ("ahci", "ahci"),
        ("ide", "ata_piix"),
        ("vhost-user-blk", "virtio_blk"),
    ]);
    for adapter in ADAPTERS {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut machine = boot(adapter.name, "", directory.path());
        let setup = machine.setup().unwrap();
        let found = setup.found.unwrap();
        println!("{}: {found:?}", adapter.name);
        assert_eq!(found.driver.as_deref(), drivers.get(adapter.name).copied(), "{}", adapter.name);
        assert!(found.name.starts_with(adapter.disk_prefix), "{}: {found:?}", adapter.name);
        assert_eq!(found.size_bytes, Some(DISK_BYTES), "{}: {found:?}", adapter.name);
        let of_a_queue = found.queue_depth.into_iter().chain(found.queue_tags).min();
        assert_eq!(of_a_queue, Some(adapter.limits.outstanding), "{}: {found:?}", adapter.name);
        assert!(setup.not_honoured.is_empty(), "{:?}", setup.not_honoured);
        // Others wait like this while one is measured.
        machine.quiesce().unwrap();
        machine.wake().unwrap();
        let measured = load(machine.as_mut());
        println!("{}: {:.0} IOPS", adapter.name, measured.outcome.total.iops);
        assert!(measured.outcome.total.operations > 0 && measured.outcome.errors == 0, "{measured:?}");
        assert_eq!(measured.processes.len(), 1 + machine.servers().len(), "{measured:?}");
        machine.shut_down();
    }
}

#[test]
fn settings_are_seen_from_inside_the_guest() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let settings = "packed=on,depth=64,iothread=on,cache=directsync,aio=threads";
    let mut machine = boot("virtio-blk", settings, directory.path());
    let setup = machine.setup().unwrap();
    assert!(setup.not_honoured.is_empty(), "{:?}", setup.not_honoured);
    let found = setup.found.unwrap();
    assert_eq!(found.queue_tags, Some(64), "{found:?}");
    assert_eq!(found.write_cache.as_deref(), Some("write through"), "{found:?}");
    assert!(found.virtio_features.contains(&34), "{found:?}");
    assert_eq!(load(machine.as_mut()).outcome.errors, 0);
    machine.shut_down();
}

#[test]
fn a_virtio_disk_has_a_queue_for_each_processor_with_every_server() {
    for name in ["virtio-blk", "vhost-user-blk"] {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // A guest of two processors hangs while it boots once in a few hundred times, whatever its disk; studies
        // start it anew, and so does this.
        let hangs = |error: &LabError| error.to_string().contains("did not answer its greeting");
        let again = || start(find_adapter(name).unwrap(), "", 2, directory.path());
        let started = again().or_else(|error| if hangs(&error) { again() } else { Err(error) });
        let mut machine = or_mend(started);
        let found = machine.setup().unwrap().found.unwrap();
        assert_eq!(found.queues, Some(2), "{name}: {found:?}");
        assert_eq!(load(machine.as_mut()).outcome.errors, 0, "{name}");
        machine.shut_down();
    }
}

#[test]
fn a_stopped_guest_uses_no_processor_and_goes_on() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut machine = boot("nvme", "", directory.path());
    machine.quiesce().unwrap();
    let observed: Vec<Observed> = machine
        .processes()
        .into_iter()
        .map(|process_id| Observed { process_id, environment: None, role: ProcessRole::IdleGuest })
        .collect();
    let never = AtomicBool::new(false);
    let (_, processes) = or_mend(observe(&observed, Duration::from_millis(500), &never)).unwrap();
    // A stopped QEMU keeps at most its own main loop, a tick of which is 2 % of half a second.
    assert!(processes[0].cpu_percent() <= 10.0, "{processes:?}");
    machine.wake().unwrap();
    assert!(load(machine.as_mut()).outcome.total.operations > 0);
}

#[test]
fn a_disk_that_does_not_appear_is_named_within_a_limit() {
    // The driver of another disk: the guest has it and finds nothing to drive.
    static LOST: Adapter = Adapter { disk_prefix: "nowhere", ..*DEFAULT_ADAPTER };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let error = start(&LOST, "", 1, directory.path()).err().unwrap().to_string();
    assert!(error.contains("no disk named nowhere* appeared within 15 s; there are: vda"), "{error}");
}
