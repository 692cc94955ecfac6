//! Ten hours of management operations, 300,000 at 500 a minute, recorded by the study itself in memory that does not grow with
//! them. The operations take no time; it is a program of its own so that nothing else is in its memory.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use virtbench_platforms::{Action, Failure, Performed, Platform, VmState};
use virtbench_record::{
    CloneKind, OperationKind, OperationsLoad, OperationsPlan, Phase, Phases, PlatformFacts,
};
use virtbench_study::{OperationsStudy, Run};

/// Operations of ten hours at 500 a minute.
const ALL: u64 = 300_000;
/// The least memory in each such part of them is compared: histograms of a piece come and go.
const PARTS: u64 = 10;
/// Operations between two looks at the memory.
const LOOK: u64 = 500;
/// What may be added after the second part all the same: results of the pieces, and what an allocator does. The log has more than
/// twice as much.
const MOST_ADDED: u64 = 12 << 20;

/// A platform whose operations are done at once, which looks at this process's memory meanwhile.
#[derive(Debug, Default)]
struct Instantly {
    vms: Mutex<BTreeMap<String, VmState>>,
    done: AtomicU64,
    /// The least in each part.
    resident_bytes: Mutex<BTreeMap<u64, u64>>,
    stop: AtomicBool,
}

/// Memory of this process that is resident.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

impl Platform for Instantly {
    fn facts(&self) -> PlatformFacts {
        PlatformFacts { address: "instantly".into(), ..PlatformFacts::default() }
    }

    fn lacks(&self, _: OperationKind) -> Option<String> {
        None
    }

    fn migrates_snapshots(&self) -> bool {
        true
    }

    fn label(&self) -> String {
        "run".into()
    }

    fn create(&self, vm: &str, _: Instant) -> Result<(), Failure> {
        self.vms.lock().unwrap().insert(vm.into(), VmState::Off);
        Ok(())
    }

    fn perform(&self, vm: &str, action: &Action, _: Instant) -> Performed {
        let mut vms = self.vms.lock().unwrap();
        match action {
            Action::PowerOn => drop(vms.insert(vm.into(), VmState::On)),
            Action::PowerOff => drop(vms.insert(vm.into(), VmState::Off)),
            Action::Remove => drop(vms.remove(vm)),
            Action::Clone { into, .. } => drop(vms.insert(into.clone(), VmState::Off)),
            _ => {}
        }
        let number = self.done.fetch_add(1, Ordering::Relaxed);
        if number < ALL && number.is_multiple_of(LOOK) {
            let now = resident_bytes();
            let mut parts = self.resident_bytes.lock().unwrap();
            let least = parts.entry(number * PARTS / ALL).or_insert(now);
            *least = now.min(*least);
        }
        if number == ALL {
            self.stop.store(true, Ordering::Relaxed);
        }
        let mut phases = Phases::default();
        // Latencies from a millisecond to a minute.
        phases.add(Phase::Running, 1_000_000 + number * 7_919_000 % 60_000_000_000);
        Performed { phases, retries: 0, job: None, result: Ok(()) }
    }

    fn state(&self, vm: &str, _: Instant) -> Result<Option<VmState>, Failure> {
        Ok(self.vms.lock().unwrap().get(vm).copied())
    }

    fn list(&self, _: Instant) -> Result<Vec<(String, VmState)>, Failure> {
        Ok(self.vms.lock().unwrap().clone().into_iter().collect())
    }

    fn sweep(&self, _: Instant) -> Result<usize, Failure> {
        Ok(0)
    }

    fn remove_all(&self, _: Instant) -> Result<usize, Failure> {
        Ok(std::mem::take(&mut *self.vms.lock().unwrap()).len())
    }
}

#[test]
fn ten_hours_of_operations_are_logged_in_constant_memory() {
    let temp = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let out = temp.path().join("run");
    let plan = OperationsPlan {
        platform: "instantly".into(),
        destination: None,
        mix: virtbench_operations::Mix::paper().shares().clone(),
        left_out: Vec::new(),
        vms: vec![20],
        load: OperationsLoad::Closed(4),
        pieces: 20_000,
        piece_ns: 100_000_000,
        warm_ns: 0,
        clones: vec![CloneKind::Full, CloneKind::Linked],
        limit_ns: 60_000_000_000,
        most_at_once: 4,
        memory_bytes: 96 << 20,
        disk_bytes: 64 << 20,
        accelerator: "tcg".into(),
        seed: 1,
        tenants: Vec::new(),
        tenant_workload: None,
    };
    let platform = Instantly::default();
    let mut run =
        Run { out: &out, resume: false, command: Vec::new(), stop: &platform.stop, observer: &mut () };
    let ended = OperationsStudy { plan }.run(&platform, None, &mut run).unwrap();
    assert!(ended.is_err_and(|error| error.is_stopped()), "it goes on until it is stopped");
    let parts: Vec<u64> = platform.resident_bytes.lock().unwrap().values().copied().collect();
    let logs = fs::read_dir(out.join("operations")).unwrap().flatten();
    let logged: u64 = logs.map(|log| log.metadata().unwrap().len()).sum();
    let mib: Vec<u64> = parts.iter().map(|bytes| bytes >> 20).collect();
    println!("{mib:?} MiB in each tenth, {} MiB of log", logged >> 20);
    assert_eq!(parts.len() as u64, PARTS);
    assert!(logged > 2 * MOST_ADDED, "{logged} bytes would not be seen in {parts:?}");
    assert!(parts[9] < parts[1] + MOST_ADDED, "{parts:?} bytes");
}
