//! Real time against virtual time: the same configuration under the same load, served by a daemon over emulated devices
//! and run by the simulator.
//!
//! Chance differs, where the platter stands and when an erasure comes; arrivals do not. How far chance moves each figure
//! over a run of this length is found by simulating it with many seeds: a measured figure may lie four such standard
//! errors from the simulated mean. To that comes what the host may take: a wake-up, a socket and a file on the way, and
//! processors that others use. A quantile is compared where at least ten requests lie beyond it.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs::File;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use common::apply;
use virtbench_engine::Target;
use virtbench_fence::catalogue::{HDD_SLOTS, PASS_THROUGH, SSD_SLOTS, VIRTUAL_FENCE, Variant};
use virtbench_fence_daemon::config::{
    CacheTable, Config, DeviceTable, DiskTable, Limits, PredictTable, SchedulerTable, Size,
};
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, format, simulation};
use virtbench_fence_sim::client::{Client, open_client};
use virtbench_fence_sim::{Span, World};
use virtbench_units::LatencySummary;
use virtbench_workload::{AccessLine, AccessSpec, Arrivals, LoadSpec, Rate};

const DISK_BYTES: u64 = 32 << 20;
const DEVICE_BYTES: u64 = 256 << 20;
/// How long each is measured.
const TIME_NS: u64 = 20_000_000_000;
/// Simulated runs that say how far chance moves a figure.
const SEEDS: u64 = 40;
/// Standard errors of chance: of a few dozen figures, one in some hundred runs of all lies beyond them.
const ERRORS: f64 = 4.0;
/// What the host may take: a share of the simulated mean, and milliseconds.
const HOST: (f64, f64) = (0.10, 1.5);
/// Requests beyond a quantile that is compared.
const BEYOND: f64 = 10.0;
/// The quantiles, with the share of requests beyond each.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.1), ("p99", 0.01)];
/// Throughput of an open loop that is kept up with is that of its arrivals, but for those in flight at the ends.
const THROUGHPUT: f64 = 0.03;

fn load(seed: u64, per_second: f64) -> LoadSpec {
    LoadSpec {
        outstanding: 64,
        ramp_ns: 200_000_000,
        time_ns: TIME_NS,
        interval_ns: 1_000_000_000,
        seed,
        rate: Some(Rate { per_second, arrivals: Arrivals::Poisson }),
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 60.0, 100.0)), DISK_BYTES)
    }
}

/// The result of a disk's load.
#[derive(Debug, Clone, Copy)]
struct Response {
    per_second: f64,
    requests: f64,
    mean_ms: f64,
    /// As [`QUANTILES`].
    quantiles_ms: [f64; 3],
}

impl Response {
    fn new(per_second: f64, summary: &LatencySummary) -> Self {
        let quantiles_ms = [summary.p50, summary.p90, summary.p99].map(|ns| ns as f64 / 1e6);
        let (mean_ms, requests) = (summary.mean / 1e6, per_second * TIME_NS as f64 / 1e9);
        Self { per_second, requests, mean_ms, quantiles_ms }
    }

    /// Response times by name, those that so many requests know.
    fn times(&self) -> Vec<(&'static str, f64)> {
        let known = QUANTILES.iter().zip(self.quantiles_ms);
        let known = known.filter(|((_, beyond), _)| self.requests * beyond >= BEYOND);
        std::iter::once(("mean", self.mean_ms)).chain(known.map(|((name, _), ms)| (*name, ms))).collect()
    }
}

/// Each disk's figures with each seed.
fn simulated(config: &Config, loads: &[LoadSpec]) -> Vec<Vec<Response>> {
    let span = Span { warm_up_ns: loads[0].ramp_ns, measure_ns: loads[0].time_ns };
    let run = |seed| {
        let clients: Vec<Client> = loads.iter().map(|load| open_client(load, 0, 1.0).unwrap()).collect();
        let world = simulation::world(config, [DEVICE_BYTES; 2], clients, span, seed).unwrap();
        let outcome = World::new(world).unwrap().run().unwrap();
        outcome.vms.iter().map(|vm| Response::new(vm.per_second(), &vm.summary().unwrap())).collect()
    };
    (1..=SEEDS).map(run).collect()
}

