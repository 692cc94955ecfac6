//! Real time against virtual time: the same configuration under the same load, served by a daemon over emulated devices
//! and run by the simulator.
//!
//! Tolerances are those of a machine that does other things as well. A daemon that gets no processor for a while is
//! late, so that a comparison that fails is made again, a few times; a model that is wrong fails each time.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs::File;
use std::sync::mpsc;
use std::time::Duration;

use common::apply;
use virtbench_engine::Target;
use virtbench_fence_daemon::config::Config;
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, format, twin};
use virtbench_fence_sim::client::{Client, open_client};
use virtbench_fence_sim::{Span, World};
use virtbench_units::LatencySummary;
use virtbench_workload::{AccessLine, AccessSpec, Arrivals, LoadSpec, Rate};

const DISK_BYTES: u64 = 32 << 20;
const DEVICE_BYTES: u64 = 256 << 20;
/// How often it is tried.
const ATTEMPTS: u32 = 4;
/// Real time may be so much off, each as a share of what is simulated, with this much on top in milliseconds: a wake-up,
/// a socket and a file on the way. The median has more: with slots it lies between those that wait and those that do not.
const TOLERANCES: [(&str, f64, f64); 4] =
    [("mean", 0.20, 1.0), ("p50", 0.25, 3.0), ("p90", 0.25, 1.5), ("p99", 0.40, 4.0)];
/// Throughput of an open loop that is kept up with is that of its arrivals.
const THROUGHPUT: f64 = 0.03;

fn load(seed: u64, per_second: f64) -> LoadSpec {
    LoadSpec {
        outstanding: 64,
        ramp_ns: 200_000_000,
        time_ns: 4_000_000_000,
        interval_ns: 1_000_000_000,
        seed,
        rate: Some(Rate { per_second, arrivals: Arrivals::Poisson }),
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 60.0, 100.0)), DISK_BYTES)
    }
}

/// What each disk's load came to: operations a second, and response times.
type Figures = Vec<(f64, LatencySummary)>;

fn simulated(config: &Config, loads: &[LoadSpec]) -> Figures {
    let clients: Vec<Client> = loads.iter().map(|load| open_client(load, 0, 1.0).unwrap()).collect();
    let span = Span { warm_up_ns: loads[0].ramp_ns, measure_ns: loads[0].time_ns };
    let outcome =
        World::new(twin::world(config, [DEVICE_BYTES; 2], clients, span, 1).unwrap()).unwrap().run().unwrap();
    outcome.vms.iter().map(|vm| (vm.per_second(), vm.summary().unwrap())).collect()
}

fn measured(config: &Config, socket: &str, loads: &[LoadSpec]) -> Figures {
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
            (outcome.total.iops, outcome.total.latency_ns.unwrap())
        };
        outcomes.into_iter().map(figures).collect()
    })
}

/// What is out of tolerance, in words.
fn differences(simulated: &Figures, measured: &Figures) -> Vec<String> {
    let mut found = Vec::new();
    for (disk, ((rate, expected), (got_rate, got))) in simulated.iter().zip(measured).enumerate() {
        if (got_rate / rate - 1.0).abs() > THROUGHPUT {
            found.push(format!("disk{disk}: {got_rate} a second for {rate}"));
        }
        let of = |summary: &LatencySummary| {
            [summary.mean, summary.p50 as f64, summary.p90 as f64, summary.p99 as f64].map(|ns| ns / 1e6)
        };
        for ((name, share, ms), (want, is)) in
            TOLERANCES.into_iter().zip(of(expected).into_iter().zip(of(got)))
        {
            if (is - want).abs() > want * share + ms {
                found.push(format!("disk{disk}: {name} {is:.2} ms for {want:.2} ms"));
            }
        }
    }
    found
}

fn conforms(scheduler: &str, devices: &[&str], rates: &[f64]) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let socket = folder.path().join("nbd").display().to_string();
    let mut text = String::new();
    for (table, device) in ["slow", "fast"].into_iter().zip(devices) {
        let Some((kind, options)) = device.split_once('?') else { continue };
        let path = folder.path().join(table);
        File::create(&path).unwrap().set_len(DEVICE_BYTES).unwrap();
        text += &std::format!("[{table}]\ndevice = '{kind}:{}?{options}'\n", path.display());
    }
    // Predictors of these devices as near as the test needs them.
    text += &std::format!(
        "[cache]\nfree_target = 300\n[scheduler]\nname = '{scheduler}'\npredict = {{ slow_knots = [[0, 5.2], \
         [33554432, 10.0], [268435456, 26.0]], fast_per_io_us = 130.0 }}\n[limits]\nmax_request = '256 KiB'\n\
         [nbd]\nlisten = 'unix:{socket}'\n"
    );
    for disk in 0..rates.len() {
        text += &std::format!(
            "[[disk]]\nname = 'disk{disk}'\nexport = 'disk{disk}'\nsize = {DISK_BYTES}\ncache = '16 MiB'\n"
        );
    }
    let path = folder.path().join("fence.toml");
    std::fs::write(&path, text).unwrap();
    let config = Config::load(&path).unwrap();
    let loads: Vec<LoadSpec> = (1..).zip(rates).map(|(seed, rate)| load(seed, *rate)).collect();
    let expected = simulated(&config, &loads);
    let mut found = Vec::new();
    for attempt in 1..=ATTEMPTS {
        found = differences(&expected, &measured(&config, &socket, &loads));
        if found.is_empty() {
            return;
        }
        eprintln!("{scheduler}, attempt {attempt}: {found:?}");
    }
    panic!("{scheduler} is not what the simulator says, {ATTEMPTS} times: {found:?}");
}

#[test]
fn everything_at_once_on_a_hard_disk_takes_the_simulated_time() {
    conforms("pass-through", &["hdd?sync=off"], &[15.0, 15.0]);
}

#[test]
fn slots_on_a_hard_disk_take_the_simulated_time() {
    conforms("HDD+NWC", &["hdd?sync=off"], &[12.0, 12.0]);
}

#[test]
fn a_drive_with_erasures_takes_the_simulated_time() {
    conforms("SSD+NWC", &["", "ssd?profile=paper-fit&sync=off"], &[200.0, 200.0]);
}

#[test]
fn caches_and_slots_together_take_the_simulated_time() {
    conforms("VirtualFence", &["hdd?sync=off", "ssd?profile=spec&sync=off"], &[20.0, 20.0]);
}
