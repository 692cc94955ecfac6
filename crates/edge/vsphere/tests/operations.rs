//! Operations on govmomi's simulator: each end to end, their phases, faults, expired sessions, restarts.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::thread;
use std::time::{Duration, Instant};

use virtbench_vsphere::{
    Address, Cluster, FaultKind, LocalVcenter, Operation, OperationTimes, Own, PlaceNames, Power, Reference,
    Shape, Until, Vsphere, VsphereError,
};

const LABEL: &str = "virtbench-test";

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn connect(vcenter: &LocalVcenter) -> Vsphere {
    let address = Address::parse(&vcenter.argument()).unwrap();
    Vsphere::connect(&address, vcenter.password(), soon()).unwrap()
}

/// The identity of the VM of this name.
fn uuid_of(name: &str) -> String {
    let number = name.bytes().fold(0u64, |sum, byte| (31 * sum + u64::from(byte)) % 1_000_000_007);
    format!("00000000-0000-4000-8000-{number:012}")
}

struct Run {
    vsphere: Vsphere,
    cluster: Cluster,
}

impl Run {
    fn new(vcenter: &LocalVcenter) -> Self {
        let vsphere = connect(vcenter);
        let (_, cluster) = vsphere.cluster(&PlaceNames::default(), soon()).unwrap();
        Self { vsphere, cluster }
    }

    fn done(&self, operation: &Operation<'_>) -> (OperationTimes, Option<Reference>) {
        let begun = Instant::now();
        let (course, made) = self.vsphere.perform(operation, Until::Seen, soon());
        let took = begun.elapsed();
        let all =
            course.client + course.accepted + course.queued + course.running + course.done + course.seen;
        assert!(
            all <= took && took - all < Duration::from_millis(200),
            "{operation:?}: {course:?} of {took:?}"
        );
        (course, made.unwrap_or_else(|error| panic!("{operation:?}: {error}")))
    }

    fn fails(&self, operation: &Operation<'_>) -> (OperationTimes, VsphereError) {
        let (course, made) = self.vsphere.perform(operation, Until::Seen, soon());
        (course, made.expect_err("it should fail"))
    }

    fn create(&self, name: &str) -> Reference {
        let host = &self.cluster.hosts[0];
        let (cluster, uuid, shape) = (&self.cluster, uuid_of(name), Shape::default());
        let own = Own { text: LABEL, uuid: &uuid };
        self.done(&Operation::Create { name, own, shape, cluster, host }).1.unwrap()
    }

    fn clone(&self, machine: &Reference, name: &str, linked: Option<&Reference>) -> Reference {
        let (cluster, host) = (&self.cluster, &self.cluster.hosts[1]);
        let (uuid, shape) = (uuid_of(name), Shape::default());
        let own = Own { text: LABEL, uuid: &uuid };
        self.done(&Operation::Clone { machine, name, own, shape, cluster, host, linked }).1.unwrap()
    }
}

#[test]
fn every_operation_of_vsphere_is_done_and_seen() {
    let vcenter = LocalVcenter::start(&["--hosts", "3", "--vms", "4"]).unwrap();
    let run = Run::new(&vcenter);
    assert!(run.vsphere.about().software.contains("vCenter"), "{:?}", run.vsphere.about());
    assert_eq!(run.vsphere.cluster(&PlaceNames::default(), soon()).unwrap().0, 3);
    let vm = run.create("virtbench-test-1");
    for power in [Operation::PowerOn(&vm), Operation::Suspend(&vm), Operation::PowerOn(&vm)] {
        run.done(&power);
    }
    run.done(&Operation::Migrate { machine: &vm, host: &run.cluster.hosts[2] });
    run.done(&Operation::Reconfigure { machine: &vm, note: "a <note> & more" });
    let snapshot = run.done(&Operation::CreateSnapshot { machine: &vm, name: "first" }).1.unwrap();
    assert_eq!(run.vsphere.current_snapshot(&vm, soon()).unwrap(), Some(snapshot.clone()));
    run.done(&Operation::PowerOff(&vm));
    let linked = run.clone(&vm, "virtbench-test-2", Some(&snapshot));
    run.done(&Operation::RemoveSnapshot { machine: &vm, snapshot: &snapshot });
    let full = run.clone(&vm, "virtbench-test-3", None);

    let inventory = run.vsphere.inventory(soon()).unwrap();
    assert_eq!(inventory.len(), 4 + 3);
    let ours = |reference: &Reference| inventory.get(reference).unwrap();
    assert_eq!((&*ours(&full).name, ours(&full).label.as_deref()), ("virtbench-test-3", Some(LABEL)));
    assert_eq!(ours(&full).uuid.as_deref(), Some(uuid_of("virtbench-test-3").as_str()));
    assert_eq!((ours(&vm).power, ours(&vm).host.as_ref()), (Power::Off, Some(&run.cluster.hosts[2])));
    assert!(
        inventory
            .iter()
            .filter(|(_, machine)| machine.label.is_none())
            .all(|(_, machine)| machine.power == Power::On)
    );

    let (slot, before) = run.vsphere.disks(&vm, soon()).unwrap();
    run.done(&Operation::AttachDisk { machine: &vm, slot, kib: 1024 });
    let (_, after) = run.vsphere.disks(&vm, soon()).unwrap();
    let disk = *after.iter().find(|disk| !before.contains(disk)).unwrap();
    assert_eq!((disk.slot, disk.kib, after.len()), (slot, 1024, before.len() + 1));
    run.done(&Operation::DetachDisk { machine: &vm, disk });
    assert_eq!(run.vsphere.disks(&vm, soon()).unwrap().1, before);

    for machine in [&vm, &linked, &full] {
        run.done(&Operation::Destroy(machine));
    }
    assert_eq!(run.vsphere.inventory(soon()).unwrap().len(), 4);
}