fn measured(config: &Config, socket: &str, loads: &[LoadSpec]) -> Vec<Response> {
    format(config, true).unwrap();
    let stopper = Stopper::new().unwrap();
    std::thread::scope(|scope| {
        let (up, is_up) = mpsc::channel();
        let stop = stopper.clone();
        let daemon = scope.spawn(move || {
            let daemon = Daemon::start(config, stop).unwrap();
            up.send(()).unwrap();
            daemon.run().unwrap();
        });
        is_up.recv_timeout(Duration::from_secs(60)).unwrap();
        let target = |disk: usize| common::target(format!("nbd+unix:///disk{disk}?socket={socket}"));
        let targets: Vec<Target> = (0..loads.len()).map(target).collect();
        let apply_all =
            loads.iter().zip(targets).map(|(load, target)| scope.spawn(move || apply(load, &target)));
        let workers: Vec<_> = apply_all.collect();
        let outcomes: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        stopper.stop();
        daemon.join().unwrap();
        let figures = |outcome: virtbench_record::LoadOutcome| {
            assert_eq!(outcome.errors, 0);
            Response::new(outcome.total.iops, &outcome.total.latency_ns.unwrap())
        };
        outcomes.into_iter().map(figures).collect()
    })
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

/// What is out of tolerance, in words.
fn differences(simulated: &[Vec<Response>], measured: &[Response]) -> Vec<String> {
    let mut found = Vec::new();
    for (disk, got) in measured.iter().enumerate() {
        let rate = moments(&simulated.iter().map(|run| run[disk].per_second).collect::<Vec<_>>()).0;
        if (got.per_second / rate - 1.0).abs() > THROUGHPUT {
            found.push(format!("disk{disk}: {:.1} a second for {rate:.1}", got.per_second));
        }
        for (name, is) in got.times() {
            let of = |run: &Vec<Response>| {
                run[disk].times().iter().find(|(one, _)| *one == name).map(|(_, ms)| *ms)
            };
            let (want, error) = moments(&simulated.iter().filter_map(of).collect::<Vec<_>>());
            let allowed = ERRORS * error + HOST.0 * want + HOST.1;
            eprintln!(
                "disk{disk}: {name} {is:.2} ms for {want:.2} ms, {error:.2} by chance, {allowed:.2} allowed"
            );
            if (is - want).abs() > allowed {
                found.push(format!(
                    "disk{disk}: {name} {is:.2} ms for {want:.2} ms, more than {allowed:.2} off"
                ));
            }
        }
    }
    found
}

/// One comparison at a time, in whatever process: each needs the processors for itself.
fn alone() -> File {
    let file = File::create(std::env::temp_dir().join("virtbench-test-conformance.lock")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    file
}

/// This thread and those that it starts run before what else the host does, where that is allowed.
fn run_first() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap().to_str().unwrap().to_owned();
    let done = Command::new("renice").args(["-n", "-19", "-p", &thread]).output();
    if !done.is_ok_and(|done| done.status.success()) {
        eprintln!("this user may not run before others: what else the host does counts");
    }
}

fn conforms(variant: &'static Variant, devices: &[&str], rates: &[f64]) {
    let _alone = alone();
    run_first();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let socket = folder.path().join("nbd").display().to_string();
    let device = |table: &str, device: Option<&&str>| {
        let (kind, options) = device?.split_once('?')?;
        let path = folder.path().join(table);
        File::create(&path).unwrap().set_len(DEVICE_BYTES).unwrap();
        Some(DeviceTable::new(std::format!("{kind}:{}?{options}", path.display()).parse().unwrap()))
    };
    // Predictors of these devices as near as the test needs them.
    let predict = PredictTable {
        slow_knots: vec![(0, 5.2), (32 << 20, 10.0), (256 << 20, 26.0)],
        fast_per_io_us: 130.0,
        ..PredictTable::default()
    };
    let disk = |disk: usize| DiskTable {
        cache: Some(Size(16 << 20)),
        ..common::exported(&std::format!("disk{disk}"), DISK_BYTES)
    };
    let config = Config {
        slow: device("slow", devices.first()),
        fast: device("fast", devices.get(1)),
        cache: CacheTable { free_target: 300, ..CacheTable::default() },
        scheduler: SchedulerTable { predict, ..common::scheduler(variant) },
        limits: Limits { max_request: Size(256 << 10), ..Limits::default() },
        nbd: common::nbd(folder.path().join("nbd")),
        ..Config::new((0..rates.len()).map(disk).collect())
    };
    config.check().unwrap();
    let loads: Vec<LoadSpec> = (1..).zip(rates).map(|(seed, rate)| load(seed, *rate)).collect();
    let expected = simulated(&config, &loads);
    let found = differences(&expected, &measured(&config, &socket, &loads));
    assert!(found.is_empty(), "{variant:?} is not what the simulator says: {found:?}");
}

#[test]
#[ignore = "takes real time on quiet processors: make soak"]
fn everything_at_once_on_a_hard_disk_takes_the_simulated_time() {
    conforms(&PASS_THROUGH, &["hdd?sync=off"], &[15.0, 15.0]);
}

#[test]
#[ignore = "takes real time on quiet processors: make soak"]
fn slots_on_a_hard_disk_take_the_simulated_time() {
    conforms(&HDD_SLOTS, &["hdd?sync=off"], &[12.0, 12.0]);
}

#[test]
#[ignore = "takes real time on quiet processors: make soak"]
fn a_drive_with_erasures_takes_the_simulated_time() {
    conforms(&SSD_SLOTS, &["", "ssd?profile=paper-fit&sync=off"], &[200.0, 200.0]);
}

#[test]
#[ignore = "takes real time on quiet processors: make soak"]
fn caches_and_slots_together_take_the_simulated_time() {
    conforms(&VIRTUAL_FENCE, &["hdd?sync=off", "ssd?profile=spec&sync=off"], &[20.0, 20.0]);
}