#[test]
fn a_delay_is_seen_in_its_phase() {
    let delay = Duration::from_millis(150);
    let arguments = ["--delay", "ReconfigVM_Task=150ms", "--task-delay", "PowerOnVM_Task=150ms"];
    let vcenter = LocalVcenter::start(&arguments).unwrap();
    let run = Run::new(&vcenter);
    let vm = run.create("virtbench-test-1");
    let (course, _) = run.done(&Operation::Reconfigure { machine: &vm, note: "x" });
    assert!(course.accepted >= delay && course.running < delay, "{course:?}");
    let (course, _) = run.done(&Operation::PowerOn(&vm));
    // The task had begun when the answer to the call arrived.
    assert!(
        course.client + course.accepted + course.running >= delay && course.running > delay / 2,
        "{course:?}"
    );
    assert!(course.accepted < delay && course.seen < delay, "{course:?}");
    assert!(course.was_accepted && course.was_over && course.client < delay, "{course:?}");
}

#[test]
fn many_tasks_are_followed_at_once() {
    let vcenter = LocalVcenter::start(&["--vms", "40", "--task-delay", "ReconfigVM_Task=300ms"]).unwrap();
    let vsphere = connect(&vcenter);
    let inventory = vsphere.inventory(soon()).unwrap();
    let begun = Instant::now();
    thread::scope(|scope| {
        for (machine, _) in inventory.iter() {
            let vsphere = &vsphere;
            scope.spawn(move || {
                let operation = Operation::Reconfigure { machine, note: "at once" };
                let (course, done) = vsphere.perform(&operation, Until::Seen, soon());
                assert!(done.is_ok() && course.running > Duration::from_millis(100), "{course:?} {done:?}");
            });
        }
    });
    // One after the other they would take 12 s.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn faults_of_calls_and_of_tasks_are_typed() {
    let faults = [
        ("SuspendVM_Task", "NoPermission", FaultKind::NoPermission, "give the user this privilege"),
        ("ReconfigVM_Task", "NoDiskSpace", FaultKind::NoRoom, "LocalDS_0"),
        ("CreateSnapshot_Task", "TaskInProgress", FaultKind::Busy, "let what else uses it end"),
        ("CloneVM_Task", "InsufficientResourcesFault", FaultKind::NoRoom, "free some space"),
        ("RelocateVM_Task", "Timedout", FaultKind::TimedOut, "how busy the server is"),
    ];
    let words: Vec<String> =
        faults.iter().map(|(method, fault, ..)| format!("--fault={method}=1.0:{fault}")).collect();
    let vcenter = LocalVcenter::start(&words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let run = Run::new(&vcenter);
    let vm = run.create("virtbench-test-1");
    let cluster = &run.cluster;
    let operations = [
        Operation::Suspend(&vm),
        Operation::Reconfigure { machine: &vm, note: "x" },
        Operation::CreateSnapshot { machine: &vm, name: "x" },
        Operation::Clone {
            machine: &vm,
            name: "x",
            own: Own { text: LABEL, uuid: &uuid_of("x") },
            shape: Shape::default(),
            cluster,
            host: &cluster.hosts[0],
            linked: None,
        },
        Operation::Migrate { machine: &vm, host: &cluster.hosts[0] },
    ];
    for (operation, (method, _, kind, advice)) in operations.iter().zip(faults) {
        let (course, error) = run.fails(operation);
        assert!(error.fault() == Some(kind) && error.to_string().contains(advice), "{method}: {error}");
        assert!(!course.was_accepted && course.accepted > Duration::ZERO, "{method}: {course:?}");
    }
    // The simulator's own: a task that fails, and an object that is gone.
    let (course, error) = run.fails(&Operation::PowerOff(&vm));
    assert_eq!(error.fault(), Some(FaultKind::InvalidPowerState), "{error}");
    assert!(course.was_accepted && course.was_over, "{course:?}");
    run.done(&Operation::Destroy(&vm));
    let (_, error) = run.fails(&Operation::PowerOn(&vm));
    assert!(
        error.fault() == Some(FaultKind::NotFound) && error.to_string().contains("removed it meanwhile"),
        "{error}"
    );
}

#[test]
fn a_task_that_does_not_end_is_late_and_goes_on() {
    let vcenter = LocalVcenter::start(&["--task-delay", "PowerOffVM_Task=60s"]).unwrap();
    let vsphere = connect(&vcenter);
    let inventory = vsphere.inventory(soon()).unwrap();
    let (machine, _) = inventory.iter().next().unwrap();
    let begun = Instant::now();
    let (course, done) =
        vsphere.perform(&Operation::PowerOff(machine), Until::Seen, Instant::now() + Duration::from_secs(1));
    let error = done.unwrap_err();
    assert!(
        matches!(&error, VsphereError::Late { .. }) && error.to_string().contains("goes on there"),
        "{error}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(3) && course.done > Duration::from_millis(500),
        "{course:?}"
    );
    // The end of the connection does not wait for updates that stand for ten seconds.
    let begun = Instant::now();
    drop(vsphere);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn an_expired_session_is_opened_anew_in_the_middle() {
    let vcenter =
        LocalVcenter::start(&["--session-lifetime", "300ms", "--task-delay", "PowerOffVM_Task=500ms"])
            .unwrap();
    let vsphere = connect(&vcenter);
    let inventory = vsphere.inventory(soon()).unwrap();
    let machines: Vec<&Reference> = inventory.iter().map(|(machine, _)| machine).take(4).collect();
    let mut retries = 0;
    for round in 0..4 {
        thread::sleep(Duration::from_millis(350));
        thread::scope(|scope| {
            let one = |machine: &Reference| {
                let operation =
                    if round % 2 == 0 { Operation::PowerOff(machine) } else { Operation::PowerOn(machine) };
                let (course, done) = vsphere.perform(&operation, Until::Seen, soon());
                assert!(done.is_ok(), "{done:?}");
                course.retries
            };
            let threads: Vec<_> = machines.iter().map(|machine| scope.spawn(move || one(machine))).collect();
            retries += threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>();
        });
    }
    assert!(retries > 0, "no session expired");
}

#[test]
fn a_server_that_dies_and_comes_back_is_found_again() {
    let mut vcenter = LocalVcenter::start(&["--vms", "4", "--task-delay", "PowerOffVM_Task=5s"]).unwrap();
    let vsphere = connect(&vcenter);
    let inventory = vsphere.inventory(soon()).unwrap();
    let (machine, _) = inventory.iter().next().unwrap();
    let lost = thread::scope(|scope| {
        let waiting = scope.spawn(|| vsphere.perform(&Operation::PowerOff(machine), Until::Done, soon()).1);
        thread::sleep(Duration::from_millis(500));
        vcenter.kill();
        let refused = vsphere.inventory(soon()).unwrap_err();
        assert!(refused.to_string().contains("cannot reach"), "{refused}");
        vcenter.restart().unwrap();
        waiting.join().unwrap().unwrap_err()
    });
    // The new server knows nothing of the task, or the task's end was never told.
    let gone = lost.fault() == Some(FaultKind::NotFound)
        || matches!(&lost, VsphereError::Late { last: Some(_), .. });
    assert!(gone, "{lost}");
    let inventory = vsphere.inventory(soon()).unwrap();
    let (machine, _) = inventory.iter().next().unwrap();
    let (_, done) = vsphere.perform(&Operation::Reconfigure { machine, note: "again" }, Until::Seen, soon());
    done.unwrap();
}
